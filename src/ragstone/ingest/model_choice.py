"""Which model embeds what comes into a kb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragstone.core.errors import ModelMismatch
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder
from ragstone.core.spaces import EmbedderFor, SpaceBook
from ragstone.core.types import KnowledgeBase


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The configured model, or that of the live Space of a kb that was moved to it.

    A process that was started before `ragstone reembed` goes on with the model that the kb has now. A kb that never
    had the configured model is refused: somebody has to say that it is to be moved.
    """

    configured: str
    own: Embedder
    book: SpaceBook | None = None
    embedder_for: EmbedderFor | None = None
    of_tenant: Callable[[str], Awaitable[Embedder | None]] | None = None
    """The embedder that a tenant has chosen for its new kbs; None for one that has chosen none."""

    async def embedder(self, tenant: str, kb: KnowledgeBase | None) -> Embedder:
        """What embeds for this kb; `ModelMismatch` with the command that repairs it when nothing may."""
        # A fallback may have taken the configured model's place: the kb may be of either.
        chosen = await self.of_tenant(tenant) if self.of_tenant else None
        if kb is None or kb.space is None:
            return chosen or self.own
        if chosen and kb.space.model == chosen.model.id:
            return chosen
        if kb.space.model in (self.configured, self.own.model.id):
            return self.own
        if self.book and self.embedder_for and self.configured in await self.book.models(tenant, kb):
            return await self.embedder_for(kb.space.model)
        wanted, present = map(model_name, (self.configured, kb.space.model))
        raise ModelMismatch(
            f"knowledge base '{kb.name}' was built with {kb.space.model}, not with {self.configured}",
            hint=f"move it with: ragstone reembed --model {wanted} --kb {kb.name}; "
            f"or set embedding.model to {present}",
        )

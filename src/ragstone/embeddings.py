"""The embeddings of a kb and their upkeep: moved to another model, filled in, checked, indexed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ragstone.core.errors import ModelError
from ragstone.core.protocols import Embedder
from ragstone.core.spaces import SpaceRecord
from ragstone.core.types import KnowledgeBase
from ragstone.keeper import Keeper

if TYPE_CHECKING:
    # Only some methods need these: they are imported there, and a search starts the sooner.
    from ragstone.ingest.backfill import OnFill
    from ragstone.reembed import CleanOptions, FillOptions, ReembedOptions, ReembedReport
    from ragstone.refresh.refresher import RefreshReport
    from ragstone.refresh.triggers import RefreshStatus


class EmbeddingKeeper(Keeper):
    """Looks after Spaces: `Library` inherits this, and so does an engine."""

    async def reindex(self, *, tenant: str | None = None, kb: str | None = None) -> list[str]:
        """Make the indexes of a kb anew while it is searched; which of `vectors` and `lexical` could be."""
        return await self._parts.reindex(await self._owner(tenant), self._name(kb))

    async def reembed(
        self,
        model: str | None = None,
        *,
        tenant: str | None = None,
        kb: str | None = None,
        **options: Unpack[ReembedOptions],
    ) -> ReembedReport:
        """Move a kb to another model while it is searched and written to; the same again goes on where it stopped."""
        owner = self._tenant(tenant)
        await self._parts.gate.write(owner)
        async with self._parts.gate.paying(owner):
            return await self._parts.reembedder().run(owner, self._name(kb), model, **options)

    async def refresh(
        self, *, tenant: str | None = None, kb: str | None = None, on_progress: OnFill | None = None
    ) -> RefreshReport:
        """Fill in vectors that are missing, compare some with fresh ones, and make all anew if one differs."""
        owner = self._tenant(tenant)
        await self._parts.gate.write(owner)
        async with self._parts.gate.paying(owner):
            return await self._parts.refresher().run(
                owner,
                self._name(kb),
                sample=self.settings.embedding.refresh.sample,
                on_progress=on_progress,
            )

    async def refresh_status(self, *, tenant: str | None = None, kb: str | None = None) -> RefreshStatus:
        """When a kb was last refreshed by a worker, how that ended, and when it is due."""
        return await self._parts.triggers().status(await self._owner(tenant), self._name(kb))

    async def rollback_space(
        self, *, tenant: str | None = None, kb: str | None = None, **options: Unpack[FillOptions]
    ) -> ReembedReport:
        """Move a kb back to the Space that was live before, with all that came in since."""
        owner = self._tenant(tenant)
        await self._parts.gate.write(owner)
        async with self._parts.gate.paying(owner):
            return await self._parts.reembedder().rollback(owner, self._name(kb), **options)

    async def spaces(self, *, tenant: str | None = None, kb: str | None = None) -> list[SpaceRecord]:
        """The Spaces of a kb, oldest generation first."""
        return await self._parts.reembedder().spaces(await self._owner(tenant), self._name(kb))

    async def clean_spaces(
        self, *, tenant: str | None = None, kb: str | None = None, **options: Unpack[CleanOptions]
    ) -> int:
        """Remove Spaces whose grace period is over, or all retired ones, or those being built; how many went."""
        owner = await self._owner(tenant)
        return await self._parts.reembedder().clean(owner, self._name(kb), **options)

    async def _embedder_of(self, kb: KnowledgeBase) -> Embedder | None:
        """The embedder of a kb's live Space; None when it cannot be had, which its searches then say."""
        if kb.space is None:
            return None
        try:
            return await self._parts.embedders.of(kb.space.model)
        except ModelError:
            return None

    @property
    def _model(self) -> str:
        return self._parts.embedders.configured

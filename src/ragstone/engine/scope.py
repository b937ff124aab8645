"""The tenant, actor and request that a workspace is bound to, as its parts see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from ragstone.core.audit import acting_as
from ragstone.core.errors import ModelError, unknown_kb
from ragstone.core.protocols import Embedder
from ragstone.core.types import KnowledgeBase

if TYPE_CHECKING:
    from ragstone.engine.components import Components

T = TypeVar("T")


class TenantScope:
    """Binds the components of an engine to one tenant."""

    def __init__(self, components: Components, tenant: str, actor: str, request_id: str) -> None:
        self.components = components
        self.settings = components.settings
        self.actor = actor
        self.request_id = request_id
        self._tenant = tenant

    @property
    def tenant(self) -> str:
        """The tenant's name; an engine that is closed serves none."""
        self.components.require_open()
        return self._tenant

    async def admit(self) -> str:
        """Return the tenant's name; one that is suspended is refused."""
        await self.components.access.read(self.tenant)
        return self._tenant

    async def write(self) -> str:
        """Return the tenant's name; one that is suspended or has spent its budget is refused."""
        await self.components.access.write(self.tenant)
        return self._tenant

    def kb_name(self, kb: str | None) -> str:
        """Return the name of the kb that is meant."""
        return self.settings.kb if kb is None else kb

    async def kb(self, kb: str | None) -> KnowledgeBase:
        """Return the kb that is meant, or raise `NotFoundError`."""
        tenant, name = await self.admit(), self.kb_name(kb)
        found = await self.components.ledger.kb(tenant, name)
        if found is None:
            raise unknown_kb(name, tenant)
        return found

    async def embedder_of(self, kb: KnowledgeBase) -> Embedder | None:
        """Return the embedder of a kb's live Space; None when it is not available, which its searches then report."""
        if kb.space is None:
            return None
        try:
            return await self.components.embedders.for_space(kb.space.model)
        except ModelError:
            return None

    def acting(self) -> AbstractContextManager[None]:
        """Have what the block does recorded under the actor and request of the workspace, where it has them."""
        if not self.actor and not self.request_id:
            return nullcontext()
        return acting_as(self.actor or None, self.request_id or None)


def bound(part: type[T]) -> type[T]:
    """Have every public coroutine of a part recorded under the actor and request of its `_scope`."""
    for name, method in list(vars(part).items()):
        if not name.startswith("_") and iscoroutinefunction(method):
            setattr(part, name, _acting(method))
    return part


def _acting(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        scope: TenantScope = self._scope
        with scope.acting():
            return await method(self, *arguments, **options)

    return call

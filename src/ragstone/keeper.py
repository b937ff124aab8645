"""Who something is done for and which kb is meant: what all that an engine does begins with."""

from __future__ import annotations

from contextlib import AsyncExitStack

from ragstone.core.errors import unknown_kb
from ragstone.core.reader_pool import closed
from ragstone.core.types import KnowledgeBase
from ragstone.parts import Parts
from ragstone.settings.tree import Settings


class Keeper:
    """Holds the parts of an engine, and closes them."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings = settings
        self._parts = parts
        self._closed = False

    async def close(self) -> None:
        """Let go of models, children and files."""
        self._closed = True
        async with AsyncExitStack() as stack:  # one that fails to close keeps none of the others open
            for close in reversed(self._parts.closing):
                stack.push_async_callback(close)

    def _tenant(self, tenant: str | None) -> str:
        if self._closed:
            raise closed("the engine")  # files would be opened again, and nobody would close them
        # Only None means the default: an empty name is a mistake that must not reach somebody's data.
        return self.settings.tenant if tenant is None else tenant

    async def _owner(self, tenant: str | None) -> str:
        """Who something is done for; a tenant that is suspended is refused."""
        await self._parts.gate.read(self._tenant(tenant))
        return self._tenant(tenant)

    def _name(self, kb: str | None) -> str:
        return self.settings.kb if kb is None else kb

    async def _kb(self, tenant: str | None, kb: str | None) -> KnowledgeBase:
        owner, name = await self._owner(tenant), self._name(kb)
        found = await self._parts.ledger.kb(owner, name)
        if found is None:
            raise unknown_kb(name, owner)
        return found

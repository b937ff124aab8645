"""The kb that a run works on: the one that it opened, whatever its name comes to stand for meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.errors import kb_gone
from ragstone.core.ledger import Ledger
from ragstone.core.types import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Scope:
    """Where documents of a run go."""

    ledger: Ledger
    tenant: str
    kb: KnowledgeBase
    """As it was when the run began."""

    async def now(self) -> KnowledgeBase:
        """The kb as it is now; `KbGone` when it was renamed or deleted."""
        found = await self.ledger.kb(self.tenant, self.kb.name)
        if found is None or found.id != self.kb.id:
            names = {kb.id: kb.name for kb in await self.ledger.kbs(self.tenant)}
            raise kb_gone(self.kb.name, names.get(self.kb.id))
        return found

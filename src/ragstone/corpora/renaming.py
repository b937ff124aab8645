"""Another name for a kb: the kb itself first, then its files.

Once the ledger has the new name nothing fails any more, and what was cut short is finished by the same command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ragstone.core.collections import check_kb_name
from ragstone.core.errors import unknown_kb
from ragstone.core.types import KnowledgeBase
from ragstone.gate import Gate
from ragstone.stores.corpus.upkeep import FileUpkeep
from ragstone.stores.ledger.kb_names import name_taken

if TYPE_CHECKING:
    from ragstone.activity import Activity
    from ragstone.stores.factory import Stores

RENAME = "kb.rename"


class Renaming:
    """Gives kbs other names."""

    def __init__(
        self, stores: Stores, upkeep: FileUpkeep, gate: Gate, activity: Callable[[], Activity]
    ) -> None:
        self._ledger = stores.ledger
        self._upkeep = upkeep
        self._gate = gate
        self._activity = activity

    async def rename(self, tenant: str, old: str, new: str) -> KnowledgeBase:
        """The kb under its new name."""
        check_kb_name(new)
        found, taken = await self._ledger.kb(tenant, old), await self._ledger.kb(tenant, new)
        if found is None:
            if taken is None or not await self._was_cut_short(tenant, old, new):
                raise unknown_kb(old, tenant)
            await self._upkeep.refresh(tenant)
            await self._gate.audit.came_about(tenant, RENAME, new, kb=old)
            return taken
        if old == new:
            return found
        if taken:
            raise name_taken(new)
        async with self._gate.audit.carrying_out(tenant, RENAME, [new], old) as deed:
            await self._activity().flush()  # searches on their way to the log know the kb by its name
            async with self._ledger.transaction(tenant) as tx:
                renamed = await tx.rename_kb(found, new)
            await self._upkeep.refresh(tenant)
            deed.did(new)
        return renamed

    async def _was_cut_short(self, tenant: str, old: str, new: str) -> bool:
        """Whether the record says that this renaming was begun, and not how it ended."""
        entries = await self._gate.audit.entries(tenant, action=RENAME)
        last = next((one for one in entries if (one.kb, one.target) == (old, new)), None)
        return last is not None and last.outcome == "begun"

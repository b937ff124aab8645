"""Another name for a kb: what was asked of it first, then the kb itself, then its files.

No transaction spans the ledger and the activity file. The one that can be merged goes first, so that whatever cuts
a renaming short, the same command again finishes it; and once the ledger has the new name nothing fails any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ragstone.core.collections import check_kb_name
from ragstone.core.errors import RagstoneError, unknown_kb
from ragstone.core.types import KnowledgeBase
from ragstone.gate import Gate
from ragstone.stores.corpus.upkeep import FileUpkeep
from ragstone.stores.ledger.kb_names import name_taken
from ragstone.stores.renamed_activity import merge_kb

if TYPE_CHECKING:
    from ragstone.activity import Activity
    from ragstone.stores.factory import Stores

logger = logging.getLogger(__name__)
RENAME = "kb.rename"


class Renaming:
    """Gives kbs other names."""

    def __init__(
        self, stores: Stores, upkeep: FileUpkeep, gate: Gate, activity: Callable[[], Activity]
    ) -> None:
        self._ledger = stores.ledger
        self._files = stores.activity
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
            await self._follow(tenant, old, new)
            await self._gate.audit.came_about(tenant, RENAME, new, kb=old)
            return taken
        if old == new:
            return found
        if taken:
            raise name_taken(new)
        async with self._gate.audit.carrying_out(tenant, RENAME, [new], old) as deed:
            await self._move_activity(tenant, old, new)
            try:
                async with self._ledger.transaction(tenant) as tx:
                    renamed = await tx.rename_kb(found, new)
            except BaseException:
                await asyncio.shield(self._move_back(tenant, found, new))
                raise
            await self._follow(tenant, old, new)
            deed.did(new)
        return renamed

    async def _was_cut_short(self, tenant: str, old: str, new: str) -> bool:
        """Whether the record says that this renaming was begun, and not how it ended."""
        entries = await self._gate.audit.entries(tenant, action=RENAME)
        last = next((one for one in entries if (one.kb, one.target) == (old, new)), None)
        return last is not None and last.outcome == "begun"

    async def _move_activity(self, tenant: str, old: str, new: str) -> None:
        await self._activity().flush()
        identity = await self._gate.identity(tenant)
        await self._files.run(identity, lambda db: merge_kb(db, old, new), None)

    async def _move_back(self, tenant: str, kb: KnowledgeBase, new: str) -> None:
        try:
            there = await self._ledger.kb(tenant, new)
            if there is None or there.id != kb.id:  # else it was done, and only its end was not heard of
                await self._move_activity(tenant, new, kb.name)
        except RagstoneError as error:
            logger.warning("what was asked of '%s' is kept under '%s': %s", kb.name, new, error)

    async def _follow(self, tenant: str, old: str, new: str) -> None:
        """What was asked meanwhile goes along, and so do the files."""
        try:
            await self._move_activity(tenant, old, new)
        except RagstoneError as error:
            logger.warning("some of what was asked of '%s' is still kept under that name: %s", old, error)
        await self._upkeep.refresh(tenant)

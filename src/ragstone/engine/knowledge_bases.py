"""The knowledge bases of a tenant: listed, counted, renamed, indexed and deleted."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.collections import PLURALS, Collection, check_kb_name, collection_name
from ragstone.core.errors import unknown_kb
from ragstone.core.types import KnowledgeBase, Stats
from ragstone.engine.access import WorkspacePart, record_caller, within_kbs

RENAME = "kb.rename"


@record_caller
class KnowledgeBases(WorkspacePart):
    """Knowledge bases by name; `kb` is that of the settings unless another one is named."""

    @within_kbs
    async def list(self) -> Sequence[KnowledgeBase]:
        """Return all knowledge bases."""
        return [kb for kb in await self._ledger.of(await self._scope.admit()).kbs() if self._scope.sees(kb.name)]

    @within_kbs
    async def get(self, kb: str | None = None) -> KnowledgeBase:
        """Return a knowledge base, or raise `NotFoundError`."""
        return await self._scope.kb(kb)

    @within_kbs
    async def stats(self, kb: str | None = None) -> Stats:
        """Return the counts of live content."""
        scope = await self._scope.kb(kb)
        return await self._ledger.of(self._scope.tenant).stats(scope)

    async def source_types(self) -> Sequence[Collection]:
        """Return what there is of each source type, by the names that people use, such as `emails_acme`."""
        tenant, derived = await self._scope.admit(), self._components.stores.derived
        found = await self._ledger.of(tenant).source_types()
        held = await derived.count_collections(tenant) if derived and found else None
        return [
            Collection(
                collection_name(source_type, tenant),
                source_type,
                documents,
                chunks,
                vectors=None if held is None else held.get(PLURALS.get(source_type, source_type)),
            )
            for source_type, documents, chunks in found
        ]

    async def reindex(self, kb: str | None = None) -> Sequence[str]:
        """Rebuild the indexes of a kb while it is searched; return which of `vectors` and `lexical` could be."""
        from ragstone.stores.factory import reindex

        return await reindex(self._components.stores, await self._scope.admit(), self._scope.kb_name(kb))

    async def delete(self, kb: str) -> int:
        """Remove a kb; return the number of documents that went with it."""
        tenant = await self._scope.admit()
        if await self._ledger.of(tenant).kb(kb) is None:
            return 0
        async with self._components.audit.record_action(tenant, "kb.delete", [kb], kb) as removal:
            async with self._ledger.transaction(tenant) as tx:
                gone = await tx.delete_kb(kb)
            removal.mark_done(kb, gone)
            await self._components.file_upkeep.refresh(tenant)
        return gone

    async def rename(self, kb: str, name: str) -> KnowledgeBase:
        """Give a kb another name; what is in it, its sources, jobs and files go along.

        Once the ledger has the new name nothing fails any more, and the same again finishes what was cut short.
        """
        from ragstone.stores.ledger.writes import name_taken

        tenant = await self._scope.write()
        check_kb_name(name)
        found, taken = await self._ledger.of(tenant).kb(kb), await self._ledger.of(tenant).kb(name)
        if found is None:
            if taken is None or not await self._was_cut_short(tenant, kb, name):
                raise unknown_kb(kb, tenant)
            await self._components.file_upkeep.refresh(tenant)
            await self._components.audit.record_event(tenant, RENAME, name, kb=kb)
            return taken
        if kb == name:
            return found
        if taken:
            raise name_taken(name)
        async with self._components.audit.record_action(tenant, RENAME, [name], kb) as deed:
            await self._components.search_log.flush()  # searches on their way know the kb by its name
            async with self._ledger.transaction(tenant) as tx:
                renamed = await tx.rename_kb(found, name)
            await self._components.file_upkeep.refresh(tenant)
            deed.mark_done(name)
        return renamed

    async def _was_cut_short(self, tenant: str, old: str, new: str) -> bool:
        """Return whether the record says that this renaming was begun, and not how it ended."""
        entries = await self._components.audit.entries(tenant, action=RENAME)
        last = next((entry for entry in entries if (entry.kb, entry.target) == (old, new)), None)
        return last is not None and last.outcome == "begun"

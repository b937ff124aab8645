"""Keep the files of built collections in step with the ledger."""

from __future__ import annotations

import asyncio
import logging

from ragstone.core.collections import ChunkMetadata, is_draft, is_draft_of
from ragstone.core.errors import RagstoneError, StoreBusy, TenantGone
from ragstone.core.types import KnowledgeBase
from ragstone.stores.corpus.files import CorpusFiles, FilePair
from ragstone.stores.indexes import LIVE
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.sql.database import Connection


def tenant_id_of(_: Connection, tenant_id: str) -> str:
    """Return the id that a tenant's rows carry."""
    return tenant_id


def live_chunk_ids(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> set[str]:
    """Return the ids of the live chunks."""
    rows = connection.execute(
        f"SELECT c.id FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ?", (tenant_id, kb.id)
    )
    return {chunk_id for (chunk_id,) in rows}


def vector_count(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> int:
    """Count the vectors of the live Space."""
    if kb.space is None:
        return 0
    row = connection.execute(
        "SELECT count(*) FROM vectors WHERE tenant_id = ? AND space_id = ?", (tenant_id, kb.space.id)
    ).fetchone()
    return int(row[0])


logger = logging.getLogger(__name__)
PAGE = 500


class FileUpkeep:
    """Writes the files of collections from the ledger."""

    def __init__(self, ledger: SqlLedger, files: CorpusFiles, bm25: ResidentBm25Index) -> None:
        self._ledger = ledger
        self._files = files
        self._bm25 = bm25

    async def pair(self, tenant: str, collection: str) -> FilePair:
        """Return the files of a collection, which need not exist."""
        return self._files.of(tenant, await self._ledger.read(tenant, tenant_id_of), collection)

    async def refresh(self, tenant: str, *, drafts: bool = False) -> list[RagstoneError]:
        """Bring the files of all collections of a tenant up to date, and return what kept some from it.

        Files of a kb that is gone are removed. With `drafts` also what builds left behind goes: a build on another
        machine cannot be seen from here, so this is done only on request. Errors are logged and not raised, because
        no search depends on the files.
        """
        try:
            tenant_id = await self._ledger.read(tenant, tenant_id_of)
            pairs = await asyncio.to_thread(self._files.all_of, tenant, tenant_id)
        except TenantGone:
            return []
        except RagstoneError as error:
            logger.warning("cannot list the collection files of tenant '%s': %s", tenant, error)
            return [error]
        problems: list[RagstoneError] = []
        for pair in pairs:
            try:
                with pair.lock():
                    problem = await self.tidy(tenant, pair, drafts=drafts)
                problems += [problem] if problem else []
            except StoreBusy as error:
                problems.append(error)  # its build writes the files at the end
            except RagstoneError as error:
                _log_stale(pair, error)
                problems.append(error)
        return problems

    async def tidy(self, tenant: str, pair: FilePair, *, drafts: bool) -> RagstoneError | None:
        """Remove what builds left, finish what they began, and rewrite files that are not up to date.

        Return the error that kept files from being written, if any.
        """
        for kb in await self._ledger.of(tenant).kbs() if drafts else ():
            if is_draft_of(pair.collection, kb.name):
                async with self._ledger.transaction(tenant) as tx:
                    await tx.delete_kb(kb.name)
        tenant_id = await self._ledger.read(tenant, tenant_id_of)
        live = await self._ledger.of(tenant).kb(pair.collection)
        await asyncio.to_thread(pair.settle, tenant_id, live.id if live else None)
        if not await asyncio.to_thread(pair.is_of, tenant_id):
            return None
        if live is None:
            if problem := await self._move_to_new_name(tenant, pair):
                return problem
            await asyncio.to_thread(pair.remove)
        elif await self._is_stale(tenant, live, pair):
            return await self._rewrite(tenant, live, pair)
        return None

    async def _move_to_new_name(self, tenant: str, pair: FilePair) -> RagstoneError | None:
        """Write the files of a kb that was renamed since to where they belong now."""
        origin = await asyncio.to_thread(pair.origin)
        for kb in await self._ledger.of(tenant).kbs() if origin else ():
            if origin and kb.id == origin.kb_id and not is_draft(kb.name):
                new = await self.pair(tenant, kb.name)
                with new.lock():
                    return await self._rewrite(tenant, kb, new)
        return None

    async def _rewrite(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> RagstoneError | None:
        """Write the files of a kb as it is now; return the error, which is also logged, when that fails."""
        try:
            await self.write_aside(tenant, kb, pair)
            await asyncio.to_thread(pair.install)
        except RagstoneError as error:
            _log_stale(pair, error)
            return error
        return None

    async def write_aside(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> list[ChunkMetadata]:
        """Write both files of a kb beside those in place; return the chunks that are in them."""
        await self._bm25.save_index(tenant, kb, pair.next_index)
        chunks: list[ChunkMetadata] = []
        after = ""
        while page := await self._ledger.of(tenant).documents(kb, after=after, limit=PAGE):
            for document in page:
                live = await self._ledger.of(tenant).document_chunks(document.id)
                chunks += [ChunkMetadata.of(chunk) for chunk in live]
            after = page[-1].id
        await asyncio.to_thread(pair.put_aside, chunks)
        return chunks

    async def _is_stale(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> bool:
        live = await self._ledger.read(tenant, live_chunk_ids, kb)
        return await asyncio.to_thread(pair.ids) != (live, live)


def _log_stale(pair: FilePair, error: RagstoneError) -> None:
    logger.warning("the files of collection '%s' are not up to date: %s", pair.collection, error)

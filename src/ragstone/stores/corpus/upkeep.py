"""The ledger's content of a collection, compared with its files and vectors."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from ragstone.core.collections import ChunkMetadata, is_draft, is_draft_of
from ragstone.core.errors import RagstoneError, StoreBusy, TenantGone
from ragstone.core.types import KnowledgeBase
from ragstone.stores.corpus.files import CorpusFiles, FilePair
from ragstone.stores.index_cache import LIVE
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.sql.database import Connection


def tenant_id_of(_: Connection, tenant_id: str) -> str:
    """The id that a tenant's rows carry."""
    return tenant_id


def live_chunk_ids(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> set[str]:
    """The chunks that can be found."""
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
        """The files of a collection, which need not be there."""
        return self._files.of(tenant, await self._ledger.read(tenant, tenant_id_of), collection)

    async def refresh(self, tenant: str, *, drafts: bool = False) -> None:
        """Bring the files of all collections of a tenant in step; those of a kb that is gone go.

        With `drafts` also what builds left behind goes. A build on another machine is not seen from here, so only
        somebody who asks for it does that. What cannot be done is logged: no search depends on the files.
        """
        try:
            tenant_id = await self._ledger.read(tenant, tenant_id_of)
            pairs = await asyncio.to_thread(self._files.all_of, tenant, tenant_id)
        except TenantGone:
            return
        except RagstoneError as error:
            logger.warning("the files of collections of '%s' were not looked at: %s", tenant, error)
            return
        for pair in pairs:
            try:
                # Whoever builds this one sees to its files at the end.
                with suppress(StoreBusy), pair.locked():
                    await self.tidy(tenant, pair, drafts=drafts)
            except RagstoneError as error:
                logger.warning("the files of collection '%s' are not up to date: %s", pair.collection, error)

    async def tidy(self, tenant: str, pair: FilePair, *, drafts: bool) -> None:
        """Remove what builds left, finish what they began, and write the files anew if they are not true."""
        for kb in await self._ledger.kbs(tenant) if drafts else ():
            if is_draft_of(pair.collection, kb.name):
                async with self._ledger.transaction(tenant) as tx:
                    await tx.delete_kb(kb.name)
        tenant_id = await self._ledger.read(tenant, tenant_id_of)
        live = await self._ledger.kb(tenant, pair.collection)
        await asyncio.to_thread(pair.settle, tenant_id, live.id if live else None)
        if not await asyncio.to_thread(pair.is_of, tenant_id):
            return
        if live is None:
            if await self._handed_on(tenant, pair):
                await asyncio.to_thread(pair.remove)
        elif await self._is_stale(tenant, live, pair):
            await self.rewrite(tenant, live, pair)

    async def _handed_on(self, tenant: str, pair: FilePair) -> bool:
        """Write the files of a kb that has another name now where they belong; False if that has to be tried again."""
        origin = await asyncio.to_thread(pair.origin)
        for kb in await self._ledger.kbs(tenant) if origin else ():
            if origin and kb.id == origin.kb_id and not is_draft(kb.name):
                new = await self.pair(tenant, kb.name)
                with new.locked():
                    return await self.rewrite(tenant, kb, new)
        return True

    async def rewrite(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> bool:
        """Write the files of a kb as it is; if that cannot be, it is logged: no search depends on them."""
        try:
            await self.write_aside(tenant, kb, pair)
            await asyncio.to_thread(pair.install)
        except RagstoneError as error:
            logger.warning("the files of collection '%s' are not up to date: %s", kb.name, error)
            return False
        return True

    async def write_aside(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> list[ChunkMetadata]:
        """Write both files of a kb beside those in place; the chunks that are in them."""
        await self._bm25.save_index(tenant, kb, pair.next_index)
        chunks: list[ChunkMetadata] = []
        after = ""
        while page := await self._ledger.documents(tenant, kb, after=after, limit=PAGE):
            for document in page:
                live = await self._ledger.document_chunks(tenant, document.id)
                chunks += [ChunkMetadata.of(one) for one in live]
            after = page[-1].id
        await asyncio.to_thread(pair.put_aside, chunks)
        return chunks

    async def _is_stale(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> bool:
        live = await self._ledger.read(tenant, live_chunk_ids, kb)
        return await asyncio.to_thread(pair.ids) != (live, live)

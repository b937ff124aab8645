"""Building a collection: load, chunk, index by word, embed, store, write the metadata down, validate, swap in.

All of it happens in a kb of its own that no search reads. One transaction then removes the collection that
there was and gives its name to the new one, so a search sees the old one or the new one, whole. A process
that dies before that leaves a kb that the next build removes; one that dies after it leaves files that the next
one puts in place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from ragstone.core.collections import (
    COLLECTION,
    EXISTS,
    BuildRequest,
    BuildResult,
    ChunkMetadata,
    CollectionHealth,
    FileState,
    check_kb_name,
    draft_name,
)
from ragstone.core.documents import IngestReport
from ragstone.core.errors import (
    CollectionBusy,
    CollectionExists,
    InputError,
    KbGone,
    ModelError,
    NotFoundError,
    RagstoneError,
    StoreError,
)
from ragstone.core.model_types import model_name
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Document, KnowledgeBase
from ragstone.engine.access import WorkspacePart, record_caller, within_kbs

if TYPE_CHECKING:
    # Only builds need these: other calls start the sooner.
    from ragstone.engine.corpus import Corpus
    from ragstone.ingest.work import OnProgress
    from ragstone.stores.corpus.files import FilePair
    from ragstone.stores.corpus.upkeep import FileUpkeep

logger = logging.getLogger(__name__)
REPLACE = Remedy(Action.REPLACE_COLLECTION)
UNTOUCHED = "nothing was replaced"
READ = "document.read"
PAGE = 500


@record_caller
class Collections(WorkspacePart):
    """Collections that are built from one corpus file as a whole."""

    async def build(self, request: BuildRequest, *, on_progress: OnProgress | None = None) -> BuildResult:
        """Make a collection of a corpus file; `CollectionExists` when there is one and it may not be replaced."""
        from ragstone.engine.corpus import find_corpus

        started = time.perf_counter()
        tenant, name = await self._scope.write(), _name(request.collection)
        with closing(await asyncio.to_thread(find_corpus, self._scope.settings, tenant, request.corpus_path)) as corpus:
            await self._refuse_existing(tenant, name, request)
            async with self._ledger.transaction(tenant) as tx:
                await tx.existing([])  # a tenant that is new has an id from here on
            pair = await self._upkeep.pair(tenant, name)
            with pair.lock():
                await self._upkeep.tidy(tenant, pair, drafts=True)
                await self._refuse_existing(tenant, name, request)
                try:
                    kb, chunks = await self._build_draft(tenant, pair, corpus, request, on_progress)
                finally:
                    await asyncio.shield(self._clear_drafts(tenant, pair))
        return _result(kb, pair, chunks, time.perf_counter() - started)

    @within_kbs
    async def health(self, collection: str | None = None) -> CollectionHealth:
        """Return what there is of a collection, also when there is nothing yet."""
        from ragstone.stores.corpus.upkeep import live_chunk_ids

        tenant, name = await self._scope.admit(), _name(collection)
        kb = await self._ledger.of(tenant).kb(name) if self._scope.sees(name) else None
        if kb is None:
            return CollectionHealth(name, False, 0, 0, "missing", "missing")
        stats = await self._ledger.of(tenant).stats(kb)
        pair = await self._upkeep.pair(tenant, name)
        live = await self._ledger.read(tenant, live_chunk_ids, kb)
        index, metadata = (_state(ids, live) for ids in await asyncio.to_thread(pair.ids))
        return CollectionHealth(name, True, stats.documents, stats.chunks, index, metadata)

    async def chunk(self, chunk_id: str, collection: str | None = None) -> ChunkMetadata | None:
        """Return the metadata of a live chunk by its id; None when there is no such chunk in the collection."""
        tenant, audit = await self._scope.admit(), self._access.audit
        kb = await self._ledger.of(tenant).kb(_name(collection))
        found = (await self._ledger.of(tenant).chunks(kb, [chunk_id])).get(chunk_id) if kb else None
        if kb is None or found is None:
            await audit.record_denial(tenant, READ, chunk_id)
            return None
        await audit.record_read(tenant, READ, target=found.document_id, kb=kb.name)
        return ChunkMetadata.of(found)

    @property
    def _upkeep(self) -> FileUpkeep:
        return self._scope.components.file_upkeep

    async def _build_draft(
        self, tenant: str, pair: FilePair, corpus: Corpus, request: BuildRequest, on_progress: OnProgress | None
    ) -> tuple[KnowledgeBase, list[ChunkMetadata]]:
        from ragstone.engine.corpus import open_build_pipeline, read_corpus

        async with self._ledger.transaction(tenant) as tx:
            draft = await tx.open_kb(draft_name(pair.collection), draft=True)
        try:
            async with open_build_pipeline(self._scope.components, tenant, request) as pipeline:
                items = read_corpus(corpus.found, self._scope.settings.limits)
                report = await pipeline.run(tenant, draft, items, on_progress)
            filled = await self._still_there(tenant, draft)
            _check(report)
            chunks = await self._upkeep.write_aside(tenant, filled, pair)
            await self._validate(tenant, filled, pair)
            live = await self._replace_live(tenant, filled, pair.collection, overwrite=request.overwrite)
        except KbGone as error:
            raise _taken_over(pair.collection) from error
        try:
            await asyncio.to_thread(pair.install)
        except StoreError as error:
            # It is live. `corpus show` says that the files are stale, and the next refresh puts them in place.
            logger.warning("the files of collection '%s' are not up to date: %s", pair.collection, error)
        return live, chunks

    async def _still_there(self, tenant: str, draft: KnowledgeBase) -> KnowledgeBase:
        """Return the kb of a build as it is now, or raise `KbGone` when another build removed it."""
        async with self._ledger.transaction(tenant) as tx:
            return await tx.present(draft)

    async def _validate(self, tenant: str, kb: KnowledgeBase, pair: FilePair) -> None:
        """Raise `StoreError` unless every chunk is in the ledger, among the vectors and in both files."""
        from ragstone.stores.corpus.upkeep import live_chunk_ids, tenant_id_of, vector_count
        from ragstone.stores.vectors.partitions import partition_of

        kb = await self._still_there(tenant, kb)
        live = await self._ledger.read(tenant, live_chunk_ids, kb)
        vectors = [await self._ledger.read(tenant, vector_count, kb)]
        mirror = self._scope.components.stores.derived
        if mirror and kb.space:
            place = partition_of(await self._ledger.read(tenant, tenant_id_of), kb.space)
            vectors.append(await mirror.provider.count(place))
        if not live or set(vectors) != {len(live)}:
            await self._still_there(tenant, kb)
            raise StoreError(f"of {len(live)} chunks {min(vectors)} have a vector", hint=UNTOUCHED)
        if await asyncio.to_thread(pair.waiting_ids) != (live, live):
            raise StoreError("the files do not hold what the ledger does", hint=UNTOUCHED)

    async def _replace_live(self, tenant: str, draft: KnowledgeBase, name: str, *, overwrite: bool) -> KnowledgeBase:
        """Give the collection's name to the kb that was built, and remove what had it."""
        replaces = overwrite and await self._ledger.of(tenant).kb(name) is not None
        try:
            async with self._access.audit.record_action(tenant, "kb.delete", [name] * replaces, name) as removal:
                async with self._ledger.transaction(tenant) as tx:
                    if overwrite:
                        live, gone = await tx.replace_kb(name, draft)
                    else:
                        live, gone = await tx.rename_kb(draft, name), 0
                removal.mark_done(name, gone)
        except CollectionExists as error:
            raise CollectionExists(EXISTS, remedy=REPLACE) from error
        except NotFoundError as error:
            raise _taken_over(name) from error
        return live

    async def _documents(self, tenant: str, kb: KnowledgeBase) -> list[Document]:
        found: list[Document] = []
        while page := await self._ledger.of(tenant).documents(kb, after=found[-1].id if found else "", limit=PAGE):
            found += page
        return found

    async def _clear_drafts(self, tenant: str, pair: FilePair) -> None:
        try:
            await self._upkeep.tidy(tenant, pair, drafts=True)
        except RagstoneError as error:
            # The next build does it; what this one has to say must not be lost over it.
            logger.warning("what a build left of '%s' is still there: %s", pair.collection, error)

    async def _refuse_existing(self, tenant: str, name: str, request: BuildRequest) -> None:
        """Refuse to replace what is there unasked, or what was never built from a corpus."""
        from ragstone.ingest.sources.files.source import CORPUS

        there = await self._ledger.of(tenant).kb(name)
        if there is None:
            return
        if not request.overwrite:
            raise CollectionExists(EXISTS, remedy=REPLACE)
        sources = {document.source for document in await self._documents(tenant, there)}
        if sources and CORPUS not in sources:
            raise InputError(
                f"knowledge base '{name}' was not built from a corpus", remedy=Remedy(Action.RENAME_COLLECTION)
            )


def _name(collection: str | None) -> str:
    return check_kb_name(COLLECTION if collection is None else collection)


def _check(report: IngestReport) -> None:
    """Refuse what did not come in whole: the collection that there is stays."""
    if report.failed:
        raise InputError(f"the corpus could not be taken in: {report.failed[0].error}", hint=UNTOUCHED)
    if not report.chunks:
        raise InputError("there is nothing in the corpus", hint=UNTOUCHED)
    embedding = [note for note in report.degraded if note.startswith("embedding")]
    if report.skipped_chunks or embedding:
        why = "; ".join(embedding) or f"the model refused {report.skipped_chunks} chunks"
        raise ModelError(f"the corpus could not be embedded as a whole: {why}", hint=UNTOUCHED)
    if report.degraded:
        raise StoreError("; ".join(report.degraded), hint=UNTOUCHED)


def _state(ids: set[str] | None, live: set[str]) -> FileState:
    if ids is None:
        return "missing"
    return "loaded" if ids == live else "stale"


def _taken_over(name: str) -> CollectionBusy:
    return CollectionBusy(
        f"another build of collection '{name}' removed this one's work", hint="try again when it is done"
    )


def _result(kb: KnowledgeBase, pair: FilePair, chunks: list[ChunkMetadata], seconds: float) -> BuildResult:
    assert kb.space is not None
    sizes = [int(chunk.fields["tokens"]) for chunk in chunks]
    return BuildResult(
        total_chunks=len(chunks),
        bm25_index_path=str(pair.index),
        vector_db_collection=kb.name,
        metadata_path=str(pair.metadata),
        embedding_model=model_name(kb.space.model),
        embedding_dimension=kb.space.dimension,
        duration_seconds=round(seconds, 3),
        statistics={
            "avg_chunk_size": round(sum(sizes) / len(sizes)),
            "total_tokens": sum(sizes),
            "min_chunk_size": min(sizes),
            "max_chunk_size": max(sizes),
            "documents": len({chunk.fields["document_id"] for chunk in chunks}),
        },
    )

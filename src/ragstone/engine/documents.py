"""The documents of a tenant: take them in, list and read them, and remove them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.core.documents import ChunkRecord, DocumentVersion, IngestReport, OriginalFile
from ragstone.core.errors import InputError, NotFoundError, QuotaExceeded, SettingsError
from ragstone.core.filters import parse_filter
from ragstone.core.ids import content_hash
from ragstone.core.jobs import DocumentStatus, Priority, Status, UnderWay
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Document, Failure, Item, KnowledgeBase, LiveChunk, Metadata, failure_of
from ragstone.engine.access import WorkspacePart, record_caller, within_kbs
from ragstone.query.context import checked_count

if TYPE_CHECKING:
    # Only some calls need these: they are imported there, and a search starts the sooner.
    from ragstone.ingest.work import OnProgress, SourceListing, WorkItem

READ, UPLOAD, DELETE = "document.read", "document.upload", "document.delete"
WEB = "web"
BATCH = 32


@record_caller
class Documents(WorkspacePart):
    """Documents of a tenant; `kb` is that of the settings unless another one is named."""

    @within_kbs
    async def upload(
        self,
        content: bytes,
        filename: str,
        *,
        title: str = "",
        metadata: Metadata | None = None,
        external_id: str | None = None,
        priority: Priority = Priority.UPLOAD,
        kb: str | None = None,
    ) -> DocumentStatus:
        """Upload a file; it is processed in the background. Once this returns, the file is stored safely.

        Equal bytes are one document unless an `external_id` tells them apart. Of the metadata, `description`,
        `category` and `tags` are shown with the document.
        """
        from ragstone.ingest.diff import assign_ids
        from ragstone.ingest.uploads import SOURCE
        from ragstone.ingest.work import JobBatch, WorkItem

        tenant, name = await self._scope.admit(), self._scope.kb_name(kb)
        item = self._build_item(content, filename, title, metadata or {}, external_id)
        scope, seed = await self._open_kb(tenant, name)
        called = item.external_id
        identity = (await assign_ids(self._ledger, tenant, seed, scope, SOURCE, [called]))[called]
        live = (await self._ledger.of(tenant).find(scope, SOURCE, [called])).get(called)
        waiting = (await self._ledger.of(tenant).under_way([identity])).get(identity, UnderWay())
        is_coming = waiting.content_hash not in ("", content_hash(content))
        if is_coming or not self._components.preparer.is_current(item, live):
            await self._queue_document(tenant, scope, WorkItem(item, JobBatch(), document_id=identity), priority)
            await self._access.audit.record_event(tenant, UPLOAD, identity, kb=name, count=1)
        return await self.status(identity)

    async def queue(
        self, *paths: str | Path, kb: str | None = None
    ) -> tuple[Sequence[DocumentStatus], Sequence[Failure]]:
        """Queue files and the documents under folders, as `ingest` would take them in.

        What is live already and has not changed is returned as it is; what is gone from a folder goes. Among the
        failures those with the code `skipped` are pictures that were not named themselves.
        """
        from ragstone.ingest.diff import SourceDiff
        from ragstone.ingest.work import JobBatch, RunReport, WorkItem

        tenant = await self._scope.admit()
        scope, seed = await self._open_kb(tenant, self._scope.kb_name(kb))
        diff = SourceDiff(self._ledger, self._components.preparer, tenant, scope, RunReport(), seed=seed)
        entries, listings = await self._scan(tenant, scope, paths)
        for listing in listings:
            await diff.expect_listing(listing)
        queued: list[DocumentStatus] = []
        failed: list[Failure] = []
        uploaded = 0
        while batch := await asyncio.to_thread(lambda: [*islice(entries, BATCH)]):
            unread = [entry for entry in batch if isinstance(entry, Failure)]
            for failure in unread:
                diff.note_unread(failure)
            failed += unread
            work_items = [WorkItem(entry, JobBatch()) for entry in batch if isinstance(entry, Item)]
            todo, current = await diff.compare(work_items)
            for work in todo:
                try:
                    await self._queue_document(tenant, scope, work, Priority.UPLOAD, keep=False)
                    current.append(work)
                    uploaded += 1
                except QuotaExceeded as error:
                    failed.append(failure_of(work.item.uri, error))
            # A document that was deleted since has no status, and that is no failure of the others.
            statuses = [await self._ledger.of(tenant).status(work.document_id) for work in current]
            queued += [status for status in statuses if status]
        await diff.remove_missing()
        if uploaded:
            await self._access.audit.record_event(tenant, UPLOAD, kb=scope.name, count=uploaded)
        return queued, failed

    async def ingest(
        self, *paths: str | Path, kb: str | None = None, on_progress: OnProgress | None = None
    ) -> IngestReport:
        """Ingest files and folders; unchanged files are skipped, and what is gone from a folder is removed."""
        tenant = await self._scope.admit()
        known = await self._ledger.of(tenant).kb(self._scope.kb_name(kb))
        items, listings = await self._scan(tenant, known, paths)
        return await self.ingest_items(items, kb=kb, on_progress=on_progress, listings=listings)

    @within_kbs
    async def ingest_items(
        self,
        items: Iterable[Item | Failure],
        *,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
        listings: Sequence[SourceListing] = (),
    ) -> IngestReport:
        """Ingest items of any source, here and now; documents that a listing no longer has are removed."""
        tenant, name = self._scope.tenant, self._scope.kb_name(kb)
        report = await self._components.pipeline.run(tenant, name, items, on_progress, listings=listings)
        if taken := report.added + report.updated:
            await self._access.audit.record_event(tenant, UPLOAD, kb=name, count=taken)
        if report.removed:
            await self._access.audit.record_event(tenant, "document.gone", kb=name, count=report.removed)
        return report

    @within_kbs
    async def ingest_urls(
        self, *urls: str, kb: str | None = None, on_progress: OnProgress | None = None
    ) -> IngestReport:
        """Ingest web pages, through the guarded fetcher."""
        from ragstone.ingest.diff import with_read_time

        await self._scope.admit()
        # Only a configured source may name variables of the environment; an address has no bare brace anyway.
        config = {"urls": [url.replace("{", "%7B") for url in urls]}
        try:
            source = self._components.build_source("web", WEB, config)
        except SettingsError as error:  # it is the caller that has set this
            raise InputError(str(error), hint=error.hint, remedy=error.remedy) from error
        try:
            items = [
                with_read_time(item) if isinstance(item, Item) else item
                async for page in source.fetch(None)
                for item in page.items
            ]
        finally:
            await source.close()
        return await self.ingest_items(items, kb=kb, on_progress=on_progress)

    async def dry_run(
        self, *paths: str | Path, kb: str | None = None, on_progress: OnProgress | None = None
    ) -> IngestReport:
        """Report what `ingest` would do: files are read, no model is asked and nothing is written."""
        from ragstone.ingest.dry_run import dry_run

        limits = self._scope.settings.limits
        tenant = await self._scope.admit()
        scope = await self._ledger.of(tenant).kb(self._scope.kb_name(kb))
        items, listings = await self._scan(tenant, scope, paths)
        preparer = self._components.preparer
        return await dry_run(self._ledger, preparer, tenant, scope, items, listings, limits, on_progress)

    async def _scan(
        self, tenant: str, kb: KnowledgeBase | None, paths: Sequence[str | Path]
    ) -> tuple[Iterator[Item | Failure], Sequence[SourceListing]]:
        """Return the documents at these paths that no source has brought, and a listing of each folder."""
        from ragstone.ingest.sources.files.owners import find_path_owners
        from ragstone.ingest.sources.files.read import scan_paths

        sources = self._components.stores.sources.of(tenant)
        if "" in paths:
            raise InputError("a path is empty", hint="name a file or a folder")
        named = [Path(path) for path in paths]
        owners = await find_path_owners(self._ledger, sources, tenant, kb, named) if kb else {}
        return await scan_paths(named, self._scope.settings.limits, owners)

    @within_kbs
    async def list(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        status: Status | None = None,
        file_type: str | None = None,
        after: str = "",
        limit: int = 100,
        kb: str | None = None,
    ) -> Sequence[Document]:
        """Return a page of documents in order of id, starting behind `after`; those that can be found, or of a status.

        A `file_type` is as the name of the file ends: `pdf`, `txt`, `docx` and others.
        """
        checked_count("limit", limit, most=10_000)
        scope = await self._scope.kb(kb)
        ledger = self._ledger.of(self._scope.tenant)
        meant = await ledger.resolve_sources(scope, parse_filter(where))
        wanted = file_type.lower() if file_type is not None else None
        return await ledger.documents(scope, where=meant, status=status, file_type=wanted, after=after, limit=limit)

    @within_kbs
    async def get(self, document_id: str) -> Document:
        """Return a document, or raise `NotFoundError`."""
        tenant = await self._scope.admit()
        found = await self._ledger.of(tenant).document(document_id)
        if found is None or not self._scope.sees(found.kb):
            await self._access.audit.record_denial(tenant, READ, document_id)
            raise _no_document(document_id)
        await self._access.audit.record_read(tenant, READ, target=document_id, kb=found.kb)
        return found

    @within_kbs
    async def text(self, document_id: str) -> str:
        """Return a document's text, that citation offsets point into."""
        tenant, audit = await self._scope.admit(), self._access.audit
        try:
            if not await self._scope.sees_document(document_id):
                raise _no_document(document_id)
            text = await self._ledger.of(tenant).text(document_id)
        except NotFoundError:
            await audit.record_denial(tenant, READ, document_id)
            raise
        await audit.record_read(tenant, READ, target=document_id)
        return text

    @within_kbs
    async def chunks(self, document_id: str) -> Sequence[LiveChunk]:
        """Return the live chunks of a document, in order."""
        tenant = await self._scope.admit()
        sees = await self._scope.sees_document(document_id)
        found = await self._ledger.of(tenant).document_chunks(document_id) if sees else ()
        await self._record_read(tenant, document_id, bool(found))
        return found

    @within_kbs
    async def chunk_records(self, document_id: str) -> Sequence[ChunkRecord]:
        """Return the same with the models of their vectors and with metadata, under the names that others know."""
        tenant = await self._scope.admit()
        sees = await self._scope.sees_document(document_id)
        found = await self._ledger.of(tenant).chunk_records(document_id) if sees else ()
        await self._record_read(tenant, document_id, bool(found))
        return found

    @within_kbs
    async def status(self, document_id: str) -> DocumentStatus:
        """Return what has become of a document, or raise `NotFoundError`."""
        tenant = await self._scope.admit()
        found = await self._ledger.of(tenant).status(document_id)
        if found is None or not await self._scope.sees_document(document_id):
            await self._access.audit.record_denial(tenant, READ, document_id)
            raise _no_document(document_id)
        return found

    @within_kbs
    async def original(self, document_id: str) -> OriginalFile:
        """Return the file that a document was made from, or raise `NotFoundError` where it is not kept."""
        status = await self.status(document_id)
        tenant, name = self._scope.tenant, status.file_path.rpartition("/")[2]
        content = (await self._ledger.of(tenant).originals([(document_id, name)]))[0] if name else None
        if content is None:
            raise NotFoundError(f"the file of document {document_id} is not kept; its text is")
        await self._access.audit.record_read(tenant, READ, target=document_id)
        return OriginalFile(status.filename, content)

    @within_kbs
    async def versions(self, document_id: str) -> Sequence[DocumentVersion]:
        """Return the contents that came in for a document, newest first; none for what no job brought."""
        from ragstone.stores.ledger.document_rows import list_versions

        await self.status(document_id)
        return await self._ledger.read(self._scope.tenant, list_versions, document_id)

    @within_kbs
    async def delete(self, document_id: str) -> bool:
        """Remove a document with everything derived from it; False when there is none."""
        return bool(await self.delete_many(document_id))

    @within_kbs
    async def delete_many(self, *document_ids: str) -> Sequence[str]:
        """Remove documents with everything derived from them; return the ids of those that there were.

        Each goes in a transaction of its own. The files of built collections are rewritten once, at the end.
        """
        tenant, audit = await self._scope.admit(), self._access.audit
        known = []
        for document_id in dict.fromkeys(document_ids):
            status = await self._ledger.of(tenant).status(document_id)
            if status is None or not await self._scope.sees_document(document_id):
                await audit.record_denial(tenant, DELETE, document_id)
            else:
                known.append(document_id)
        deleted: list[str] = []
        if not known:
            return deleted
        async with audit.record_action(tenant, DELETE, known) as removal:
            try:
                for document_id in known:
                    async with self._ledger.transaction(tenant) as tx:
                        gone = await tx.delete(document_id)
                    removal.mark_done(document_id, int(gone))
                    deleted += [document_id] if gone else []
            finally:
                await self._components.file_upkeep.refresh(tenant)
        return deleted

    def _build_item(
        self, content: bytes, filename: str, title: str, metadata: Metadata, external_id: str | None
    ) -> Item:
        from ragstone.core.documents import GIVEN_BYTES, checked_facts, clean_metadata
        from ragstone.ingest.prepare import find_unusable
        from ragstone.ingest.uploads import SOURCE, check_external_id, check_upload

        limits = self._scope.settings.limits
        uri = check_upload(content, filename, limits.file_mb, limits.upload_types)
        checked_facts(title, metadata)
        item = Item(
            source=SOURCE,
            external_id=check_external_id(external_id or content_hash(content)),
            uri=uri,
            content=content,
            title=title,
            metadata={"source_type": "upload", "filename": uri, **clean_metadata(metadata, GIVEN_BYTES)},
            modified_at=None,
        )
        if problem := find_unusable(item):
            raise InputError(problem.error)
        return item

    async def _open_kb(self, tenant: str, name: str) -> tuple[KnowledgeBase, str]:
        """Return a kb to write to, made if there is none, and the seed of the tenant's document ids."""
        await self._access.write(tenant)
        async with self._ledger.transaction(tenant) as tx:
            scope = await tx.open_kb(name)
        return scope, await self._access.seed(tenant)

    async def _queue_document(
        self, tenant: str, kb: KnowledgeBase, work: WorkItem, priority: Priority, *, keep: bool = True
    ) -> None:
        from ragstone.ingest.jobs.sync import new_jobs

        # What is there already, or on its way, needs no room for another document.
        new = await self._access.is_limited(tenant) and not await self._ledger.of(tenant).status(work.document_id)
        # A file that is kept and its text need room beside each other: what is let in can also be finished.
        size = len(work.item.content) * (2 if keep else 1)
        async with self._access.taking_in(tenant, documents=int(new), size=size, queued=True):
            (wanted,) = await new_jobs(self._ledger, tenant, [work], priority, keep=keep, notify=True)
            async with self._ledger.transaction(tenant) as tx:
                job = await tx.enqueue(kb, wanted)
        if job.facts["original"] != wanted.facts["original"]:
            # The same bytes were on their way already: the job has its own copy.
            await self._ledger.of(tenant).drop_originals([(work.document_id, wanted.facts["original"])])
        await self._components.stores.queue.signal_work(tenant)

    async def _record_read(self, tenant: str, document_id: str, found: bool) -> None:
        """Record that a document was read, or asked for and not there: one may also have no chunks yet."""
        if found or await self._ledger.of(tenant).status(document_id) is not None:
            await self._access.audit.record_read(tenant, READ, target=document_id)
        else:
            await self._access.audit.record_denial(tenant, READ, document_id)


def _no_document(document_id: str) -> NotFoundError:
    return NotFoundError(f"no document {document_id}", remedy=Remedy(Action.LIST_DOCUMENTS))

"""What is kept: how it comes in, and its upkeep as documents and kbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.core.activity import Vote
from ragstone.core.audit import AuditEntry
from ragstone.core.collections import Collection, collection_name
from ragstone.core.documents import ChunkRecord
from ragstone.core.erasure import Receipt, Target, TargetKind
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import TenantBook
from ragstone.core.types import Document, Failure, IngestReport, Item, KnowledgeBase, LiveChunk, Stats
from ragstone.embeddings import EmbeddingKeeper
from ragstone.query.request import checked_count

if TYPE_CHECKING:
    # Only some methods need these: they are imported there, and a search starts the sooner.
    from ragstone.activity import Activity
    from ragstone.corpora.builder import CorpusBuilder
    from ragstone.ingest.diff import SourceListing
    from ragstone.ingest.work import OnProgress
    from ragstone.intake import Intake
    from ragstone.transfer.mover import Mover

READ = "document.read"
MOST_AUDITED = 100_000


class Library(EmbeddingKeeper):
    """The half of an engine that looks after what is kept. `Engine` has the other half, and opens both."""

    async def ingest(
        self,
        *paths: str | Path,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Take in files and folders; what has not changed since is left alone, what is gone from a folder goes."""
        from ragstone.ingest.sources.files.listing import scan_paths

        items, listings = await scan_paths(paths, self.settings.limits)
        return await self.ingest_items(
            items, tenant=tenant, kb=kb, on_progress=on_progress, listings=listings
        )

    async def ingest_items(
        self,
        items: Iterable[Item | Failure],
        *,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
        listings: Sequence[SourceListing] = (),
    ) -> IngestReport:
        """Take in items of any source, here and now; documents that a listing no longer has are removed."""
        pipeline, owner, name = self._parts.pipeline(self._model), self._tenant(tenant), self._name(kb)
        report = await pipeline.run(owner, name, items, on_progress, listings=listings)
        if report.removed:
            await self._parts.gate.audit.came_about(owner, "document.gone", kb=name, count=report.removed)
        return report

    async def ingest_urls(
        self,
        *urls: str,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Take in web pages, through the guarded fetcher."""
        await self._owner(tenant)
        items = await self.intake.fetch_pages(urls)
        return await self.ingest_items(items, tenant=tenant, kb=kb, on_progress=on_progress)

    async def preview(
        self,
        *paths: str | Path,
        tenant: str | None = None,
        kb: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """What `ingest` would do: files are read, no model is asked and nothing is written."""
        from ragstone.ingest.dry_run import dry_run
        from ragstone.ingest.sources.files.listing import scan_paths

        items, listings = await scan_paths(paths, self.settings.limits)
        owner = await self._owner(tenant)
        scope = await self._parts.ledger.kb(owner, self._name(kb))
        return await dry_run(
            self._parts.ledger,
            self._parts.preparer(self._model),
            owner,
            scope,
            items,
            listings,
            self.settings.limits,
            on_progress,
        )

    @property
    def tenants(self) -> TenantBook:
        """Who there is, what they may use and what they have used."""
        return self._parts.tenants

    async def is_on(self, flag: str, *, tenant: str | None = None) -> bool:
        """Whether a feature is on for a tenant, as `flags.NAME` of its settings says."""
        return await self._parts.gate.is_on(self._tenant(tenant), flag)

    @property
    def moves(self) -> Mover:
        """Archives out and in, and moves to other stores."""
        return self._parts.mover()

    @property
    def corpora(self) -> CorpusBuilder:
        """Collections that are built from one corpus file as a whole."""
        return self._parts.corpora()

    @property
    def intake(self) -> Intake:
        """Uploads, sources, jobs and workers: what is taken in now and worked on later."""
        return self._parts.intake(self._model)

    async def documents(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        after: str = "",
        limit: int = 100,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> list[Document]:
        """A page of documents in order of id, starting behind `after`."""
        checked_count("limit", limit, most=10_000)
        scope = await self._kb(tenant, kb)
        return await self._parts.ledger.documents(
            self._tenant(tenant), scope, where=parse_filter(where), after=after, limit=limit
        )

    async def document(self, document_id: str, *, tenant: str | None = None) -> Document:
        """One document, or `NotFoundError`."""
        owner = await self._owner(tenant)
        found = await self._parts.ledger.document(owner, document_id)
        if found is None:
            await self._parts.gate.audit.denied(owner, READ, document_id)
            raise NotFoundError(f"no document {document_id}", remedy=Remedy(Action.LIST_DOCUMENTS))
        await self._parts.gate.audit.saw(owner, READ, target=document_id, kb=found.kb)
        return found

    async def text(self, document_id: str, *, tenant: str | None = None) -> str:
        """A document's text, that citation offsets point into."""
        owner, audit = await self._owner(tenant), self._parts.gate.audit
        try:
            text = await self._parts.ledger.text(owner, document_id)
        except NotFoundError:
            await audit.denied(owner, READ, document_id)
            raise
        await audit.saw(owner, READ, target=document_id)
        return text

    async def chunks(self, document_id: str, *, tenant: str | None = None) -> list[LiveChunk]:
        """How a document was cut, in order."""
        owner = await self._owner(tenant)
        found = await self._parts.ledger.document_chunks(owner, document_id)
        await self._read(owner, document_id, bool(found))
        return found

    async def chunk_records(self, document_id: str, *, tenant: str | None = None) -> list[ChunkRecord]:
        """The same with the models of their vectors and with metadata, under the names that others know."""
        owner = await self._owner(tenant)
        found = await self._parts.ledger.chunk_records(owner, document_id)
        await self._read(owner, document_id, bool(found))
        return found

    async def _read(self, owner: str, document_id: str, found: bool) -> None:
        """Have recorded that a document was read, or asked for and not there: one may also have no chunks yet."""
        there = found or await self._parts.ledger.status(owner, document_id) is not None
        if there:
            await self._parts.gate.audit.saw(owner, READ, target=document_id)
        else:
            await self._parts.gate.audit.denied(owner, READ, document_id)

    async def delete(self, document_id: str, *, tenant: str | None = None) -> bool:
        """Remove a document with everything derived from it; False when there is none."""
        owner, audit = await self._owner(tenant), self._parts.gate.audit
        if await self._parts.ledger.status(owner, document_id) is None:
            await audit.denied(owner, "document.delete", document_id)
            return False
        async with audit.carrying_out(owner, "document.delete", [document_id]) as removal:
            async with self._parts.ledger.transaction(owner) as tx:
                gone = await tx.delete(document_id)
            removal.did(document_id, int(gone))
            await self.corpora.refresh(owner)
        return gone

    async def delete_kb(self, kb: str, *, tenant: str | None = None) -> int:
        """Remove a kb; the number of documents that went with it."""
        owner = await self._owner(tenant)
        if await self._parts.ledger.kb(owner, kb) is None:
            return 0
        async with self._parts.gate.audit.carrying_out(owner, "kb.delete", [kb], kb) as removal:
            async with self._parts.ledger.transaction(owner) as tx:
                gone = await tx.delete_kb(kb)
            removal.did(kb, gone)
            await self.corpora.refresh(owner)
        return gone

    async def erase(
        self, kind: TargetKind, *names: str, tenant: str | None = None, kb: str | None = None
    ) -> list[Receipt]:
        """Remove documents by id, or sources, kbs or tenants by name, everywhere; receipts of those that there were.

        Slower than `delete`: what is removed is overwritten, and looked for in every store afterwards.
        """
        await self.activity.flush()  # what is still on its way to the disk is to go, too
        eraser = self._parts.eraser()
        if kind == "tenant":
            return [await eraser.erase_tenant(name) for name in names]
        scope = self._name(kb) if kind == "source" else ""
        owner = await self._owner(tenant)
        receipts = await eraser.erase(owner, [Target(kind, name, scope) for name in names])
        await self.corpora.refresh(owner)
        return receipts

    async def audit(
        self,
        *,
        action: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> list[AuditEntry]:
        """What was done for a tenant and by whom, newest first; `action` is one, or `tenant` for all of `tenant.…`."""
        checked_count("limit", limit, most=MOST_AUDITED)
        owner = await self._owner(tenant)
        return await self._parts.gate.audit.entries(owner, action=action, since=since, limit=limit)

    async def kbs(self, *, tenant: str | None = None) -> Sequence[KnowledgeBase]:
        """All kbs of a tenant."""
        return await self._parts.ledger.kbs(await self._owner(tenant))

    async def collections(self, *, tenant: str | None = None) -> list[Collection]:
        """What a tenant has of each source type, by the names that people use, such as `emails_acme`."""
        owner = await self._owner(tenant)
        found = await self._parts.ledger.source_types(owner)
        return [Collection(collection_name(kind, owner), kind, *counts) for kind, *counts in found]

    async def stats(self, *, tenant: str | None = None, kb: str | None = None) -> Stats:
        """Counts of live content."""
        scope = await self._kb(tenant, kb)
        return await self._parts.ledger.stats(self._tenant(tenant), scope)

    @property
    def activity(self) -> Activity:
        """What was asked, votes on what was found, and golden queries."""
        return self._parts.activity()

    async def feedback(
        self,
        query: str,
        chunk_ids: Sequence[str],
        vote: Vote = "used",
        *,
        voter: str = "",
        tenant: str | None = None,
        kb: str | None = None,
    ) -> int:
        """Say which passages of a search were of use, or not; how many were written down."""
        return await self.activity.vote(query, chunk_ids, vote, voter=voter, tenant=tenant, kb=kb)

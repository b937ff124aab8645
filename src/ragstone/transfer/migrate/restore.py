"""Write the content of a tenant into another ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ragstone.core.clock import now
from ragstone.core.errors import AccessDenied, InputError, RagstoneError, SettingsError
from ragstone.core.jobs import SourceRecord
from ragstone.core.tenants import Admission
from ragstone.core.types import KnowledgeBase
from ragstone.ingest.jobs.schedule import next_run
from ragstone.ingest.sources import find_references, refuse_local_source
from ragstone.language.terms import analyze_chunks
from ragstone.stores.factory import Stores
from ragstone.stores.ledger import restore
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.originals import mark_origin
from ragstone.stores.ledger.restore import Arriving, Existing, Spaces, restore_source, restore_spaces
from ragstone.stores.ledger.snapshots import DocumentSnapshot, KbFacts, Key
from ragstone.stores.ledger.sources import SecretKeys
from ragstone.stores.ledger.transaction import SqlTransaction
from ragstone.stores.sql.database import Connection
from ragstone.transfer.reports import SHOWN

Files = Callable[[DocumentSnapshot], bytes | None]
"""Reads the original of a document, if there is one."""

Kept = Mapping[str, tuple[str, str]]
"""Files by the id that a document had: where it was put, and under which name."""
FIRST = 16
"""Documents that are written before the database is asked to look at them for the first time."""
Staged = Sequence[tuple[DocumentSnapshot, tuple[str, int]]]
"""Documents with the id and the number of the version that was written of them."""


class OpenedKb(NamedTuple):
    """A kb that documents are restored to."""

    kb: KnowledgeBase
    spaces: Spaces


@dataclass(slots=True)
class Restored:
    """Counts of the documents restored so far."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    left: int = 0
    differing: list[str] = field(default_factory=list)
    chunks: int = 0
    files: int = 0

    @property
    def documents_written(self) -> int:
        return self.added + self.replaced


class _Batch(NamedTuple):
    """The part of a batch to write: new documents, and amendments of existing ones."""

    new: list[Arriving]
    amended: list[tuple[Existing, DocumentSnapshot]]


class Restorer:
    """Restores documents of one tenant.

    `overwrite` replaces what is there and differs. `origin` names the one ledger that all there is comes from: then its
    Spaces are followed and chunks have to have the same ids for a document to be the same.
    """

    def __init__(
        self,
        ledger: SqlLedger,
        tenant: str,
        admission: Admission | None = None,
        *,
        overwrite: bool = False,
        origin: str = "",
    ) -> None:
        self._ledger = ledger
        self._tenant = tenant
        self._admission = admission
        self._overwrite = overwrite or bool(origin)
        self._origin = origin
        self._adopted: dict[str, str] = {}
        """Ids that documents have here and had otherwise where they come from, for what came in with them."""
        self._counted = 0
        """Chunks there were when the database last counted them."""
        self.done = Restored()

    async def open(self, facts: KbFacts) -> OpenedKb:
        """Return the kb of that name with its Spaces; create it if it does not exist."""
        async with self._ledger.transaction(self._tenant) as tx:
            kb = await tx.open_kb(facts.name, draft=True)
            await tx.run(restore.date_kb, kb, facts.created_at)
            opened = OpenedKb(*await tx.run(restore_spaces, kb, facts.spaces, follow=bool(self._origin)))
            await self._sign(tx)
        return opened

    async def take(self, opened: OpenedKb, documents: Sequence[DocumentSnapshot], files: Files) -> None:
        """Make documents live, all that are new and, if they may be overwritten, those that differ.

        The first come in small batches: what a database does for rows it has never counted takes ever longer.
        """
        at = 0
        while at < len(documents):
            batch = documents[at : at + max(FIRST, self.done.documents_written)]
            await self._take(opened, batch, files)
            at += len(batch)

    async def _take(self, opened: OpenedKb, documents: Sequence[DocumentSnapshot], files: Files) -> None:
        keys = [document.key for document in documents]
        there = await self._ledger.read(self._tenant, restore.existing, opened.kb, keys)
        batch = await asyncio.to_thread(self._sort_out, documents, there)
        if not batch.new and not batch.amended:
            return
        if self._admission is None:
            await self._store(opened, batch, there, files)
            return
        new = [arriving.document for arriving in batch.new]
        async with self._admission.taking_in(
            self._tenant,
            documents=sum(document.key not in there for document in new),
            chunks=sum(len(document.chunks) for document in new),
            size=sum(len(document.text.encode()) for document in new),
        ):
            await self._store(opened, batch, there, files)

    async def look_around(self) -> None:
        """Let the database count its rows: it plans what follows by that."""
        if self.done.chunks > self._counted:
            await self._ledger.write(self._tenant, restore.look_around)
            self._counted = self.done.chunks

    async def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents that are no longer in the ledger that the others come from."""
        async with self._ledger.transaction(self._tenant) as tx:
            for document_id in document_ids:
                await tx.delete(document_id)
            await self._sign(tx)

    async def remove_kb(self, name: str) -> None:
        async with self._ledger.transaction(self._tenant) as tx:
            await tx.delete_kb(name)
            await self._sign(tx)

    def _sort_out(self, documents: Sequence[DocumentSnapshot], there: Mapping[Key, Existing]) -> _Batch:
        batch = _Batch([], [])
        for document in documents:
            known = there.get(document.key)
            if known and known.id != document.id:
                self._adopted[document.id] = known.id
            if known and known.version and self._is_same(known, document):
                self.done.unchanged += 1
            elif known and known.version and not self._overwrite:
                self.done.left += 1
                self.done.differing += [document.uri][: SHOWN - len(self.done.differing)]
            elif known and known.version and self._has_same_chunks(known, document):
                batch.amended.append((known, document))
            else:
                texts = [chunk.chunk.contextual for chunk in document.chunks]
                terms = analyze_chunks(texts, str(document.metadata.get("language") or ""))
                parent = self._adopted.get(document.parent_id, document.parent_id)
                batch.new.append(Arriving(document, terms, parent))
        return batch

    def _is_same(self, known: Existing, document: DocumentSnapshot) -> bool:
        if self._origin:
            return False  # the ledger that is followed was compared already
        return known.content == restore.content_of(document)

    def _has_same_chunks(self, known: Existing, document: DocumentSnapshot) -> bool:
        """Return whether the chunks that are here are those of the document, so that only its facts are written."""
        if known.chunk_ids != _chunk_ids(document) or known.content_hash != document.content_hash:
            return False
        # Two ledgers may give the same ids to chunks that were cut in different ways; one never gives an id twice.
        return bool(self._origin) or known.recipe == document.recipe

    async def _store(self, opened: OpenedKb, batch: _Batch, there: Mapping[Key, Existing], files: Files) -> None:
        kept = await self._keep(batch, files)
        staged: Staged | None = None
        if self._ledger.has_followers:
            async with self._ledger.transaction(self._tenant) as tx:
                staged = await self._stage(tx, opened, batch, there)
            await self._prepare(opened, staged)
        async with self._ledger.transaction(self._tenant) as tx:
            if staged is None:
                staged = await self._stage(tx, opened, batch, there)
            await tx.activate_all(opened.kb, [place for _, place in staged])
            await tx.run(_finish, opened, batch, staged, kept)
            await self._sign(tx)
        self._count(batch, staged, there)
        self.done.files += len(kept)
        if self.done.chunks > 2 * self._counted:
            await self.look_around()

    async def _stage(
        self, tx: SqlTransaction, opened: OpenedKb, batch: _Batch, there: Mapping[Key, Existing]
    ) -> Staged:
        """Stage new versions, except of documents that were written by others since they were looked up."""
        staged = await tx.run(_stage, opened, batch.new, there)
        await self._sign(tx)
        return staged

    async def _prepare(self, opened: OpenedKb, staged: Staged) -> None:
        versions = [place for _, place in staged]
        try:
            await self._ledger.prepare(self._tenant, opened.kb, versions)
        except RagstoneError:
            async with self._ledger.transaction(self._tenant) as tx:
                await tx.discard_all(opened.kb, versions)
                await self._sign(tx)
            raise

    async def _keep(self, batch: _Batch, files: Files) -> Kept:
        """Store originals where their documents will be; one that is not used in the end is cleaned up."""
        kept: dict[str, tuple[str, str]] = {}
        for document in [arriving.document for arriving in batch.new if arriving.document.file]:
            content = await asyncio.to_thread(files, document)
            if content is not None:
                identity = self._adopted.get(document.id, document.id)
                (name,) = await self._ledger.of(self._tenant).keep_originals([(identity, content)])
                kept[document.id] = identity, name
        return kept

    def _count(self, batch: _Batch, staged: Staged, there: Mapping[Key, Existing]) -> None:
        for document, _ in staged:
            known = there.get(document.key)
            self.done.replaced += bool(known and known.version)
            self.done.added += not (known and known.version)
            self.done.chunks += len(document.chunks)
        self.done.replaced += len(batch.amended)
        self.done.left += len(batch.new) - len(staged)

    async def _sign(self, tx: SqlTransaction) -> None:
        if self._origin:
            await tx.run(mark_origin, self._origin)


def _chunk_ids(document: DocumentSnapshot) -> tuple[str, ...]:
    return tuple(chunk.id for chunk in document.chunks)


def _version(there: Mapping[Key, Existing], arriving: Arriving) -> int:
    known = there.get(arriving.document.key)
    return known.version if known else 0


def _stage(
    connection: Connection, tenant_id: str, opened: OpenedKb, new: Sequence[Arriving], there: Mapping[Key, Existing]
) -> Staged:
    found = restore.existing(connection, tenant_id, opened.kb, [arriving.document.key for arriving in new])
    place = restore.read_opened(connection, tenant_id, *opened)
    return [
        (arriving.document, restore.stage_snapshot(connection, tenant_id, *place, arriving))
        for arriving in new
        if _version(found, arriving) == _version(there, arriving)
    ]


def _finish(
    connection: Connection, tenant_id: str, opened: OpenedKb, batch: _Batch, staged: Staged, kept: Kept
) -> None:
    """Write everything documents have besides their versions."""
    for document, (identity, _) in staged:
        restore.date_document(connection, tenant_id, identity, document)
        place, name = kept.get(document.id, ("", ""))
        if document.file and place == identity:
            restore.keep_file(connection, tenant_id, opened.kb, identity, document, document.file, name)
    now_there = restore.read_opened(connection, tenant_id, *opened)
    for known, document in batch.amended:
        restore.amend(connection, tenant_id, *now_there, known, document)
        restore.date_document(connection, tenant_id, known.id, document)


async def add_sources(
    stores: Stores,
    tenant: str,
    opened: OpenedKb,
    sources: Sequence[tuple[SourceRecord, Sequence[str]]],
    secret_keys: SecretKeys,
    remote: bool,
) -> tuple[int, list[str]]:
    """Add sources of an archive, paused until they are resumed; return how many, and remarks about them."""
    added, remarks = 0, []
    for record, secrets in sources:
        if await stores.sources.of(tenant).get(record.kb, record.name):
            remarks.append(f"source '{record.name}' of '{record.kb}' is there already and was left as it is")
            continue
        try:
            if remote:
                refuse_local_source(record.kind, record.config)
            reads = _checked_references(record, secret_keys(record.kind))
            due = next_run(record.schedule, now())
            await put_source(stores, tenant, opened, replace(record, paused=True, next_run_at=due))
        except (AccessDenied, InputError, SettingsError) as error:
            remarks.append(f"source '{record.name}' of '{record.kb}' was left out: {error}")
            continue
        added += 1
        needs = f" once it has been given its {', '.join(secrets)}" if secrets else ""
        told = f"; it is then given {', '.join(reads)} of this server's environment" if reads else ""
        remarks.append(f"source '{record.name}' of '{record.kb}' rests: resume it{needs}{told}")
    return added, remarks


def _checked_references(record: SourceRecord, secret_keys: Collection[str]) -> list[str]:
    """Return the variables that a source reads. In an address, or in text that is sent, one could leak a secret."""
    found: dict[str, None] = {}
    for key, value in record.config.items():
        names = dict.fromkeys(match["name"] for match in find_references(value))
        if names and key not in secret_keys:
            raise SettingsError(f"its {key!s:.80} reads {', '.join(names)} of this server's environment")
        found.update(names)
    return [f"${{{name}}}" for name in found]


async def put_source(stores: Stores, tenant: str, opened: OpenedKb, record: SourceRecord) -> None:
    """Write a source with its cursor; one of that name is replaced."""
    sources = stores.sources.of(tenant)
    known = await sources.get(record.kb, record.name)
    if known and replace(known, id="") == replace(record, id=""):
        return
    if known:
        await sources.remove(known.id)
    added = await sources.add(opened.kb, record.name, record.kind, record.config, record.schedule, None)
    await stores.ledger.write(tenant, restore_source, added.id, record)

"""The ledger of one tenant: its kbs, documents, chunks and original files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragstone.core.clock import parse_moment
from ragstone.core.documents import (
    CATEGORY,
    FILE_PATH,
    TITLE,
    ChunkRecord,
    chunk_records,
    file_type_of,
    filename_of,
    tags_of,
    text_of,
)
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import Filter, leaves_of
from ragstone.core.jobs import DocumentStatus, Job, Status, UnderWay, read_of
from ragstone.core.model_types import model_name
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Chunk, Document, KnowledgeBase, LiveChunk, Metadata, Space, Stats, Vector
from ragstone.stores.blobs import Blobs
from ragstone.stores.ledger.document_rows import DOCUMENT, LIVE, OF_JOB, document_of, list_documents
from ragstone.stores.ledger.documents import (
    children,
    count_waiting,
    existing,
    known_vectors,
    read_kb,
    read_kbs,
    read_sequence,
    read_stats,
    resolve_sources,
)
from ragstone.stores.ledger.jobs import newest_job
from ragstone.stores.ledger.repository import TenantRepository, UnknownTenant, in_snapshot, in_snapshot_or
from ragstone.stores.ledger.versions import short_hash
from ragstone.stores.sql.database import Connection, in_parts, marks

CHUNK = (
    "SELECT c.id, c.document_id, c.version, c.chunk_index, c.content, c.context, c.start, c.stop, c.page, "
    "c.section, c.parent, c.level, c.kind, c.token_count, c.metadata, d.title, d.uri, d.source, d.metadata, "
    "d.chunk_count, d.updated_at "
    "FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version "
    "WHERE c.tenant_id = ?"
)
MODELS = """
SELECT c.id, s.model FROM chunks c
JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version
JOIN knowledge_bases k ON k.tenant_id = c.tenant_id AND k.id = c.kb_id
JOIN spaces s ON s.tenant_id = k.tenant_id AND s.id = k.live_space
JOIN vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = s.id
WHERE c.tenant_id = ? AND c.document_id = ?
"""
STATUS = """
SELECT d.uri, d.title, d.version, d.chunk_count, d.token_count, d.updated_at, d.created_at, d.media_type, d.metadata,
    CASE WHEN d.embedded = 1 THEN s.model ELSE '' END
FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id
LEFT JOIN spaces s ON s.tenant_id = d.tenant_id AND s.id = k.live_space WHERE d.tenant_id = ? AND d.id = ?
"""


class SqlTenantLedger(TenantRepository):
    """Implements `TenantLedger`."""

    @in_snapshot_or(lambda: None)
    def kb(self, connection: Connection, tenant_id: str, name: str) -> KnowledgeBase | None:
        return read_kb(connection, tenant_id, name)

    @in_snapshot_or(list)
    def kbs(self, connection: Connection, tenant_id: str) -> list[KnowledgeBase]:
        """Return all kbs in order of name."""
        return read_kbs(connection, tenant_id)

    async def space(self, kb: KnowledgeBase) -> Space | None:
        """Return the live Space as it is now."""
        found = await self.kb(kb.name)
        return found.space if found else None

    @in_snapshot
    def find(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
    ) -> dict[str, Document]:
        """Return the documents of a source by external id; ids without a document are left out."""
        found = {}
        for part in in_parts(external_ids):
            rows = connection.execute(
                f"{DOCUMENT}{LIVE} AND d.kb_id = ? AND d.source = ? AND d.external_id IN ({marks(part)})",
                (tenant_id, kb.id, source, *part),
            )
            found.update({row[3]: document_of(row) for row in rows})
        return found

    @in_snapshot_or(lambda: None)
    def document(self, connection: Connection, tenant_id: str, document_id: str) -> Document | None:
        row = connection.execute(f"{DOCUMENT}{LIVE} AND d.id = ?", (tenant_id, document_id)).fetchone()
        return document_of(row) if row else None

    @in_snapshot
    def documents(
        self,
        connection: Connection,
        tenant_id: str,
        kb: KnowledgeBase,
        *,
        where: Filter | None = None,
        status: Status | None = None,
        file_type: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Document]:
        """Return a page of documents in order of id, starting behind `after`; those that can be found, or of a status.

        A `file_type` is as the name of the file ends.
        """
        return list_documents(connection, tenant_id, kb, where, status, file_type, after, limit)

    @in_snapshot
    def text(self, connection: Connection, tenant_id: str, document_id: str) -> str:
        """Return the text of the live version."""
        row = connection.execute(
            "SELECT v.text FROM versions v "
            "JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id AND d.version = v.version "
            "WHERE d.tenant_id = ? AND d.id = ?",
            (tenant_id, document_id),
        ).fetchone()
        if row is None:
            raise NotFoundError(f"no document {document_id}", remedy=Remedy(Action.LIST_DOCUMENTS))
        return connection.dialect.unpack(row[0])

    @in_snapshot
    def chunks(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, chunk_ids: Sequence[str]
    ) -> Mapping[str, LiveChunk]:
        """Return live chunks of this kb among the ids; what is foreign, stale or deleted is left out."""
        found = {}
        for part in in_parts(chunk_ids):
            rows = connection.execute(f"{CHUNK} AND c.kb_id = ? AND c.id IN ({marks(part)})", (tenant_id, kb.id, *part))
            found.update({row[0]: _chunk(row) for row in rows})
        return found

    @in_snapshot
    def document_chunks(self, connection: Connection, tenant_id: str, document_id: str) -> list[LiveChunk]:
        """Return all live chunks of a document in order."""
        return _read_chunks(connection, tenant_id, document_id)

    @in_snapshot
    def chunk_records(self, connection: Connection, tenant_id: str, document_id: str) -> list[ChunkRecord]:
        """Return the live chunks of a document in order, as records."""
        models = connection.execute(MODELS, (tenant_id, document_id)).fetchall()
        named = {chunk_id: model_name(model) for chunk_id, model in models}
        return chunk_records(_read_chunks(connection, tenant_id, document_id), named)

    @in_snapshot
    def known_vectors(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, texts: Sequence[str]
    ) -> Mapping[str, Vector]:
        """Return vectors of the live Space for contextual texts that it already holds."""
        if kb.space is None:
            return {}
        keys = {short_hash(text): text for text in texts}
        found = known_vectors(connection, tenant_id, kb.space, list(keys))
        return {keys[key]: vector for key, vector in found.items()}

    @in_snapshot
    def stats(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> Stats:
        return read_stats(connection, tenant_id, kb)

    @in_snapshot
    def count_waiting(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> int:
        """Return how many documents are still to be read, or to be embedded where the kb has vectors."""
        return count_waiting(connection, tenant_id, kb)

    @in_snapshot
    def sequence(self, connection: Connection, tenant_id: str) -> int:
        """Return the last commit's place in the change feed."""
        return read_sequence(connection, tenant_id)

    @in_snapshot_or(lambda: None)
    def status(self, connection: Connection, tenant_id: str, document_id: str) -> DocumentStatus | None:
        """Return the status of a document; one that can be found is `completed`, whatever its newest job does."""
        row = connection.execute(STATUS, (tenant_id, document_id)).fetchone()
        if row is None:
            return None
        uri, title, version, chunks, tokens, updated, created, media_type, packed, model = row
        job = newest_job(connection, tenant_id, document_id)
        if not version and job and job.state == "completed":
            # An archive is no document itself: it is what came in with it.
            chunks, tokens, version, updated = connection.execute(
                "SELECT coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0), count(*), max(updated_at) "
                "FROM documents WHERE tenant_id = ? AND parent_id = ? AND version > 0",
                (tenant_id, document_id),
            ).fetchone()
        file = _file(connection, tenant_id, document_id)
        metadata = json.loads(packed) or file.metadata  # nothing is known of what is not live but what it came with
        filename = filename_of(metadata, uri)
        return DocumentStatus(
            document_id=document_id,
            status="completed" if version or job is None else OF_JOB[job.state],
            uri=uri,
            title=title[:TITLE],
            chunk_count=chunks,
            total_tokens=tokens,
            processed_at=parse_moment(updated) if version else None,
            processing_error=job.error if job and OF_JOB[job.state] == "failed" else "",
            job=job,
            filename=filename,
            file_type=file_type_of(filename, media_type),
            file_size=file.size,
            file_path=file.path,
            description=text_of(metadata, "description"),
            category=text_of(metadata, "category", CATEGORY),
            tags=tags_of(metadata),
            uploaded_at=parse_moment(created),
            embedding_model=model_name(model or ""),
        )

    @in_snapshot
    def source_documents(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, under: str = ""
    ) -> dict[str, tuple[str, str]]:
        """Return id and content hash, by external id, of a source's documents that begin with `under`."""
        rows = connection.execute(
            "SELECT external_id, id, content_hash FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? "
            "AND parent_id IS NULL AND substr(external_id, 1, ?) = ?",
            (tenant_id, kb.id, source, len(under), under),
        )
        return {external_id: (identity, hashed) for external_id, identity, hashed in rows}

    @in_snapshot
    def identities(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
    ) -> dict[str, str]:
        """Return ids of documents by what their source calls them, live or not yet."""
        found: dict[str, str] = {}
        for part in in_parts(external_ids):
            rows = connection.execute(
                "SELECT external_id, id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? "
                f"AND external_id IN ({marks(part)})",
                (tenant_id, kb.id, source, *part),
            )
            found.update(rows.fetchall())
        return found

    @in_snapshot
    def existing(self, connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> set[str]:
        """Return those of the documents that exist, live or not yet."""
        return existing(connection, tenant_id, document_ids)

    @in_snapshot
    def under_way(self, connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, UnderWay]:
        """Return the last unfinished job of each document."""
        found: dict[str, UnderWay] = {}
        for part in in_parts(list(dict.fromkeys(document_ids))):
            rows = connection.execute(
                "SELECT document_id, id, content_hash, facts FROM jobs WHERE tenant_id = ? "
                f"AND state IN ('pending', 'running') AND document_id IN ({marks(part)}) ORDER BY seq",
                (tenant_id, *part),
            )
            for document_id, job_id, hashed, facts in rows:
                found[document_id] = UnderWay(job_id, hashed, read_of(json.loads(facts)))
        return found

    @in_snapshot
    def children(self, connection: Connection, tenant_id: str, document_id: str) -> list[str]:
        """Return the documents that came in with this one."""
        return children(connection, tenant_id, document_id)

    @in_snapshot
    def part(self, connection: Connection, tenant_id: str, document_id: str, made_from: str, part: str) -> bytes | None:
        """Return a part that `save_part` kept."""
        row = connection.execute(
            "SELECT data FROM checkpoints WHERE tenant_id = ? AND document_id = ? AND made_from = ? AND part = ?",
            (tenant_id, document_id, made_from, part),
        ).fetchone()
        return row[0] if row else None

    @in_snapshot
    def resembling(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, bands: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Mapping[str, bytes]]:
        """Return signatures, by id, of other live documents that share a band with each of these."""
        found = {}
        for document_id, shared in bands.items():
            rows = connection.execute(
                "SELECT DISTINCT d.id, d.signature FROM resemblances r "
                "JOIN documents d ON d.tenant_id = r.tenant_id AND d.id = r.document_id "
                f"WHERE r.tenant_id = ? AND r.kb_id = ? AND r.band IN ({marks(shared)}) AND d.id <> ? "
                "AND d.version > 0 AND d.signature IS NOT NULL ORDER BY d.id LIMIT 100",
                (tenant_id, kb.id, *shared, document_id),
            )
            found[document_id] = dict(rows.fetchall())
        return found

    @in_snapshot
    def newest_jobs(self, connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, Job]:
        """Return the last job there was for each document."""
        found = {identity: newest_job(connection, tenant_id, identity) for identity in document_ids}
        return {identity: job for identity, job in found.items() if job}

    @in_snapshot_or(list)
    def source_types(self, connection: Connection, tenant_id: str) -> list[tuple[str, int, int]]:
        """Return source types of live documents, with how many documents and chunks there are of each."""
        kind = connection.dialect.json_text("d.metadata", "source_type")
        rows = connection.execute(
            f"SELECT {kind}, count(*), sum(d.chunk_count) FROM documents d "
            f"WHERE d.tenant_id = ? AND d.version > 0 AND {kind} IS NOT NULL GROUP BY {kind} ORDER BY {kind}",
            (tenant_id,),
        )
        return [(str(source_type), int(documents), int(chunks)) for source_type, documents, chunks in rows]

    async def resolve_sources(self, kb: KnowledgeBase, where: Filter | None) -> Filter | None:
        """Return a filter in which the name of a connector that is no `source` is asked for as `connector`."""
        if where is None or all(leaf.field != "source" for leaf in leaves_of(where)):
            return where
        return await self._ledger.read(self._tenant, resolve_sources, kb, where)

    async def keep_originals(self, contents: Sequence[tuple[str, bytes]]) -> list[str]:
        """Write files of documents down for good, and return their names."""
        blobs = await self._ledger.blobs(self._tenant, make=True)
        names = await asyncio.to_thread(lambda: [blobs.put(*content) for content in contents])
        state = "SELECT state FROM tenants WHERE id = ?"
        found = await self._ledger.control_read(lambda rows: rows.execute(state, (blobs.tenant_id,)).fetchone(), None)
        if found is None or found[0] == "deleting":
            # The process that deleted it may have looked before this was written.
            for (document_id, _), name in zip(contents, names, strict=True):
                await asyncio.to_thread(blobs.remove, document_id, [name])
            raise UnknownTenant(self._tenant)
        return names

    async def originals(self, named: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """Return files by document id and name; None for one that is gone."""
        blobs = await self._ledger.blobs(self._tenant)
        return await asyncio.to_thread(lambda: [_content(blobs, *name) for name in named])

    async def drop_files(self, document_id: str) -> None:
        blobs = await self._ledger.blobs(self._tenant)
        await asyncio.to_thread(lambda: blobs.remove(document_id, blobs.names(document_id)))

    async def drop_originals(self, named: Sequence[tuple[str, str]]) -> None:
        blobs = await self._ledger.blobs(self._tenant)

        def drop() -> None:
            for document_id, name in named:
                blobs.remove(document_id, [name])

        await asyncio.to_thread(drop)


def _content(blobs: Blobs, document_id: str, name: str) -> bytes | None:
    try:
        return blobs.get(document_id, name)
    except NotFoundError:
        return None


def _read_chunks(connection: Connection, tenant_id: str, document_id: str) -> list[LiveChunk]:
    rows = connection.execute(f"{CHUNK} AND c.document_id = ? ORDER BY c.chunk_index", (tenant_id, document_id))
    return [_chunk(row) for row in rows]


def _chunk(row: tuple[Any, ...]) -> LiveChunk:
    chunk = Chunk(
        index=row[3],
        text=row[4],
        context=row[5],
        start=row[6],
        end=row[7],
        page=row[8],
        section=tuple(json.loads(row[9])),
        parent=row[10],
        level=row[11],
        kind=row[12],
        tokens=row[13],
        metadata=json.loads(row[14]),
    )
    return LiveChunk(
        id=row[0],
        document_id=row[1],
        version=row[2],
        chunk=chunk,
        title=row[15],
        uri=row[16],
        source=row[17],
        metadata=json.loads(row[18]),
        total=row[19],
        updated_at=parse_moment(row[20]),
    )


class _File(NamedTuple):
    """The content that a job brought."""

    size: int | None
    path: str
    metadata: Metadata


def _file(connection: Connection, tenant_id: str, document_id: str) -> _File:
    """Return the file that the live version was made of or, while there is none, the one that came last."""
    row: Any = connection.execute(
        "SELECT size, stored, facts FROM jobs WHERE tenant_id = ? AND document_id = ? "
        "ORDER BY CASE WHEN state = 'completed' THEN 0 ELSE 1 END, seq DESC LIMIT 1",
        (tenant_id, document_id),
    ).fetchone()
    if row is None:
        return _File(None, "", {})
    size, stored, facts = int(row[0]), row[1], json.loads(row[2])
    path = f"documents/{tenant_id}/{document_id}/{facts.get('original')}" if stored else ""
    return _File(size, path[:FILE_PATH], facts.get("metadata") or {})

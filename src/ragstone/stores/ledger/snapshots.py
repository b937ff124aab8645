"""Documents with all that is theirs, as they travel from ledger to ledger and into archives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import BlockKind, Chunk, Json, KnowledgeBase, Metadata, SpaceState
from ragstone.stores.sql.database import Connection, marks

Halves = NDArray[np.float16]
"""One row per chunk; a row of zeros stands for a chunk without a vector."""
LIVE = (
    "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version "
    "WHERE c.tenant_id = ? AND c.document_id IN "
)

WITH_VECTOR = "JOIN vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = ?"


class Key(NamedTuple):
    """The key of a document in its kb."""

    source: str
    external_id: str


class ChunkSnapshot(NamedTuple):
    """A chunk under its id."""

    id: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The original of an upload: what its job knew of it, without the content."""

    name: str
    uri: str
    content_hash: str
    size: int
    facts: Metadata
    created_at: str
    finished_at: str | None


@dataclass(frozen=True, slots=True, eq=False)
class DocumentSnapshot:
    """A live document with its text, its chunks and their vectors. Times are in canonical form."""

    id: str
    source: str
    external_id: str
    uri: str
    title: str
    content_hash: str
    version: int
    media_type: str
    metadata: Metadata
    recipe: str
    embedded: bool
    modified_at: str | None
    created_at: str
    updated_at: str
    parent_id: str
    signature: bytes
    bands: tuple[int, ...]
    text: str
    chunks: tuple[ChunkSnapshot, ...]
    vectors: Mapping[int, Halves]
    """By the place of the Space among those of the kb; a Space that has none of them is left out."""
    file: KeptFile | None = None

    @property
    def key(self) -> Key:
        return Key(self.source, self.external_id)


@dataclass(frozen=True, slots=True)
class SpaceFacts:
    """A Space as it is known outside its ledger."""

    model: str
    dimension: int
    generation: int
    state: SpaceState
    created_at: str
    retired_at: str | None = None
    keep_until: str | None = None


@dataclass(frozen=True, slots=True)
class KbFacts:
    """A kb as it is known outside its ledger."""

    name: str
    created_at: str
    spaces: tuple[SpaceFacts, ...]
    """Oldest generation first."""


class Head(NamedTuple):
    """Enough of a document to see whether another ledger has the same."""

    key: Key
    id: str
    chunks: int
    facts: tuple[Json, ...]


START = Key("", "")
"""Before the first document."""


def read_kb_facts(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> tuple[KbFacts, tuple[int, ...]]:
    """Return a kb with its Spaces, and the numbers that these have here."""
    created = connection.execute(
        "SELECT created_at FROM knowledge_bases WHERE tenant_id = ? AND id = ?", (tenant_id, kb.id)
    ).fetchone()
    rows = connection.execute(
        "SELECT id, model, dimension, generation, state, created_at, retired_at, keep_until FROM spaces "
        "WHERE tenant_id = ? AND kb_id = ? ORDER BY generation, id",
        (tenant_id, kb.id),
    ).fetchall()
    facts = KbFacts(kb.name, created[0] if created else "", tuple(SpaceFacts(*row[1:]) for row in rows))
    return facts, tuple(row[0] for row in rows)


def read_heads(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, spaces: Sequence[int], after: tuple[str, str], limit: int
) -> list[Head]:
    """Return some documents behind a key, with what tells them from others."""
    rows = connection.execute(
        "SELECT d.source, d.external_id, d.id, d.chunk_count, d.uri, d.title, d.content_hash, d.media_type, d.recipe, "
        "d.embedded, d.modified_at, d.created_at, d.updated_at, coalesce(d.parent_id, ''), d.metadata FROM documents d "
        "WHERE d.tenant_id = ? AND d.kb_id = ? AND d.version > 0 AND (d.source, d.external_id) > (?, ?) "
        "ORDER BY d.source, d.external_id LIMIT ?",
        (tenant_id, kb.id, *after, limit),
    ).fetchall()
    ids = [row[2] for row in rows]
    extents = _group_by_document(connection, tenant_id, "min(c.id), max(c.id)", "", (), ids)
    counts = [_group_by_document(connection, tenant_id, "count(*)", WITH_VECTOR, (space,), ids) for space in spaces]
    return [
        Head(
            Key(row[0], row[1]),
            row[2],
            row[3],
            (*row[2:14], json.loads(row[14]), extents.get(row[2]), *(count.get(row[2], (0,))[0] for count in counts)),
        )
        for row in rows
    ]


def read_snapshots(
    connection: Connection, tenant_id: str, spaces: Sequence[int], document_ids: Sequence[str]
) -> list[DocumentSnapshot]:
    """Return those of the documents that are live, in the order of their ids as given."""
    if not document_ids:
        return []
    marks = ",".join("?" * len(document_ids))
    rows = connection.execute(
        "SELECT d.id, d.source, d.external_id, d.uri, d.title, d.content_hash, d.version, d.media_type, d.metadata, "
        "d.recipe, d.embedded, d.modified_at, d.created_at, d.updated_at, coalesce(d.parent_id, ''), d.signature, "
        "v.facts, v.text FROM documents d "
        "JOIN versions v ON v.tenant_id = d.tenant_id AND v.document_id = d.id AND v.version = d.version "
        f"WHERE d.tenant_id = ? AND d.id IN ({marks})",
        (tenant_id, *document_ids),
    ).fetchall()
    chunks = _chunks(connection, tenant_id, document_ids)
    vectors = [_vectors(connection, tenant_id, space, document_ids) for space in spaces]
    files = _files(connection, tenant_id, document_ids)
    found = {row[0]: _document(connection, row, chunks.get(row[0], []), vectors, files.get(row[0])) for row in rows}
    return [found[document_id] for document_id in document_ids if document_id in found]


def _document(
    connection: Connection,
    row: Sequence[Any],
    chunks: Sequence[ChunkSnapshot],
    vectors: Sequence[Mapping[str, Sequence[tuple[int, Any]]]],
    file: KeptFile | None,
) -> DocumentSnapshot:
    matrices = {
        place: _matrix(connection, len(chunks), there[row[0]]) for place, there in enumerate(vectors) if row[0] in there
    }
    return DocumentSnapshot(
        id=row[0],
        source=row[1],
        external_id=row[2],
        uri=row[3],
        title=row[4],
        content_hash=row[5],
        version=row[6],
        media_type=row[7],
        metadata=json.loads(row[8]),
        recipe=row[9],
        embedded=bool(row[10]),
        modified_at=row[11],
        created_at=row[12],
        updated_at=row[13],
        parent_id=row[14],
        signature=bytes(row[15] or b""),
        bands=tuple(json.loads(row[16]).get("bands", ())),
        text=connection.dialect.unpack(row[17]),
        chunks=tuple(chunks),
        vectors=matrices,
        file=file,
    )


def _matrix(connection: Connection, count: int, rows: Sequence[tuple[int, Any]]) -> Halves:
    unpacked = [(at, connection.dialect.unpack_vector(packed)) for at, packed in rows]
    matrix = np.zeros((count, len(unpacked[0][1])), np.float16)
    for at, vector in unpacked:
        matrix[at] = vector
    return matrix


def _chunks(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, list[ChunkSnapshot]]:
    rows = connection.execute(
        "SELECT c.document_id, c.id, c.chunk_index, c.content, c.context, c.start, c.stop, c.page, c.section, "
        f"c.parent, c.level, c.kind, c.token_count, c.metadata FROM chunks c {LIVE}({marks(document_ids)}) "
        "ORDER BY c.document_id, c.chunk_index",
        (tenant_id, *document_ids),
    )
    found: dict[str, list[ChunkSnapshot]] = {}
    for document_id, identity, *columns in rows:
        found.setdefault(document_id, []).append(ChunkSnapshot(identity, _chunk(*columns)))
    return found


def _chunk(
    index: int,
    text: str,
    context: str,
    start: int,
    end: int,
    page: int | None,
    section: str,
    parent: int | None,
    level: int,
    kind: BlockKind,
    tokens: int,
    metadata: str,
) -> Chunk:
    path, given = tuple(json.loads(section)), json.loads(metadata)
    return Chunk(index, text, start, end, context, page, path, parent, level, kind, tokens, given)


def _vectors(
    connection: Connection, tenant_id: str, space: int, document_ids: Sequence[str]
) -> dict[str, list[tuple[int, Any]]]:
    rows = connection.execute(
        f"SELECT c.document_id, c.chunk_index, v.vector FROM chunks c {WITH_VECTOR} {LIVE}({marks(document_ids)})",
        (space, tenant_id, *document_ids),
    )
    found: dict[str, list[tuple[int, Any]]] = {}
    for document_id, index, packed in rows:
        found.setdefault(document_id, []).append((index, packed))
    return found


def _files(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, KeptFile]:
    """Return the last original of each document that is to be kept."""
    rows = connection.execute(
        "SELECT document_id, uri, content_hash, size, facts, created_at, finished_at FROM jobs WHERE tenant_id = ? "
        f"AND document_id IN ({marks(document_ids)}) AND state = 'completed' "
        f"AND {connection.dialect.json_true('facts', 'keep')} ORDER BY seq",
        (tenant_id, *document_ids),
    )
    found = {}
    for document_id, uri, hashed, size, packed, created, finished in rows:
        facts = json.loads(packed)
        if name := facts.get("original"):
            found[document_id] = KeptFile(name, uri, hashed, size, facts, created, finished)
    return found


def _group_by_document(
    connection: Connection,
    tenant_id: str,
    what: str,
    joined: str,
    parameters: tuple[int, ...],
    document_ids: Sequence[str],
) -> dict[str, tuple[Any, ...]]:
    if not document_ids:
        return {}
    rows = connection.execute(
        f"SELECT c.document_id, {what} FROM chunks c {joined} {LIVE}({marks(document_ids)}) GROUP BY c.document_id",
        (*parameters, tenant_id, *document_ids),
    )
    return {row[0]: tuple(row[1:]) for row in rows}

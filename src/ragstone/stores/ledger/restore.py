"""Restored Spaces and documents: their versions, their times, their files, how many there are."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.ids import document_id, opaque_id
from ragstone.core.jobs import SourceRecord
from ragstone.core.types import Json, KnowledgeBase, Matrix, NewVersion, Space
from ragstone.stores.ledger.documents import has_document, read_kb
from ragstone.stores.ledger.originals import let_go
from ragstone.stores.ledger.snapshots import DocumentSnapshot, KeptFile, Key, SpaceFacts
from ragstone.stores.ledger.spaces import add_vectors
from ragstone.stores.ledger.versions import publish
from ragstone.stores.ledger.writes import discard, open_space, stage
from ragstone.stores.sql.database import Connection, in_parts, marks

Spaces = Sequence[Space | None]
"""For each Space there was elsewhere the one that stands for it here, if any."""


def restore_spaces(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Sequence[SpaceFacts], *, follow: bool
) -> tuple[KnowledgeBase, Spaces]:
    """Return a kb with the given Spaces. One that was never live is left out where the kb has Spaces of its own.

    `follow` makes the Spaces of the kb what the given ones are, whatever they were; without it a live Space of another
    model is refused.
    """
    there = _read(connection, tenant_id, kb)
    complete = follow or not there
    made: list[Space | None] = []
    for fact in facts:
        if fact.state == "live" and kb.space and not follow:
            made.append(open_space(connection, tenant_id, kb, fact.model, fact.dimension).space)
            continue
        same = [space for space in there if _is_same(space, fact) and space not in made]
        if same:
            made.append(same[0])
        else:
            needed = complete or fact.state == "live"
            made.append(_make(connection, tenant_id, kb, fact) if needed else None)
    if complete or kb.space is None:
        _point(connection, tenant_id, kb, facts, made)
    if follow:
        _follow(connection, tenant_id, kb, facts, made)
    found = read_kb(connection, tenant_id, kb.name)
    assert found is not None
    return found, made


def _read(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> list[Space]:
    rows = connection.execute(
        "SELECT id, model, dimension, generation, state FROM spaces WHERE tenant_id = ? AND kb_id = ? "
        "ORDER BY generation, id",
        (tenant_id, kb.id),
    )
    return [Space(*row) for row in rows]


def read_opened(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, spaces: Spaces
) -> tuple[KnowledgeBase, Spaces]:
    """Return a kb and its Spaces as they are now: it may have been moved to another since, and one may be gone."""
    there = {space.id: space for space in _read(connection, tenant_id, kb)}
    live = next((space for space in there.values() if space.state == "live"), None)
    return replace(kb, space=live), [there.get(space.id) if space else None for space in spaces]


def _is_same(space: Space, fact: SpaceFacts) -> bool:
    return (space.model, space.dimension, space.generation) == (fact.model, fact.dimension, fact.generation)


def _make(connection: Connection, tenant_id: str, kb: KnowledgeBase, fact: SpaceFacts) -> Space:
    row = connection.execute(
        "INSERT INTO spaces (tenant_id, kb_id, model, dimension, generation, state, created_at, retired_at, "
        "keep_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            *(tenant_id, kb.id, fact.model, fact.dimension, fact.generation, fact.state),
            *(fact.created_at, fact.retired_at, fact.keep_until),
        ),
    ).fetchone()
    return Space(row[0], fact.model, fact.dimension, fact.generation, fact.state)


def _point(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Sequence[SpaceFacts], made: Spaces
) -> None:
    """Make the kb's pointer lead to the live one."""
    live = next((space.id for space, fact in zip(made, facts, strict=True) if space and fact.state == "live"), None)
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?", (live, tenant_id, kb.id)
    )


def _follow(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Sequence[SpaceFacts], made: Spaces
) -> None:
    """Give every Space the state it has elsewhere, and remove those that are not there."""
    kept: Collection[int] = {space.id for space in made if space}
    for space, fact in zip(made, facts, strict=True):
        assert space is not None
        connection.execute(
            "UPDATE spaces SET state = ?, retired_at = ?, keep_until = ? WHERE tenant_id = ? AND id = ?",
            (fact.state, fact.retired_at, fact.keep_until, tenant_id, space.id),
        )
    for space in _read(connection, tenant_id, kb):
        if space.id not in kept:
            connection.execute("DELETE FROM vectors WHERE tenant_id = ? AND space_id = ?", (tenant_id, space.id))
            connection.execute("DELETE FROM spaces WHERE tenant_id = ? AND id = ?", (tenant_id, space.id))


def date_document(connection: Connection, tenant_id: str, identity: str, document: DocumentSnapshot) -> None:
    """Give a document that was activated the times it had."""
    connection.execute(
        "UPDATE documents SET created_at = ?, updated_at = ? WHERE tenant_id = ? AND id = ?",
        (document.created_at, document.updated_at, tenant_id, identity),
    )


def look_around(connection: Connection, tenant_id: str) -> None:
    """Have the database count what there is now."""
    connection.dialect.look_around(connection, tenant_id)


def date_kb(connection: Connection, tenant_id: str, kb: KnowledgeBase, created_at: str) -> None:
    """Say when a kb was made, as long as nothing is in it."""
    connection.execute(
        "UPDATE knowledge_bases SET created_at = ? WHERE tenant_id = ? AND id = ? "
        "AND NOT EXISTS (SELECT 1 FROM documents WHERE tenant_id = ? AND kb_id = ?)",
        (created_at, tenant_id, kb.id, tenant_id, kb.id),
    )


def keep_file(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    identity: str,
    document: DocumentSnapshot,
    file: KeptFile,
    name: str,
) -> None:
    """Say that an original belongs to a document, as the job that brings one does."""
    connection.execute(
        "INSERT INTO jobs (id, tenant_id, kb_id, kind, state, priority, document_id, source, external_id, uri, "
        "content_hash, size, facts, progress, notify, attempts, token, worker, boot, lease_until, not_before, "
        "error_code, error, created_at, started_at, finished_at, stored) "
        "VALUES (?, ?, ?, 'document', 'completed', 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 1, '', '', 0, 0, '', '', "
        "?, ?, ?, ?)",
        (
            *(opaque_id(), tenant_id, kb.id, identity, document.source, document.external_id, file.uri),
            *(file.content_hash, file.size, connection.dialect.to_json({**file.facts, "original": name})),
            *('{"percent": 100}', file.created_at, file.finished_at, file.finished_at),
            # Where files are sealed it is a little more: the next sweep counts them as they are.
            file.size,
        ),
    )
    let_go(connection, tenant_id, [identity])


def restore_source(connection: Connection, tenant_id: str, source_id: str, record: SourceRecord) -> None:
    """Give a source that was just added what it had: how far it was read, and when it is due."""
    connection.execute(
        "UPDATE sources SET cursor = ?, paused = ?, next_run_at = ?, last_run_at = ?, last_error = ?, created_at = ? "
        "WHERE tenant_id = ? AND id = ?",
        (
            *(connection.dialect.to_json(record.cursor), int(record.paused)),
            canonical(record.next_run_at) if record.next_run_at else None,
            canonical(record.last_run_at) if record.last_run_at else None,
            *(record.last_error, canonical(record.created_at), tenant_id, source_id),
        ),
    )


class Existing(NamedTuple):
    """A document that a kb has under the same source and external id."""

    id: str
    version: int
    """0 while it is not live."""
    content_hash: str
    recipe: str
    content: tuple[Json, ...]
    chunk_ids: tuple[str, ...]


class Arriving(NamedTuple):
    """A document that is to be written, with what only the writer's side knows."""

    document: DocumentSnapshot
    terms: tuple[str, ...]
    parent_id: str


def content_of(document: DocumentSnapshot) -> tuple[Json, ...]:
    """Return what is equal in a document that need not be written again."""
    return (
        *(document.uri, document.title, document.content_hash, document.media_type, document.recipe),
        *(document.embedded, dict(document.metadata), len(document.chunks)),
    )


def existing(connection: Connection, tenant_id: str, kb: KnowledgeBase, keys: Collection[Key]) -> dict[Key, Existing]:
    """Return what a kb has under these keys, live or not yet."""
    found = {}
    for key in keys:
        row = connection.execute(
            "SELECT id, version, uri, title, content_hash, media_type, recipe, embedded, metadata, chunk_count "
            "FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND external_id = ?",
            (tenant_id, kb.id, *key),
        ).fetchone()
        if row:
            chunk_ids = connection.execute(
                "SELECT id FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY chunk_index",
                (tenant_id, row[0], row[1]),
            )
            content = (*row[2:7], bool(row[7]), json.loads(row[8]), row[9])
            ids = tuple(chunk_id for (chunk_id,) in chunk_ids)
            found[key] = Existing(row[0], row[1], row[4], row[6], content, ids)
    return found


def stage_snapshot(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, spaces: Spaces, arriving: Arriving
) -> tuple[str, int]:
    """Write a document that nobody sees until it is activated; its id, and the number of the version.

    It keeps its id, its number and the ids of its chunks wherever nothing else here has them.
    """
    document = arriving.document
    chunk_ids = [stored.id for stored in document.chunks]
    _clear_leftovers(connection, tenant_id, kb, chunk_ids)
    free = not _holders(connection, tenant_id, chunk_ids)
    identity = _announce(connection, tenant_id, kb, arriving)
    version = _as_version(identity, arriving, _live_vectors(kb, spaces, document))
    number = stage(connection, tenant_id, kb, version)
    rows = connection.execute(
        "SELECT seq, id FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY chunk_index",
        (tenant_id, identity, number),
    ).fetchall()
    if free:
        _rename(connection, tenant_id, rows, chunk_ids)
    _add_vectors(connection, tenant_id, kb, spaces, version, document, [row[0] for row in rows])
    return identity, number


def amend(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    spaces: Spaces,
    there: Existing,
    document: DocumentSnapshot,
) -> None:
    """Bring what is said of a document up to date whose chunks are here already, and vectors that they lack."""
    connection.execute(
        "UPDATE documents SET uri = ?, title = ?, media_type = ?, metadata = ?, recipe = ?, embedded = ?, "
        "modified_at = ? WHERE tenant_id = ? AND id = ?",
        (
            *(document.uri, document.title, document.media_type),
            *(connection.dialect.to_json(dict(document.metadata)), document.recipe),
            *(int(_live_vectors(kb, spaces, document) is not None), document.modified_at, tenant_id, there.id),
        ),
    )
    rows = connection.execute(
        "SELECT seq, id FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY chunk_index",
        (tenant_id, there.id, there.version),
    ).fetchall()
    for place, halves in document.vectors.items():
        space = spaces[place]
        if space:
            numbered = zip((row[0] for row in rows), halves.astype(np.float32), strict=True)
            add_vectors(connection, tenant_id, space, list(numbered))
    publish(connection, tenant_id, kb.id, "upsert", rows)


def _announce(connection: Connection, tenant_id: str, kb: KnowledgeBase, arriving: Arriving) -> str:
    """Make the document's row, unless there is one; its next version has the number it had, if that is free."""
    document = arriving.document
    row = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND external_id = ?",
        (tenant_id, kb.id, *document.key),
    ).fetchone()
    if row is None:
        identity = document.id
        if has_document(connection, tenant_id, identity):
            identity = document_id(document.id, kb.name, *document.key)  # another one has that id here
        connection.execute(
            "INSERT INTO documents (id, tenant_id, kb_id, source, external_id, uri, title, content_hash, version, "
            "last_version, chunk_count, token_count, media_type, metadata, recipe, embedded, modified_at, created_at, "
            "updated_at, parent_id) VALUES (?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, ?, '{}', '', 0, NULL, ?, ?, ?)",
            (
                *(identity, tenant_id, kb.id, document.source, document.external_id, document.uri),
                *(document.title, document.media_type, document.created_at, document.updated_at),
                arriving.parent_id or None,
            ),
        )
    else:
        identity = row[0]
    connection.execute(
        "UPDATE documents SET last_version = ? WHERE tenant_id = ? AND id = ? AND (last_version < ? OR (version = 0 "
        "AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.tenant_id = ? AND v.document_id = ?)))",
        (document.version - 1, tenant_id, identity, document.version - 1, tenant_id, identity),
    )
    return str(identity)


def _as_version(identity: str, arriving: Arriving, vectors: Matrix | None) -> NewVersion:
    document = arriving.document
    return NewVersion(
        document_id=identity,
        source=document.source,
        external_id=document.external_id,
        uri=document.uri,
        title=document.title,
        content_hash=document.content_hash,
        text=document.text,
        media_type=document.media_type,
        metadata=document.metadata,
        recipe=document.recipe,
        modified_at=parse_moment(document.modified_at) if document.modified_at else None,
        chunks=tuple(stored.chunk for stored in document.chunks),
        terms=arriving.terms,
        vectors=vectors,
        parent_id=arriving.parent_id,
        signature=document.signature,
        bands=document.bands,
    )


def _add_vectors(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    spaces: Spaces,
    version: NewVersion,
    document: DocumentSnapshot,
    numbers: Sequence[int],
) -> None:
    """Write the vectors that did not come with the version: those of other Spaces, or of a document not yet whole."""
    for place, halves in document.vectors.items():
        space = spaces[place]
        written = version.vectors is not None and space == kb.space
        if space and not written:
            rows = list(zip(numbers, halves.astype(np.float32), strict=True))
            add_vectors(connection, tenant_id, space, rows)


def _live_vectors(kb: KnowledgeBase, spaces: Spaces, document: DocumentSnapshot) -> Matrix | None:
    """Return the vectors that are written with the version; None leaves the document to be found by word."""
    if not document.embedded or kb.space is None or kb.space not in spaces:
        return None
    for place, halves in document.vectors.items():
        space = spaces[place]
        if space and space.id == kb.space.id:
            return halves.astype(np.float32)
    # Every chunk was refused by the model: it is as embedded as it can be.
    return np.zeros((len(document.chunks), kb.space.dimension), np.float32)


def _rename(connection: Connection, tenant_id: str, staged: Sequence[tuple[int, str]], wanted: Sequence[str]) -> None:
    """Give staged chunks the ids they had."""
    rename = "UPDATE chunks SET id = ? WHERE tenant_id = ? AND seq = ?"
    if {held for _, held in staged} & set(wanted):
        # One may get what another has at this moment: so all get what no chunk has.
        connection.executemany(rename, [(f"-{seq}", tenant_id, seq) for seq, _ in staged])
    pairs = zip(wanted, staged, strict=True)
    connection.executemany(rename, [(chunk_id, tenant_id, seq) for chunk_id, (seq, _) in pairs])


def _clear_leftovers(connection: Connection, tenant_id: str, kb: KnowledgeBase, chunk_ids: Sequence[str]) -> None:
    """Remove what was staged of the same document by one who did not come to activate it."""
    for identity, version in _holders(connection, tenant_id, chunk_ids):
        # No index knows of what was never live.
        discard(connection, tenant_id, (), kb, identity, version)


def _holders(connection: Connection, tenant_id: str, chunk_ids: Sequence[str]) -> set[tuple[str, int]]:
    """Document versions that have one of these chunks."""
    found: set[tuple[str, int]] = set()
    for part in in_parts(chunk_ids):
        rows = connection.execute(
            f"SELECT DISTINCT document_id, version FROM chunks WHERE tenant_id = ? AND id IN ({marks(part)})",
            (tenant_id, *part),
        )
        found.update((row[0], row[1]) for row in rows)
    return found

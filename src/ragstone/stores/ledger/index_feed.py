"""The feed for indexes outside the ledger: chunks with vectors and weights of words, changes, and marks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ragstone.core.documents import origin_of
from ragstone.core.filters import Filter
from ragstone.core.ids import content_hash
from ragstone.core.types import Candidate, Json, KnowledgeBase, Space, Vector
from ragstone.core.vectors import Point
from ragstone.stores.ledger.documents import read_sequence
from ragstone.stores.lexical.postings import words_of
from ragstone.stores.sql.database import Connection, in_parts, last_number

FACTS = (
    "c.seq, c.chunk_index, c.content, c.page, c.level, c.kind, d.id, d.source, d.external_id, "
    "c.version = d.version, d.uri, d.title, d.media_type, d.modified_at, d.metadata, f.facts"
)
VECTOR = "vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = ?"
WHOSE = (
    "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id "
    "JOIN versions f ON f.tenant_id = c.tenant_id AND f.document_id = c.document_id AND f.version = c.version "
    "WHERE c.tenant_id = ?"
)
POINT = f"SELECT c.id, v.vector, {FACTS}, NULL FROM chunks c JOIN {VECTOR} {WHOSE}"
WORDED = (
    f"SELECT c.id, v.vector, {FACTS}, t.terms FROM chunks c LEFT JOIN {VECTOR} "
    f"JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq {WHOSE}"
)
"""The same for an index that holds words: a chunk that has no vector yet is a point as well."""
LIVE = "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version"
NO_VECTOR: Vector = np.empty(0, np.float32)
SCANNED_TOGETHER = 4096
USUAL, AS_MANY_AS = 100.0, 5
"""The average before there are chunks, and the number of chunks it counts for when there are few."""
FAR_OFF = 1.25
"""An average that is off by more than this factor is given up."""
GROWN, AT_LEAST = 2, 20
"""The average is looked at again when there have been so many times the chunks, and so many more."""
PLACES, AT_EACH = 32, 8
"""The number of places of a kb that are sampled, and of chunks at each."""
SCALE = 1000


class Changes(NamedTuple):
    """The last change of each chunk of a kb after a place in the feed."""

    sequence: int
    """The end of the feed: an index that has applied these changes has everything up to here."""
    arrived: list[str]
    gone: list[str]
    again: frozenset[str] = frozenset()
    """Those of them that changed more than once."""


class Mark(NamedTuple):
    """A Space that an index holds, and how far it has followed."""

    space_id: int
    dimension: int
    sequence: int
    kb_id: int | None
    """None when the Space is gone, and what the index holds of it should be too."""
    layout: int = 0
    """The collections and fields that its points were written with; 0 for those from before this was recorded."""


def points(
    connection: Connection, tenant_id: str, space: Space, chunk_ids: Sequence[str], *, words: bool = False
) -> list[Point]:
    """Chunks, live or staged, that have a vector in a Space, or all of them with what they say."""
    select, average = _selection(connection, tenant_id, space, words)
    found: list[Point] = []
    for part in in_parts(chunk_ids):
        marks = ",".join("?" * len(part))
        rows = connection.execute(f"{select} AND c.id IN ({marks})", (space.id, tenant_id, *part))
        found += _points(connection, rows, average)
    return found


def staged_points(
    connection: Connection, tenant_id: str, space: Space, versions: Sequence[tuple[str, int]], *, words: bool = False
) -> list[Point]:
    """Return the chunks of some document versions."""
    select, average = _selection(connection, tenant_id, space, words)
    found: list[Point] = []
    for document_id, version in versions:
        rows = connection.execute(
            f"{select} AND c.document_id = ? AND c.version = ? ORDER BY c.chunk_index",
            (space.id, tenant_id, document_id, version),
        )
        found += _points(connection, rows, average)
    return found


def scan(
    connection: Connection, tenant_id: str, kb_id: int, space: Space, after: int, limit: int, *, words: bool = False
) -> tuple[list[Point], int]:
    """Live chunks in the order they came in, behind number `after`; also the number of the last one."""
    select, average = _selection(connection, tenant_id, space, words)
    rows = connection.execute(
        f"{select} AND c.kb_id = ? AND c.version = d.version AND c.seq > ? ORDER BY c.seq LIMIT ?",
        (space.id, tenant_id, kb_id, after, limit),
    ).fetchall()
    return _points(connection, rows, average), int(rows[-1][2]) if rows else after


def changes(connection: Connection, tenant_id: str, kb_id: int, after: int) -> Changes | None:
    """Return what changed since; None when the feed no longer reaches back that far."""
    newest = read_sequence(connection, tenant_id)
    if newest <= after:
        return Changes(newest, [], [])
    oldest = connection.execute("SELECT min(seq) FROM changes WHERE tenant_id = ?", (tenant_id,)).fetchone()[0]
    if oldest is None or oldest > after + 1:
        return None
    rows = connection.execute(
        "SELECT chunk_id, operation FROM changes WHERE tenant_id = ? AND kb_id = ? AND seq > ? ORDER BY seq",
        (tenant_id, kb_id, after),
    )
    last: dict[str, str] = {}
    again: set[str] = set()
    for chunk_id, operation in rows:
        if chunk_id in last:
            again.add(chunk_id)
        last[chunk_id] = operation
    return Changes(
        newest,
        [chunk_id for chunk_id, operation in last.items() if operation != "tombstone"],
        [chunk_id for chunk_id, operation in last.items() if operation == "tombstone"],
        frozenset(again),
    )


def marks(connection: Connection, tenant_id: str, index: str) -> list[Mark]:
    """Return every Space that an index holds something of."""
    rows = connection.execute(
        "SELECT w.space_id, w.dimension, w.sequence, s.kb_id FROM watermarks w "
        "LEFT JOIN spaces s ON s.tenant_id = w.tenant_id AND s.id = w.space_id "
        "WHERE w.tenant_id = ? AND w.index_name = ? ORDER BY w.space_id",
        (tenant_id, index),
    )
    return [
        Mark(space_id, dimension, sequence, kb_id, last_number(connection, tenant_id, _layout(index, space_id)))
        for space_id, dimension, sequence, kb_id in rows.fetchall()
    ]


def find_lag(connection: Connection, tenant_id: str, index: str, space_id: int) -> int | None:
    """Return how far an index has followed a Space, if changes of its kb were committed since; else None."""
    row = connection.execute(
        "SELECT w.sequence FROM watermarks w JOIN spaces s ON s.tenant_id = w.tenant_id AND s.id = w.space_id "
        "WHERE w.tenant_id = ? AND w.index_name = ? AND w.space_id = ? AND EXISTS (SELECT 1 FROM changes c "
        "WHERE c.tenant_id = w.tenant_id AND c.seq > w.sequence AND c.kb_id = s.kb_id)",
        (tenant_id, index, space_id),
    ).fetchone()
    return int(row[0]) if row else None


def mark(connection: Connection, tenant_id: str, index: str, space: Space, layout: int) -> None:
    """Write down that an index is about to hold something of a Space.

    It has followed from the beginning: should filling it fail half-way, the next follower starts over.
    """
    made = connection.execute(
        "INSERT INTO watermarks (tenant_id, index_name, space_id, dimension, sequence) VALUES (?, ?, ?, ?, 0) "
        "ON CONFLICT (tenant_id, index_name, space_id) DO NOTHING RETURNING space_id",
        (tenant_id, index, space.id, space.dimension),
    ).fetchone()
    if made:
        _set(connection, tenant_id, _layout(index, space.id), layout)


def advance(connection: Connection, tenant_id: str, owner: str, index: str, reached: Mapping[int, int]) -> None:
    """Remember how far an index has followed, by Space: never backwards, and only where `owner` still has the name."""
    if tenant_id != owner:
        return
    connection.executemany(
        "UPDATE watermarks SET sequence = ? WHERE tenant_id = ? AND index_name = ? AND space_id = ? AND sequence < ?",
        [(sequence, tenant_id, index, space_id, sequence) for space_id, sequence in reached.items()],
    )


def set_layout(connection: Connection, tenant_id: str, owner: str, index: str, space_id: int, layout: int) -> None:
    """Write down that all points of a Space have this layout; only where `owner` still has the tenant's name."""
    if tenant_id == owner:
        _set(connection, tenant_id, _layout(index, space_id), layout)


def unmark(connection: Connection, tenant_id: str, index: str, space_id: int) -> None:
    """Record that an index holds nothing of a Space any more."""
    connection.execute(
        "DELETE FROM watermarks WHERE tenant_id = ? AND index_name = ? AND space_id = ?", (tenant_id, index, space_id)
    )
    connection.execute("DELETE FROM counters WHERE tenant_id = ? AND name = ?", (tenant_id, _layout(index, space_id)))


def known_among(connection: Connection, tenant_id: str, kb_id: int, chunk_ids: Sequence[str]) -> set[str]:
    """Which of these are chunks of this kb, live or staged."""
    found: set[str] = set()
    for part in in_parts(chunk_ids):
        rows = connection.execute(
            f"SELECT id FROM chunks WHERE tenant_id = ? AND kb_id = ? AND id IN ({','.join('?' * len(part))})",
            (tenant_id, kb_id, *part),
        )
        found.update(chunk_id for (chunk_id,) in rows)
    return found


def live_among(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, chunk_ids: Sequence[str], where: Filter | None
) -> set[str]:
    """Which of these are live chunks of this kb that the filter lets through."""
    found: set[str] = set()
    for part in in_parts(chunk_ids):
        parameters: list[Any] = [tenant_id, kb.id, *part]
        filtered = f" AND {connection.dialect.condition(where, parameters)}" if where else ""
        rows = connection.execute(
            f"SELECT c.id FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ? "
            f"AND c.id IN ({','.join('?' * len(part))}){filtered}",
            parameters,
        )
        found.update(chunk_id for (chunk_id,) in rows)
    return found


def count_words(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> int:
    """Count the live chunks, with a vector or without."""
    row = connection.execute(
        f"SELECT count(*) FROM chunks c {LIVE} WHERE c.tenant_id = ? AND c.kb_id = ?", (tenant_id, kb.id)
    ).fetchone()
    return int(row[0])


def count_live(connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space, where: Filter | None) -> int:
    """Count the live chunks with a vector that pass the filter."""
    parameters: list[Any] = [space.id, tenant_id, kb.id]
    filtered = f" AND {connection.dialect.condition(where, parameters)}" if where else ""
    row = connection.execute(f"SELECT count(*) {_WITH_VECTOR}{filtered}", parameters).fetchone()
    return int(row[0])


def nearest(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    space: Space,
    vector: Vector,
    k: int,
    where: Filter | None,
) -> list[Candidate]:
    """Return the k nearest by a scan of the ledger's own vectors: exact, whatever the filter."""
    parameters: list[Any] = [space.id, tenant_id, kb.id]
    filtered = f" AND {connection.dialect.condition(where, parameters)}" if where else ""
    best: list[Candidate] = []
    for rows in connection.pages(f"SELECT c.id, v.vector {_WITH_VECTOR}{filtered}", parameters, SCANNED_TOGETHER):
        matrix = np.stack([connection.dialect.unpack_vector(packed) for _, packed in rows])
        scores = matrix @ vector
        best += [Candidate(row[0], score) for row, score in zip(rows, scores.tolist(), strict=True)]
        best = sorted(best, key=lambda one: (-one.score, one.chunk_id))[:k]
    return best


_WITH_VECTOR = f"FROM chunks c {LIVE} JOIN {VECTOR} WHERE c.tenant_id = ? AND c.kb_id = ?"


def _selection(connection: Connection, tenant_id: str, space: Space, words: bool) -> tuple[str, float | None]:
    """Return the selection of points, and the length that their words are weighed by, if they have any."""
    return (WORDED, word_length(connection, tenant_id, space.id)) if words else (POINT, None)


def _points(connection: Connection, rows: Iterable[Sequence[Any]], average: float | None) -> list[Point]:
    unpack = connection.dialect.unpack_vector
    return [
        Point(
            row[0],
            NO_VECTOR if row[1] is None else unpack(row[1]),
            _payload(row),
            None if average is None else words_of(connection.dialect.unpack(row[18]), average),
        )
        for row in rows
    ]


def _payload(row: Sequence[Any]) -> Mapping[str, Json]:
    _, _, _, index, text, page, level, kind, document_id, connector, external_id, is_live = row[:12]
    if is_live:
        uri, title, media_type, modified_at, metadata = *row[12:16], json.loads(row[16])
    else:
        facts = json.loads(row[17])
        uri, title, media_type = facts["uri"], facts["title"], facts["media_type"]
        modified_at, metadata = facts["modified_at"], facts["metadata"]
    flat = {key: value for key, value in metadata.items() if _is_flat(value)}
    return flat | {
        "chunk_index": index,
        "text": text,
        "page": page,
        "level": level,
        "kind": kind,
        "document_id": document_id,
        "source": origin_of(metadata, connector, uri),
        "connector": connector,
        "external_id": external_id,
        "uri": uri,
        "title": title,
        "media_type": media_type,
        "modified_at": modified_at,
    }


def _is_flat(value: object) -> bool:
    if isinstance(value, list):
        return all(not isinstance(item, list | dict) for item in value)
    return not isinstance(value, dict)


def word_length(connection: Connection, tenant_id: str, space_id: int) -> float:
    """Return the average that points of a Space are written with."""
    return last_number(connection, tenant_id, _average(space_id)) / SCALE or USUAL


def has_grown(connection: Connection, tenant_id: str, space_id: int) -> bool:
    """Return whether so many chunks have come since the average was measured that it may be wrong."""
    then = last_number(connection, tenant_id, _look_counter(space_id))
    return last_number(connection, tenant_id, "chunks") >= GROWN * then + AT_LEAST


def renew_word_length(
    connection: Connection, tenant_id: str, kb_id: int, space_id: int, index: str, factor: float = 1.0
) -> bool:
    """Weigh by the present average from now on, if the one in use is off by more than a factor; whether it was.

    All points are then to be written again. Should that be cut short, the next follower starts over.
    """
    _set(connection, tenant_id, _look_counter(space_id), last_number(connection, tenant_id, "chunks"))
    now, then = _measure(connection, tenant_id, kb_id), word_length(connection, tenant_id, space_id)
    if max(now / then, then / now) <= factor:
        return False
    _set(connection, tenant_id, _average(space_id), max(1, round(now * SCALE)))
    connection.execute(
        "UPDATE watermarks SET sequence = 0 WHERE tenant_id = ? AND index_name = ? AND space_id = ?",
        (tenant_id, index, space_id),
    )
    return True


def forget_word_length(connection: Connection, tenant_id: str, space_id: int) -> None:
    """Forget the average of a Space that is gone."""
    connection.execute(
        "DELETE FROM counters WHERE tenant_id = ? AND name IN (?, ?)",
        (tenant_id, _average(space_id), _look_counter(space_id)),
    )


def _measure(connection: Connection, tenant_id: str, kb_id: int) -> float:
    """Return the average number of words, by a look at some live chunks from all over the kb."""
    first, last = connection.execute(
        "SELECT min(seq), max(seq) FROM chunks WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb_id)
    ).fetchone()
    lengths: dict[int, int] = {}
    step = max(1, (last - first) // PLACES) if first is not None else 1
    for start in range(first, last + 1, step) if first is not None else ():
        rows = connection.execute(
            f"SELECT c.seq, t.terms FROM chunks c {LIVE} "
            "JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq "
            "WHERE c.tenant_id = ? AND c.kb_id = ? AND c.seq >= ? ORDER BY c.seq LIMIT ?",
            (tenant_id, kb_id, start, AT_EACH),
        )
        for number, packed in rows:
            lengths[number] = len(connection.dialect.unpack(packed).split())
    return (USUAL * AS_MANY_AS + sum(lengths.values())) / (AS_MANY_AS + len(lengths))


def _set(connection: Connection, tenant_id: str, name: str, value: int) -> None:
    connection.execute(
        "INSERT INTO counters (tenant_id, name, value) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant_id, name) DO UPDATE SET value = ?",
        (tenant_id, name, value, value),
    )


def _layout(index: str, space_id: int) -> str:
    return f"layout.{content_hash(f'{index} {space_id}')[:16]}"


def _average(space_id: int) -> str:
    return f"words.{space_id}"


def _look_counter(space_id: int) -> str:
    return f"words.{space_id}.at"

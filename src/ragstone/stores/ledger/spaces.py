"""The Spaces of a tenant's kbs: what lacks a vector in each, and which of them is live."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.errors import ModelMismatch, NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.spaces import Complete, EmbeddedText, Lacking, Rows, SpaceRecord
from ragstone.core.types import KnowledgeBase, Matrix, Space, Vector
from ragstone.stores.ledger.documents import known_vectors, read_kb
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot, in_transaction
from ragstone.stores.ledger.versions import publish
from ragstone.stores.sql.database import Connection, in_parts, last_number, marks, next_number

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger

FEW = 256
"""Chunks that may still lack a vector when the flip begins: writers wait while these are embedded."""
DROPPED_TOGETHER = 2000
SPACE = "s.id, s.model, s.dimension, s.generation, s.state"
LIVE = (
    "FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version "
    "LEFT JOIN vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = ? "
    "WHERE c.tenant_id = ? AND c.kb_id = ?"
)
"""Live chunks of a kb, each with its vector in a Space if it has one."""


class SqlSpaceBook:
    """Implements `SpaceBook`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    def of(self, tenant: str) -> SqlTenantSpaces:
        """Return the Spaces of one tenant."""
        return SqlTenantSpaces(self._ledger, tenant)


class SqlTenantSpaces(TenantRepository):
    """Implements `TenantSpaces`."""

    @in_snapshot
    def all(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> list[SpaceRecord]:
        """Return all Spaces of a kb, oldest generation first."""
        rows = connection.execute(
            f"SELECT {SPACE}, s.created_at, s.retired_at, s.keep_until FROM spaces s "
            "WHERE s.tenant_id = ? AND s.kb_id = ? ORDER BY s.generation, s.id",
            (tenant_id, kb.id),
        ).fetchall()
        records = []
        for row in rows:
            space = Space(*row[:5])
            created, retired, keep = (parse_moment(moment) if moment else None for moment in row[5:])
            assert created is not None
            records.append(SpaceRecord(space, *_count(connection, tenant_id, kb, space), created, retired, keep))
        return records

    @in_snapshot
    def outline(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> list[tuple[Space, datetime]]:
        """Return the Spaces of a kb and when each was made, oldest generation first."""
        rows = connection.execute(
            f"SELECT {SPACE}, s.created_at FROM spaces s "
            "WHERE s.tenant_id = ? AND s.kb_id = ? ORDER BY s.generation, s.id",
            (tenant_id, kb.id),
        )
        return [(Space(*row[:5]), moment) for row in rows if (moment := parse_moment(row[5]))]

    @in_snapshot
    def sample(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space, count: int, after: str
    ) -> list[EmbeddedText]:
        """Return live chunks with their vectors.

        Ids are hashes: those that follow a random one are as good as drawn by lot.
        """
        found: list[EmbeddedText] = []
        for bound in ("c.id > ?", "c.id <= ?"):
            rows = connection.execute(
                f"SELECT c.context, c.content, v.vector {LIVE} AND v.chunk_seq IS NOT NULL AND {bound} "
                "ORDER BY c.id LIMIT ?",
                (space.id, tenant_id, kb.id, after, count - len(found)),
            )
            found += [
                EmbeddedText(context + content, connection.dialect.unpack_vector(vector))
                for context, content, vector in rows
            ]
        return found

    async def open(self, kb: KnowledgeBase, model: str, dimension: int, after: int = 0) -> Space:
        """Return the Space of this model that is being built, of a generation above `after`, or a new one."""
        self._ledger.check_dimension(dimension)
        return await self._open_building(kb, model, dimension, after)

    @in_snapshot
    def lacking(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space, after: int, limit: int
    ) -> list[Lacking]:
        """Return live chunks without a vector, in order of their numbers, behind number `after`."""
        return lacking(connection, tenant_id, kb, space, after, limit)

    @in_snapshot
    def coverage(self, connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space) -> tuple[int, int]:
        """Return the number of live chunks with a vector in a Space, and of all live chunks."""
        return _count(connection, tenant_id, kb, space)

    @in_snapshot
    def find_vectors(
        self, connection: Connection, tenant_id: str, space: Space, hashes: Sequence[bytes]
    ) -> Mapping[bytes, Vector]:
        """Return vectors that a Space already holds for equal text."""
        return known_vectors(connection, tenant_id, space, hashes)

    async def add(self, space: Space, rows: Rows) -> int:
        """Write vectors of chunks that are still there and have none; return how many."""
        async with self._ledger.transaction(self._tenant) as tx:
            return await tx.add_vectors(space, rows)

    @in_snapshot
    def word_only(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> bool:
        """Return whether a live document is found by word only."""
        return _is_word_only(connection, tenant_id, kb)

    @in_transaction
    def note_embedded(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, refused: Collection[int]
    ) -> None:
        """Mark documents that lack nothing in the live Space but refused chunks as found by meaning."""
        space = _current(connection, tenant_id, kb).space
        if space is None or not _is_word_only(connection, tenant_id, kb):
            return
        rows = connection.execute(
            f"SELECT c.seq, c.document_id {LIVE} AND d.embedded = 0 AND v.chunk_seq IS NULL",
            (space.id, tenant_id, kb.id),
        )
        behind = {document_id for number, document_id in rows if number not in refused}
        waiting = connection.execute(
            "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND version > 0 AND embedded = 0",
            (tenant_id, kb.id),
        ).fetchall()
        connection.executemany(
            "UPDATE documents SET embedded = 1 WHERE tenant_id = ? AND id = ?",
            [(tenant_id, document_id) for (document_id,) in waiting if document_id not in behind],
        )

    @in_snapshot
    def is_truncated(self, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> bool:
        """Return whether the live Space took the place of all others and has not been filled since."""
        space = _current(connection, tenant_id, kb).space
        if space is None or last_number(connection, tenant_id, _truncation(kb)) != space.id:
            return False
        return _is_word_only(connection, tenant_id, kb)

    async def promote(
        self, kb: KnowledgeBase, space: Space, *, keep_until: datetime, refused: Collection[int], complete: Complete
    ) -> bool:
        """Make a Space the live one unless too many live chunks lack a vector in it; complete the last few first."""
        # An index elsewhere must hold the Space before anyone is sent there.
        await self._ledger.catch_up(self._tenant)
        async with self._ledger.transaction(self._tenant) as tx:
            most = FEW + len(refused)
            left = await tx.lacking(kb, space, 0, most + 1)
            if len(left) > most:
                return False
            few = [chunk for chunk in left if chunk.number not in refused]
            if few:
                await tx.add_vectors(space, await complete(few))
            await tx.flip(kb, space, canonical(keep_until))
        return True

    @in_snapshot
    def list_expired(self, connection: Connection, tenant_id: str, moment: datetime) -> list[Space]:
        """Return retired Spaces of all kbs whose grace period was over at that moment."""
        rows = connection.execute(
            f"SELECT {SPACE} FROM spaces s WHERE s.tenant_id = ? AND s.state = 'retired' AND s.keep_until <= ?",
            (tenant_id, canonical(moment)),
        )
        return [Space(*row) for row in rows]

    async def drop(self, space: Space) -> bool:
        """Remove a Space with its vectors wherever they are; False when it is the live one, or has become it."""
        while (gone := await self._drop_some(space)) is None:
            pass
        if gone:
            await self._ledger.catch_up(self._tenant)
        return gone

    @in_transaction
    def _open_building(
        self, connection: Connection, tenant_id: str, kb: KnowledgeBase, model: str, dimension: int, after: int
    ) -> Space:
        _current(connection, tenant_id, kb)
        row = connection.execute(
            f"SELECT {SPACE} FROM spaces s WHERE s.tenant_id = ? AND s.kb_id = ? AND s.state = 'building' "
            "AND s.model = ? AND s.dimension = ? AND s.generation > ? ORDER BY s.generation DESC LIMIT 1",
            (tenant_id, kb.id, model, dimension, after),
        ).fetchone()
        if row:
            return Space(*row)
        newest = connection.execute(
            "SELECT coalesce(max(generation), 0) FROM spaces WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id)
        ).fetchone()[0]
        made = connection.execute(
            "INSERT INTO spaces (tenant_id, kb_id, model, dimension, generation, state, created_at) "
            "VALUES (?, ?, ?, ?, ?, 'building', ?) RETURNING id",
            (tenant_id, kb.id, model, dimension, newest + 1, canonical(now())),
        ).fetchone()
        return Space(made[0], model, dimension, newest + 1, "building")

    @in_transaction
    def _drop_some(self, connection: Connection, tenant_id: str, space: Space) -> bool | None:
        """Remove some vectors of a Space, and at last itself; None while there is more, False when it is live."""
        row = connection.execute(
            "SELECT state FROM spaces WHERE tenant_id = ? AND id = ?", (tenant_id, space.id)
        ).fetchone()
        if row and row[0] == "live":
            return False
        some = connection.execute(
            "SELECT chunk_seq FROM vectors WHERE tenant_id = ? AND space_id = ? LIMIT ?",
            (tenant_id, space.id, DROPPED_TOGETHER),
        ).fetchall()
        connection.executemany(
            "DELETE FROM vectors WHERE tenant_id = ? AND space_id = ? AND chunk_seq = ?",
            [(tenant_id, space.id, number) for (number,) in some],
        )
        if len(some) == DROPPED_TOGETHER:
            return None
        connection.execute("DELETE FROM spaces WHERE tenant_id = ? AND id = ?", (tenant_id, space.id))
        return True


def lacking(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space, after: int, limit: int
) -> list[Lacking]:
    """Return live chunks without a vector, in order of their numbers, behind number `after`."""
    rows = connection.execute(
        f"SELECT c.seq, c.context, c.content, c.content_hash {LIVE} AND c.seq > ? AND v.chunk_seq IS NULL "
        "ORDER BY c.seq LIMIT ?",
        (space.id, tenant_id, kb.id, after, limit),
    )
    return [Lacking(seq, context + content, bytes(hashed)) for seq, context, content, hashed in rows]


def add_vectors(connection: Connection, tenant_id: str, space: Space, rows: Rows) -> int:
    """Write vectors of chunks that are still there and have none; return how many.

    Each is published: an index in memory that follows the Space learns of vectors that come after their chunk.
    """
    kb_id = _kb_of(connection, tenant_id, space)
    there = _lack(connection, tenant_id, kb_id, space, [number for number, _ in rows])
    written = []
    for number, vector in rows:
        if vector.shape != (space.dimension,):
            raise ModelMismatch(
                f"a vector of {vector.shape[-1]} dimensions does not fit a Space of {space.dimension}",
                hint="this is a defect: please report it",
            )
        half = vector.astype(np.float16)
        if number in there and half.any():
            written.append((space.id, number, tenant_id, connection.dialect.pack_vector(half)))
    connection.executemany("INSERT INTO vectors (space_id, chunk_seq, tenant_id, vector) VALUES (?, ?, ?, ?)", written)
    if written:
        publish(connection, tenant_id, kb_id, "vector", [(row[1], there[row[1]]) for row in written])
    return len(written)


def keep_vectors(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    model: str,
    staged: Sequence[tuple[str, int]],
    vectors: Sequence[Matrix],
) -> None:
    """Write vectors of staged versions into the newest Space of their own model and dimension, if the kb has one."""
    for (document_id, version), matrix in zip(staged, vectors, strict=True):
        row = connection.execute(
            f"SELECT {SPACE} FROM spaces s WHERE s.tenant_id = ? AND s.kb_id = ? AND s.model = ? AND s.dimension = ? "
            "ORDER BY s.generation DESC LIMIT 1",
            (tenant_id, kb.id, model, matrix.shape[1]),
        ).fetchone()
        if row is None:
            return
        space = Space(*row)
        numbers = connection.execute(
            "SELECT seq FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY chunk_index",
            (tenant_id, document_id, version),
        ).fetchall()
        rows = [(number, vector) for (number,), vector in zip(numbers, matrix, strict=True)]
        add_vectors(connection, tenant_id, space, rows)


def flip(connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space, keep_until: str) -> KnowledgeBase:
    """Make a Space the live one and retire the one that was. The caller has seen that it lacks nothing."""
    current = _current(connection, tenant_id, kb)
    _kb_of(connection, tenant_id, space)
    if current.space and current.space.id == space.id:
        return current
    connection.execute(
        "UPDATE spaces SET state = 'retired', retired_at = ?, keep_until = ? "
        "WHERE tenant_id = ? AND kb_id = ? AND state = 'live'",
        (canonical(now()), keep_until, tenant_id, kb.id),
    )
    connection.execute(
        "UPDATE spaces SET state = 'live', retired_at = NULL, keep_until = NULL WHERE tenant_id = ? AND id = ?",
        (tenant_id, space.id),
    )
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?", (space.id, tenant_id, kb.id)
    )
    connection.execute(
        "UPDATE documents SET embedded = 1 WHERE tenant_id = ? AND kb_id = ? AND version > 0 AND embedded = 0",
        (tenant_id, kb.id),
    )
    return replace(current, space=replace(space, state="live"))


def truncate(connection: Connection, tenant_id: str, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
    """Put an empty Space in the place of all Spaces of a kb, which may be removed from now on.

    Every document is found by word only until it has vectors again; that this is so on purpose is remembered.
    """
    _current(connection, tenant_id, kb)
    moment = canonical(now())
    newest = connection.execute(
        "SELECT coalesce(max(generation), 0) FROM spaces WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id)
    ).fetchone()[0]
    connection.execute(
        "UPDATE spaces SET state = 'retired', retired_at = ?, keep_until = ? WHERE tenant_id = ? AND kb_id = ?",
        (moment, moment, tenant_id, kb.id),
    )
    made = connection.execute(
        "INSERT INTO spaces (tenant_id, kb_id, model, dimension, generation, state, created_at) "
        "VALUES (?, ?, ?, ?, ?, 'live', ?) RETURNING id",
        (tenant_id, kb.id, model, dimension, newest + 1, moment),
    ).fetchone()
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?", (made[0], tenant_id, kb.id)
    )
    connection.execute(
        "UPDATE documents SET embedded = 0 WHERE tenant_id = ? AND kb_id = ? AND version > 0", (tenant_id, kb.id)
    )
    connection.execute("DELETE FROM counters WHERE tenant_id = ? AND name = ?", (tenant_id, _truncation(kb)))
    next_number(connection, tenant_id, _truncation(kb), made[0])
    return _current(connection, tenant_id, kb)


def _truncation(kb: KnowledgeBase) -> str:
    """Return the name of the number of the Space that a kb was truncated for."""
    return f"truncated.{kb.id}"


def _count(connection: Connection, tenant_id: str, kb: KnowledgeBase, space: Space) -> tuple[int, int]:
    row = connection.execute(f"SELECT count(v.chunk_seq), count(*) {LIVE}", (space.id, tenant_id, kb.id)).fetchone()
    return int(row[0]), int(row[1])


def _is_word_only(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> bool:
    row = connection.execute(
        "SELECT 1 FROM documents WHERE tenant_id = ? AND kb_id = ? AND version > 0 AND embedded = 0 LIMIT 1",
        (tenant_id, kb.id),
    ).fetchone()
    return row is not None


def _lack(connection: Connection, tenant_id: str, kb_id: int, space: Space, numbers: Sequence[int]) -> dict[int, str]:
    """Return the ids of those chunks, by number, that exist, live or staged, and have no vector in the Space."""
    found: dict[int, str] = {}
    for part in in_parts(numbers):
        rows = connection.execute(
            "SELECT c.seq, c.id FROM chunks c LEFT JOIN vectors v ON v.tenant_id = c.tenant_id "
            "AND v.chunk_seq = c.seq AND v.space_id = ? WHERE c.tenant_id = ? AND c.kb_id = ? "
            f"AND v.chunk_seq IS NULL AND c.seq IN ({marks(part)})",
            (space.id, tenant_id, kb_id, *part),
        )
        found.update(rows.fetchall())
    return found


def _kb_of(connection: Connection, tenant_id: str, space: Space) -> int:
    row = connection.execute(
        "SELECT kb_id FROM spaces WHERE tenant_id = ? AND id = ?", (tenant_id, space.id)
    ).fetchone()
    if row is None:
        raise NotFoundError(
            f"the Space of {space.model}, generation {space.generation}, was removed meanwhile",
            hint="start again",
            remedy=Remedy(Action.REEMBED),
        )
    return int(row[0])


def _current(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> KnowledgeBase:
    found = read_kb(connection, tenant_id, kb.name)
    if found is None or found.id != kb.id:
        raise NotFoundError(f"knowledge base '{kb.name}' was deleted meanwhile", hint="ingest again")
    return found

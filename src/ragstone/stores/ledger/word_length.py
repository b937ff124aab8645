"""How long the chunks of a Space are, in words, as an index outside the ledger weighs them.

The weight of a word in a stored point depends on the average length. So one average holds for all points of a Space,
written down here for every process, until the chunks have become so much longer or shorter that all are written anew.
"""

from __future__ import annotations

from ragstone.stores.indexes import LIVE
from ragstone.stores.sql.database import Connection, last_number

USUAL, AS_MANY_AS = 100.0, 5
"""What is taken for the average before there are chunks, and how many of them it counts for when there are few."""
FAR_OFF = 1.25
"""An average that is off by more than this factor is given up."""
GROWN, AT_LEAST = 2, 20
"""The average is looked at again when there have been so many times the chunks, and so many more."""
PLACES, AT_EACH = 32, 8
"""How many places of a kb are looked at, and how many chunks at each."""
SCALE = 1000


def word_length(connection: Connection, tenant_id: str, space_id: int) -> float:
    """The average that points of a Space are written with."""
    return last_number(connection, tenant_id, _average(space_id)) / SCALE or USUAL


def has_grown(connection: Connection, tenant_id: str, space_id: int) -> bool:
    """Whether so many chunks have come since the average was last looked at that it may be a wrong one."""
    then = last_number(connection, tenant_id, _look_counter(space_id))
    return last_number(connection, tenant_id, "chunks") >= GROWN * then + AT_LEAST


def renew(connection: Connection, tenant_id: str, kb_id: int, space_id: int, index: str, factor: float = 1.0) -> bool:
    """Weigh by the present average from now on, if the one in use is off by more than a factor; whether it was.

    All points are then to be written anew. Should that be cut short, whoever follows next starts over.
    """
    _set(connection, tenant_id, _look_counter(space_id), last_number(connection, tenant_id, "chunks"))
    now, then = measure(connection, tenant_id, kb_id), word_length(connection, tenant_id, space_id)
    if max(now / then, then / now) <= factor:
        return False
    _set(connection, tenant_id, _average(space_id), max(1, round(now * SCALE)))
    connection.execute(
        "UPDATE watermarks SET sequence = 0 WHERE tenant_id = ? AND index_name = ? AND space_id = ?",
        (tenant_id, index, space_id),
    )
    return True


def forget(connection: Connection, tenant_id: str, space_id: int) -> None:
    """The Space is gone."""
    connection.execute(
        "DELETE FROM counters WHERE tenant_id = ? AND name IN (?, ?)",
        (tenant_id, _average(space_id), _look_counter(space_id)),
    )


def measure(connection: Connection, tenant_id: str, kb_id: int) -> float:
    """The average number of words, by a look at some live chunks from all over the kb."""
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


def _average(space_id: int) -> str:
    return f"words.{space_id}"


def _look_counter(space_id: int) -> str:
    return f"words.{space_id}.at"

"""The chain of the audit record: every entry holds the hash of the one before it.

Entries that are pruned leave a gap, from the hash before the first of them to the hash of the last. A gap is believed
only if the newest `audit.prune` entry, which is part of the chain, has the digest of the list of all gaps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ragstone.core.audit import AuditChain
from ragstone.stores.sql.database import Connection

START = ""
"""The hash before the first entry."""
PRUNE = "audit.prune"
COLUMNS = (
    "moment, tenant_id, tenant, actor, action, outcome, target, kb, count, document_ids, counts, detail, request_id, "
    "kind"
)
"""The columns that the hash of an entry covers, in this order."""
ROWS = 2000
"""The number of entries that are read at once."""
Gaps = dict[str, tuple[str, int]]
"""The end of a gap and the number of its entries, by its beginning."""


def hash_entry(before: str, values: Sequence[Any]) -> str:
    """Return the hash of an entry, of which `before` is the hash of the one before it."""
    return hashlib.sha256(json.dumps([before, *values], separators=(",", ":")).encode()).hexdigest()


def append_rows(connection: Connection, rows: Iterable[Sequence[Any]]) -> None:
    """Add entries, given as the values of `COLUMNS`, to the end of the chain; the caller holds the control lock."""
    known = connection.execute("SELECT hash FROM audit_head").fetchone()
    last, linked = known[0] if known else START, []
    for values in rows:
        before, last = last, hash_entry(last, values)
        linked.append((*values, before, last))
    if not linked:
        return
    marked = ", ".join("?" * len(linked[0]))
    connection.executemany(f"INSERT INTO audit ({COLUMNS}, previous, hash) VALUES ({marked})", linked)
    change = "UPDATE audit_head SET hash = ?" if known else "INSERT INTO audit_head (id, hash) VALUES (1, ?)"
    connection.execute(change, (last,))


def record_gaps(connection: Connection, removed: Sequence[tuple[str, str]]) -> str:
    """Record the gaps that removed entries leave, given as (hash before, hash); return the digest of all gaps."""
    known = _read_gaps(connection)
    gaps = dict(known)
    for before, own in removed:
        gaps[before] = own, 1
    # Neighbours become one gap, so that there are never more gaps than entries.
    ends = {end for end, _ in gaps.values()}
    merged: Gaps = {}
    for beginning in gaps:
        if beginning in ends:
            continue
        end, count = gaps[beginning]
        while end in gaps:
            end, more = gaps[end]
            count += more
        merged[beginning] = end, count
    changed = [(beginning,) for beginning, gap in known.items() if merged.get(beginning) != gap]
    connection.executemany("DELETE FROM audit_gaps WHERE previous = ?", changed)
    connection.executemany(
        "INSERT INTO audit_gaps (previous, hash, entries) VALUES (?, ?, ?)",
        [(beginning, *gap) for beginning, gap in merged.items() if known.get(beginning) != gap],
    )
    return _digest(merged)


def verify_chain(connection: Connection, noted: str = "") -> AuditChain:
    """Follow the chain from its first entry to its last; `noted` is a hash that must be in it."""
    gaps = _read_gaps(connection)
    digest, pruned = _digest(gaps) if gaps else "", sum(count for _, count in gaps.values())
    last, last_id, entries, anchor, is_noted = START, 0, 0, "", not noted
    for entry_id, before, own, *values in _read_rows(connection):
        if own != hash_entry(before, values):
            return AuditChain(entries, pruned, last, entry_id, f"entry {entry_id} was changed")
        last = _cross_gaps(gaps, last, before)
        if last != before:
            wrong = f"entry {entry_id} does not follow entry {last_id}: one was removed, inserted or moved"
            return AuditChain(entries, pruned, last, entry_id, wrong)
        last, last_id, entries = own, entry_id, entries + 1
        is_noted = is_noted or own == noted
        if values[4] == PRUNE:
            anchor = values[11]
    known = connection.execute("SELECT hash FROM audit_head").fetchone()
    head = known[0] if known else START
    last = _cross_gaps(gaps, last, head)
    wrong = ""
    if last != head:
        wrong = f"the last entry is {last_id}, and others came after it"
    elif gaps or anchor != digest:
        wrong = "the list of pruned entries was changed"
    elif not is_noted:
        wrong = "no entry has the hash that was noted: the record was written anew, or that entry was pruned"
    return AuditChain(entries, pruned, head, last_id if wrong else None, wrong)


def _cross_gaps(gaps: Gaps, at: str, to: str) -> str:
    """Go over the gaps that begin at a hash, until another is reached; those that were crossed are taken out."""
    while at != to and at in gaps:
        at = gaps.pop(at)[0]
    return at


def _read_rows(connection: Connection) -> Iterator[Sequence[Any]]:
    last = -1
    query = f"SELECT id, previous, hash, {COLUMNS} FROM audit WHERE id > ? ORDER BY id LIMIT ?"
    while rows := connection.execute(query, (last, ROWS)).fetchall():
        yield from rows
        last = rows[-1][0]


def _read_gaps(connection: Connection) -> Gaps:
    rows = connection.execute("SELECT previous, hash, entries FROM audit_gaps").fetchall()
    return {before: (end, entries) for before, end, entries in rows}


def _digest(gaps: Gaps) -> str:
    return hashlib.sha256(json.dumps(sorted(gaps.items()), separators=(",", ":")).encode()).hexdigest()

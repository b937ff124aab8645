"""The Spaces of a kb from elsewhere, in a kb of this ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ragstone.core.types import KnowledgeBase, Space
from ragstone.stores.ledger.documents import read_kb
from ragstone.stores.ledger.snapshots import SpaceFacts
from ragstone.stores.ledger.writes import open_space
from ragstone.stores.sql.database import Connection

Spaces = Sequence[Space | None]
"""For each Space there was elsewhere the one that stands for it here, if any."""


def restore_spaces(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Sequence[SpaceFacts], *, follow: bool
) -> tuple[KnowledgeBase, Spaces]:
    """A kb with the given Spaces. One that was never live is left out where the kb has Spaces of its own.

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
        same = [one for one in there if _is_same(one, fact) and one not in made]
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
    live = next((one.id for one, fact in zip(made, facts, strict=True) if one and fact.state == "live"), None)
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?", (live, tenant_id, kb.id)
    )


def _follow(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Sequence[SpaceFacts], made: Spaces
) -> None:
    """Give every Space the state it has elsewhere, and remove those that are not there."""
    kept: Collection[int] = {one.id for one in made if one}
    for one, fact in zip(made, facts, strict=True):
        assert one is not None
        connection.execute(
            "UPDATE spaces SET state = ?, retired_at = ?, keep_until = ? WHERE tenant_id = ? AND id = ?",
            (fact.state, fact.retired_at, fact.keep_until, tenant_id, one.id),
        )
    for one in _read(connection, tenant_id, kb):
        if one.id not in kept:
            connection.execute("DELETE FROM vectors WHERE tenant_id = ? AND space_id = ?", (tenant_id, one.id))
            connection.execute("DELETE FROM spaces WHERE tenant_id = ? AND id = ?", (tenant_id, one.id))

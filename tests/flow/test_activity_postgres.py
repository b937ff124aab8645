"""Machines that share a PostgreSQL share conversations, votes and one log; what is removed on one is gone for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.search import Question, SearchQuery
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
HARBOUR = "The harbour opens at six in the morning. A berth in the harbour costs nine crowns."
FERRY = "The ferry leaves at noon. A ticket for the ferry costs six crowns."
FIRST, SECOND = "When does the harbour open?", "What does it cost?"
Pair = tuple[Engine, Engine]


@pytest.fixture
async def machines(tmp_path: Path, fake_model: FakeEmbedder) -> AsyncIterator[Pair]:
    """Two engines with a data folder each, and one database."""
    ledger = {"kind": "postgres", "dsn": server(18).database(tmp_path)}
    store = {"ledger": ledger, "vectors": {"kind": "pgvector"}, "lexical": {"kind": "postgres"}}
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(open_engine(Settings(data_dir=tmp_path / name, store=store)))
            for name in ("first", "second")
        ]
        items = [Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY)]
        await workspace_of(first).documents.ingest_items(items)
        yield first, second


async def _harbour(engine: Engine) -> str:
    return next(one.id for one in await workspace_of(engine).documents.list() if one.external_id == "harbour")


async def _rows(engine: Engine, *tables: str) -> list[int]:
    return [
        await engine._components.ledger.read(
            "default", lambda rows, _, table=table: rows.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        )
        for table in tables
    ]


async def test_two_machines_go_on_with_one_conversation_and_write_one_log(machines: Pair) -> None:
    first, second = machines
    assert "six in the morning" in (await workspace_of(first).ask(Question(FIRST, conversation="talk"))).answer
    await first._components.search_log.flush()
    assert "nine crowns" in (await workspace_of(second).ask(Question(SECOND, conversation="talk"))).answer
    await second._components.search_log.flush()
    for engine in machines:
        assert [turn.question for turn in await workspace_of(engine).conversations.turns("talk")] == [FIRST, SECOND]
        logged = await workspace_of(engine).feedback.searches(conversation="talk")
        assert [one.query for one in logged] == [SECOND, FIRST]
    hit = (await workspace_of(second).search(SearchQuery("harbour", k=1))).hits[0]
    await workspace_of(second).feedback.vote("harbour", [hit.chunk_id], "up")
    await workspace_of(second).feedback.add_golden("harbour hours", [hit.document_id])
    assert [one.vote for one in await workspace_of(first).feedback.votes()] == ["up"]
    assert [one.query for one in await workspace_of(first).feedback.golden()] == ["harbour hours"]
    await second._components.search_log.flush()
    await workspace_of(first).knowledge_bases.rename("default", "port")
    assert len(await workspace_of(second).conversations.turns("talk", kb="port")) == 2
    assert len(await workspace_of(second).feedback.searches(kb="port")) == 3


@pytest.mark.parametrize("way", ["delete", "replace", "erase", "kb", "tenant"])
async def test_what_is_removed_on_one_machine_is_gone_for_the_other(machines: Pair, way: str) -> None:
    first, second = machines
    await workspace_of(second).ask(Question(FIRST, conversation="talk", k=1))
    hit = (await workspace_of(second).search(SearchQuery("harbour", k=1))).hits[0]
    await workspace_of(second).feedback.vote("harbour", [hit.chunk_id], "up")
    await workspace_of(second).feedback.add_golden("harbour hours", [hit.document_id])
    await second._components.search_log.flush()
    tables = ("turns", "turn_documents", "votes", "golden_queries", "retrieval_log", "retrieval_log_hits")
    assert await _rows(first, *tables) == [1, 1, 1, 1, 2, 2]
    if way == "replace":
        await workspace_of(first).documents.ingest_items([Item("test", "harbour", "harbour", "The harbour is closed.")])
        assert await _rows(second, *tables) == [1, 1, 1, 1, 2, 2]
    elif way == "delete":
        await workspace_of(first).documents.delete(await _harbour(first))
        assert await _rows(second, *tables) == [1, 0, 0, 0, 2, 0]
    else:
        kind = "document" if way == "erase" else way
        if way == "tenant":
            receipt = await first.erase_tenant("default")
        else:
            target = await _harbour(first) if way == "erase" else "default"
            [receipt] = await workspace_of(first).erase(kind, target)  # type: ignore[arg-type]
        assert (receipt.complete, receipt.remaining["activity"]) == (True, {"rows": 0})
        # A document: vote, golden query, turn and two hits. A kb or tenant: vote, golden query, turn, two searches.
        assert receipt.removed["activity"] == {"rows": {"erase": 5, "kb": 10, "tenant": 5}[way]}
        if way != "tenant":
            assert await _rows(second, *tables) == [0] * 6
    for turn in await workspace_of(second).conversations.turns("talk"):
        assert (turn.question, turn.answer) == (FIRST, "")


async def test_the_log_waits_for_no_disk(machines: Pair) -> None:
    def setting(rows: object, _: str) -> str:
        found: str = rows.execute("SELECT current_setting('synchronous_commit')").fetchone()[0]  # type: ignore[attr-defined]
        return found

    ledger = machines[0]._components.ledger
    assert await ledger.write_log("default", setting) == "off"  # type: ignore[attr-defined]
    assert await ledger.write("default", setting) == "on"  # type: ignore[attr-defined]

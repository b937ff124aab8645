"""Words of callers reach a database as values only: no statement that is run holds any of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Item, Settings, open_engine
from ragstone.core.search import Question, SearchQuery
from ragstone.stores.ledger.sqlite.file import SqliteConnection
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
MARK = "canary7731"
HOSTILE = f"{MARK}'); DROP TABLE documents; --\"%s?"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is given to SQLite or PostgreSQL, before its values are put in."""
    ran: list[str] = []

    for owner, name in product((SqliteConnection, psycopg.Cursor), ("execute", "executemany")):
        original = getattr(owner, name)

        def recorded(self: object, query: Any, *values: Any, run: Any = original, **options: Any) -> Any:
            ran.append(str(query))
            return run(self, query, *values, **options)

        monkeypatch.setattr(owner, name, recorded)
    return ran


@pytest.mark.req("R-SEC-08")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_hostile_words_are_found_again_and_stand_in_no_statement(
    kind: str, tmp_path: Path, fake_model: FakeEmbedder, statements: list[str]
) -> None:
    store: dict[str, Any] = {}
    if kind == "postgres":
        ledger = {"kind": "postgres", "dsn": server(18).database(tmp_path)}
        store = {"store": {"ledger": ledger, "vectors": {"kind": "pgvector"}, "lexical": {"kind": "postgres"}}}
    item = Item(HOSTILE, HOSTILE, HOSTILE, f"The ferry of {HOSTILE} sails.", title=HOSTILE, metadata={"line": HOSTILE})
    async with open_engine(Settings(data_dir=tmp_path / "data", **store)) as engine:
        workspace = workspace_of(engine)
        await workspace.documents.ingest_items([item, Item("test", "other", "other", "The pier.")])
        (hit,) = (await workspace.search(SearchQuery(HOSTILE, arms="lexical"))).hits
        assert (hit.title, hit.uri, hit.text.endswith(f"The ferry of {HOSTILE} sails.")) == (HOSTILE, HOSTILE, True)
        for where in ({"line": HOSTILE}, {"title": {"in": [HOSTILE]}}, {"line": {"gte": HOSTILE, "lte": HOSTILE}}):
            assert [one.chunk_id for one in (await workspace.search(SearchQuery("sail", where=where))).hits] == [
                hit.chunk_id
            ]
        await workspace.ask(Question(f"Who sails {HOSTILE}?", conversation=MARK))
        await workspace.feedback.vote(HOSTILE, [hit.chunk_id], "up")
        assert len(await workspace.documents.list()) == 2
        assert await workspace.documents.delete(hit.document_id)
        assert [document.external_id for document in await workspace.documents.list()] == ["other"]
    assert len(statements) > 50
    assert [statement for statement in statements if MARK in statement] == []

"""Reads of a tenant's file that hang: searches come back without them, and are as before once they are back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, SearchResult, Settings, open_engine
from ragstone.core.errors import StoreBusy
from ragstone.stores.ledger import documents, tenant_ledger
from ragstone.stores.ledger.sqlite.file import READERS
from ragstone.stores.lexical.sqlite import SqliteLexicalIndex
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

LIMIT = 60.0
"""Seconds: who waited for a read that hangs would be seen to hang as well."""


class Hang:
    """Stands in for a function: while it is on, calls begin and do not end."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.on = False
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()

    def called(self, *arguments: Any) -> Any:
        if self.on:
            self.begun.release()
            self.let_go.wait()
        return self._function(*arguments)


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    settings = Settings(
        data_dir=tmp_path,
        retrieval={"timeout": LIMIT},
        cache={"search_seconds": 0},
        limits={"searches_at_once": 100},  # no search waits for its turn while others hang
    )
    async with open_engine(settings) as opened:
        await workspace_of(opened).documents.ingest_items(
            [Item("letters", "1", "letters/1", "The ferry leaves at nine.")]
        )
        yield opened


async def given_up(engine: Engine, hang: Hang, searches: int) -> None:
    """So many searches begin to read, and whoever made them gives up."""
    tasks = [asyncio.create_task(workspace_of(engine).search("ferry")) for _ in range(searches)]
    for _ in tasks:
        await asyncio.to_thread(hang.begun.acquire)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_whole(engine: Engine) -> SearchResult:
    while True:
        try:
            found = await workspace_of(engine).search("ferry")
        except StoreBusy:
            continue
        if not found.degraded:
            return found


@pytest.mark.req("R-MOD-08")
async def test_searches_go_on_by_meaning_while_those_by_word_hang(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = Hang(SqliteLexicalIndex._search)
    monkeypatch.setattr(SqliteLexicalIndex, "_search", lambda *arguments: hang.called(*arguments))
    before = await workspace_of(engine).search("ferry")
    assert before.degraded == ()
    hang.on = True
    try:
        await given_up(engine, hang, READERS + 1)
        async with asyncio.timeout(LIMIT):
            sixth, seventh = (await workspace_of(engine).search("ferry"), await workspace_of(engine).search("ferry"))
    finally:
        hang.on = False
        hang.let_go.set()
    for found in (sixth, seventh):
        assert [hit.text for hit in found.hits] == ["The ferry leaves at nine."]
        (note,) = found.degraded
        assert note.startswith("lexical: 5 reads of ")
        assert note.endswith(" have not come back")
    after = await until_whole(engine)
    assert [hit.scores for hit in after.hits] == [hit.scores for hit in before.hits]


async def test_who_cannot_look_up_the_kb_is_told_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = Hang(documents.read_kb)
    monkeypatch.setattr(tenant_ledger, "read_kb", hang.called)
    hang.on = True
    try:
        await given_up(engine, hang, READERS)
        async with asyncio.timeout(LIMIT):
            with pytest.raises(StoreBusy, match=f"^{READERS} reads of .* have not come back$") as refused:
                await workspace_of(engine).search("ferry")
    finally:
        hang.on = False
        hang.let_go.set()
    assert (refused.value.retryable, bool(refused.value.hint)) == (True, True)
    assert (await until_whole(engine)).hits


async def test_a_search_gives_the_kb_up_after_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    hang = Hang(documents.read_kb)
    monkeypatch.setattr(tenant_ledger, "read_kb", hang.called)
    async with open_engine(Settings(data_dir=tmp_path, retrieval={"timeout": 0.01})) as engine:
        await workspace_of(engine).documents.ingest_items(
            [Item("letters", "1", "letters/1", "The ferry leaves at nine.")]
        )
        hang.on = True
        try:
            with pytest.raises(StoreBusy, match=r"of tenant 'default' could not be read within 0\.0\d+ s"):
                await workspace_of(engine).search("ferry")
        finally:
            hang.let_go.set()

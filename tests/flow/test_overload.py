"""More searches at once than can be done: they wait, and those beyond the queue are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ragstone import Item, Settings, open_engine
from ragstone.core.errors import Overloaded
from ragstone.testing.fakes import FakeEmbedder


async def test_searches_wait_for_their_turn_and_those_beyond_the_queue_are_refused(
    data_dir: Path, fake_model: FakeEmbedder
) -> None:
    limits = {"searches_at_once": 1, "waiting": 5, "answers_at_once": 2}
    settings = Settings.model_validate({"data_dir": data_dir, "limits": limits, "cache": {"search_seconds": 0}})
    async with open_engine(settings) as engine:
        workspace = engine.workspace("acme")
        await workspace.documents.ingest_items([Item("notes", "ferry", "ferry", "The ferry leaves at nine.")])
        await workspace.search("ferry")
        found = await asyncio.gather(*(workspace.search("ferry") for _ in range(20)), return_exceptions=True)
        done = [one for one in found if not isinstance(one, BaseException)]
        assert len(done) == 6
        assert all(isinstance(one, Overloaded) for one in found if isinstance(one, BaseException))
        waited = [result.trace[0].ms for result in done if result.trace[0].stage == "queue"]
        assert len(waited) == 5
        assert all(result.took_ms > ms for result, ms in zip(done[1:], waited, strict=True))
        asked = await asyncio.gather(*(workspace.ask("When does the ferry leave?") for _ in range(6)))
        assert all(answer.status == "answered" for answer in asked)
        turns = engine._components.search_turns, engine._components.answer_turns
        assert [(one.running, one.waiting) for one in turns] == [(0, 0), (0, 0)]

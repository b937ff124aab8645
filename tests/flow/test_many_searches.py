"""Searches that run out of time say so, through every tool: "nothing found" means that everything was searched."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.at_once import BARE_EMPTY, TOOLS, count_outcomes, outcome_of, read_tool

from ragstone import Item, Settings, open_engine
from ragstone.query.context import Recorder
from ragstone.samples import golden
from ragstone.testing.fakes import FakeEmbedder

SEARCHES = 2 * (1 + len(TOOLS))


@pytest.mark.parametrize("in_time", [True, False])
async def test_no_search_is_silently_empty(
    tmp_path: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    if not in_time:
        monkeypatch.setattr(Recorder, "read_seconds", 0.0)
    texts = [f"{known.query} Yes, {known.query}" for known in golden()[:SEARCHES]]
    async with open_engine(Settings(data_dir=tmp_path, retrieval={"timeout": 60})) as engine:
        workspace = engine.workspace("default")
        await workspace.documents.ingest_items([Item("notes", text, text, text) for text in texts])
        counts = await count_outcomes(workspace, SEARCHES, at_once=20)
    assert counts.total() == SEARCHES
    assert in_time or counts[BARE_EMPTY] == 0
    assert (counts["with hits"] > 0) == in_time
    assert (counts["typed error"] > 0) != in_time


def test_an_empty_answer_of_a_tool_is_told_from_a_degraded_one() -> None:
    assert read_tool([]) == read_tool({"results": []}) == read_tool({}) == BARE_EMPTY
    assert read_tool({"evidence": [], "degraded": ["dense: out of time"]}) == "empty, degraded"
    assert read_tool({"mail": [{"text": "x"}]}) == read_tool([{"text": "x"}]) == "with hits"
    assert read_tool({"error": {"code": "search_failed"}}) == "typed error"
    assert outcome_of(True, True) == "with hits, degraded"

"""kill -9 at a node of the article pipeline: the run goes on there, and ends as if nothing had happened.

`RAGSTONE_ARTICLE_NODES=9 pytest tests/faults/test_article_kill.py` kills at each of them, the test suite at some.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.newsroom import ask_tool, newsroom, once
from tests.long_runs import take_rounds
from tests.warm import warm_python

from ragstone.engine.engine import open_engine
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder

GATE = "# Gate\n\nThe tide gate opens at nine. The keeper of the tide gate has two keys.\n"
DRAFT = GATE + "\nThe tide gate opens at ten.\n"
PARTS = {
    "research": once(ask_tool("research_topic", {"topic": "tide gate"}), "It opens at nine."),
    "writer": once(ask_tool("search_knowledge", {"query": "keeper"}, {"query": "keys"}), DRAFT),
    "editor": DRAFT,
    "style_enforce": DRAFT,
    "critic": "Short.",
    "fact_verify": once(ask_tool("verify_claim", {"claim": "The tide gate opens at ten."}), "Say nine."),
}
NODES = (
    *("tools", "fact_verify", "editor", "research", "writer", "voice_validate", "style_enforce", "critic"),
    "quality_gate",
)[: take_rounds("RAGSTONE_ARTICLE_NODES", 3)]


def read_state(path: Path) -> dict[str, Any]:
    """Return the last state of a run, without the times that its nodes took."""
    state: dict[str, Any] = json.loads(path.read_text())
    for step in state["steps"]:
        del step["seconds"]
    return state


@pytest.mark.req("R-ART-08")
async def test_a_run_that_is_killed_at_a_node_ends_like_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    (tmp_path / "gate.md").write_text(GATE)
    async with open_engine(load_settings(overrides={"data_dir": tmp_path / "data"})) as engine:
        await engine.workspace("default").documents.ingest(tmp_path / "gate.md")
    with newsroom(PARTS) as double:
        command = [*warm_python(), "-m", "tests.faults.article_process", str(tmp_path), double.url, "none", *NODES]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    undisturbed = read_state(tmp_path / "none.json")
    assert [step["node"] for step in undisturbed["steps"]].count("tools") == 4
    assert (undisturbed["round"], {vote["vote"] for vote in undisturbed["votes"]}) == (2, {"accept", "reject"})
    for node in NODES:
        assert read_state(tmp_path / f"{node}.json") == undisturbed, node
    record_property("injected", len(NODES))

"""A process that writes articles and kills itself at a node: `article_process.py FOLDER URL NODE...`.

LangGraph is imported once. For each node a copy of the process writes an article until that node's work is done and
kills itself before it is saved; a second copy goes on with the run, and writes its last state to `FOLDER/NODE.json`.
`none`, which comes first, is a run that nobody kills.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import openai  # noqa: F401  # once, for all copies

import ragstone.agents.article.graph
import ragstone.engine.components
from ragstone.agents.article.run import resume_article
from ragstone.engine.engine import open_engine
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder

TOPIC = "The tide gate"


async def start(folder: Path, url: str) -> str:
    """Add a run and return its id."""
    async with open_engine(load_settings(overrides=_overrides(folder, url))) as engine:
        return (await engine.workspace("default").articles.start(TOPIC)).id


async def go_on(folder: Path, url: str, run_id: str, node: str, result: Path | None) -> None:
    """Go on with a run, until a node's work is done or to its end."""

    def watch(name: str, event: str) -> None:
        if (name, event) == (node, "done") and result is None:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_engine(load_settings(overrides=_overrides(folder, url))) as engine:
        workspace = engine.workspace("default")
        await resume_article(workspace, run_id, on_node=watch)
        kept = await workspace.articles.checkpoint(run_id)
    assert result is not None
    await asyncio.to_thread(result.write_text, json.dumps(kept["checkpoint"]["channel_values"]))


def _overrides(folder: Path, url: str) -> dict[str, object]:
    return {"data_dir": folder / "data", "llm": {"model": "m", "base_url": url, "retries": 0}}


def copy(*arguments: object) -> int:
    """Run `go_on` in a copy of this process; return how that ended."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(go_on(*arguments))  # type: ignore[arg-type]
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, url: str, nodes: list[str]) -> None:
    ragstone.engine.components.build_embedder = lambda _: FakeEmbedder()  # type: ignore[assignment,return-value]
    for node in nodes:
        run_id = asyncio.run(start(folder, url))
        if node == "none":
            # In this process: copies of it have loaded what a run loads.
            asyncio.run(go_on(folder, url, run_id, node, folder / "none.json"))
            continue
        assert copy(folder, url, run_id, node, None) == -signal.SIGKILL, node
        assert copy(folder, url, run_id, node, folder / f"{node}.json") == 0, node
        print(node, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])

"""Many searches at once on busy cores: each has hits, says what was degraded, or is an error; none is silently empty.

`python -m bench concurrent`: 1,000 searches, 150 at a time, through every way of searching.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from bench.report import Row
from ragstone.agents.budget import Budget
from ragstone.agents.toolbox import Toolbox
from ragstone.core.errors import RagstoneError
from ragstone.core.search import SearchQuery
from ragstone.core.types import Json
from ragstone.engine.engine import open_engine
from ragstone.engine.workspace import Workspace
from ragstone.samples import corpus_path, golden
from ragstone.settings.tree import Settings

SEARCHES = 1000
AT_ONCE = 150
BURNERS_PER_CORE = 2
BURN_SECONDS = 300
PART = "concurrent"
BARE_EMPTY = "empty and silent"
OUTCOMES = ("with hits", "with hits, degraded", "empty, degraded", "typed error", BARE_EMPTY)
TOOLS = ("search_knowledge", "searchDocs", "verify_claim", "research_topic", "researchTopic")
Way = Callable[[Workspace, str], Awaitable[str]]
"""Searches for a query and returns one of the outcomes."""


def run() -> list[Row]:
    logging.disable()  # every search that was given up says so
    with tempfile.TemporaryDirectory() as folder:
        counts = asyncio.run(_measure(Path(folder)))
    rows = [Row(PART, f"searches {outcome}", str(counts[outcome])) for outcome in OUTCOMES[:-1]]
    silent = counts[BARE_EMPTY]
    return [*rows, Row(PART, f"searches {BARE_EMPTY}", str(silent), "0", silent == 0)]


async def _measure(folder: Path) -> Counter[str]:
    async with open_engine(Settings(data_dir=folder)) as engine:
        workspace = engine.workspace("default")
        await workspace.documents.ingest(corpus_path())
        with burning((os.cpu_count() or 1) * BURNERS_PER_CORE, BURN_SECONDS):
            return await count_outcomes(workspace, SEARCHES, AT_ONCE)


async def count_outcomes(workspace: Workspace, searches: int, at_once: int) -> Counter[str]:
    """Search for things that are there, so many at a time, and count how the searches ended."""
    places = asyncio.Semaphore(at_once)

    async def search(way: Way, query: str) -> str:
        async with places:
            try:
                return await way(workspace, query)
            except RagstoneError:
                return "typed error"

    ways: Sequence[Way] = (search_workspace, *(_tool_way(name) for name in TOOLS))
    queries = islice(cycle(known.query for known in golden()), searches)
    return Counter(await asyncio.gather(*map(search, cycle(ways), queries)))


async def search_workspace(workspace: Workspace, query: str) -> str:
    found = await workspace.search(SearchQuery(query))
    return outcome_of(bool(found.hits), bool(found.degraded))


def _tool_way(name: str) -> Way:
    async def call(workspace: Workspace, query: str) -> str:
        box = Toolbox(workspace, [name], budget=Budget(calls=1))
        return read_tool(await box.value(name, {next(iter(box.tools[0].schema["properties"])): query}))

    return call


def read_tool(value: Json) -> str:
    """Return how a tool call ended, from nothing but what the agent gets."""
    if isinstance(value, list):
        return outcome_of(bool(value), any(isinstance(item, dict) and item.get("degraded") for item in value))
    assert isinstance(value, dict)
    if "error" in value:
        return "typed error"
    # Every other list is one of passages, under the name that the tool has for it.
    found = any(isinstance(part, list) and part for name, part in value.items() if name != "degraded")
    return outcome_of(bool(found), bool(value.get("degraded")))


def outcome_of(found: bool, degraded: bool) -> str:
    if found:
        return "with hits, degraded" if degraded else "with hits"
    return "empty, degraded" if degraded else BARE_EMPTY


@contextmanager
def burning(processes: int, seconds: float) -> Iterator[None]:
    """Keep cores busy while the block runs, and no longer than some seconds."""
    context = multiprocessing.get_context("spawn")
    burners = [context.Process(target=_burn, args=(seconds,), daemon=True) for _ in range(processes)]
    for burner in burners:
        burner.start()
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.join()


def _burn(seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        sum(range(10_000))

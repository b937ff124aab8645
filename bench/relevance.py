"""How often a passage is relevant whose relevance is said to be so much, on two labelled collections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from bench.data import load
from bench.quality import kept_settings
from bench.report import Row
from bench.takaro.labels import load_labels
from bench.takaro.measure import ingest_pages
from ragstone.core.search import SearchQuery
from ragstone.engine.engine import open_engine
from ragstone.engine.workspace import Workspace
from ragstone.evaluate.dataset import Dataset, documents_as_items
from ragstone.testing.workspaces import workspace_of

PART = "relevance"
BOUNDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)
NONSENSE = (
    "zyxomorphic flurbnations",
    "the recipe for grandmother's apple strudel",
    "quarterly revenue of the Zorblax fleet",
)
"""Queries of which neither collection knows anything."""
Rated = Sequence[tuple[float, bool]]
"""The relevance of passages, and whether they are."""


def run(folder: Path) -> list[Row]:
    """Rate the first ten passages of each query, and compare with the labels."""
    return asyncio.run(_run(folder))


async def _run(folder: Path) -> list[Row]:
    collection = load(folder)
    async with open_engine(kept_settings(collection)) as engine:
        await workspace_of(engine).documents.ingest_items(documents_as_items(collection.dataset))
        rows = await _rows("SciFact, test queries", workspace_of(engine), collection.dataset)
    async with ingest_pages(folder.parent / "takaro-docs", "default profile") as workspace:
        return [*rows, *await _rows("documentation, all queries", workspace, load_labels().dataset)]


async def _rows(name: str, workspace: Workspace, dataset: Dataset) -> list[Row]:
    rated: list[tuple[float, bool]] = []
    for query in dataset.queries:
        rated += await _rate(workspace, query.text, dataset.grades[query.id])
    strange = [value for query in NONSENSE for value, _ in await _rate(workspace, query, {})]
    rows = [_bucket(name, rated, *bounds) for bounds in pairwise(BOUNDS)]
    return [
        *rows,
        Row(PART, f"{name}: most for a query about something else", f"{max(strange, default=0):.2f}", "< 0.3"),
    ]


async def _rate(workspace: Workspace, query: str, grades: Mapping[str, int]) -> Rated:
    found = await workspace.search(SearchQuery(query, k=10))
    return [(hit.relevance or 0.0, grades.get(str(hit.metadata.get("dataset_id")), 0) > 0) for hit in found.hits]


def _bucket(name: str, rated: Rated, low: float, high: float) -> Row:
    inside = [relevant for value, relevant in rated if low <= value < high]
    share = f"{sum(inside) / len(inside):.2f} are relevant" if inside else "none"
    return Row(PART, f"{name}: relevance {low:.1f} to {min(high, 1.0):.1f} ({len(inside)} passages)", share)

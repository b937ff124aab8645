"""Lexical, dense and hybrid search over the documentation, for each kind of query."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import Row
from bench.takaro.labels import Labels, load_labels
from ragstone import Settings, open_engine
from ragstone.core.search import Arm, SearchQuery, SearchResult
from ragstone.core.types import Failure, Item
from ragstone.engine.workspace import Workspace
from ragstone.evaluate.metrics import paired_bootstrap
from ragstone.evaluate.runner import SystemScores, evaluate
from ragstone.ingest.sources.files.read import scan_paths
from ragstone.models.weights.artefacts import cache_folder
from ragstone.settings.load import read_profile
from ragstone.testing.workspaces import workspace_of

PART = "takaro"
ARMS: tuple[Arm, ...] = ("lexical", "dense", "hybrid")
SEED = "seed-"
METRICS = ("hit@1", "hit@5", "ndcg@10")
VARIANTS: Mapping[str, tuple[str, Sequence[str]]] = {
    "default profile": ("default", ()),
    "takaro profile": ("takaro", ("chunking", "retrieval")),
    "takaro chunks, default fusion": ("takaro", ("chunking",)),
}
"""What is taken from which profile; stores and models stay those of the default profile, which run anywhere."""


@dataclass(frozen=True)
class ByArm:
    """A workspace that searches in one way, as the `Retriever` that the runner measures."""

    workspace: Workspace
    arms: Arm

    async def retrieve(self, query: str, k: int) -> SearchResult:
        return await self.workspace.search(SearchQuery(query, k=k, arms=self.arms))


def run(folder: Path) -> list[Row]:
    """Every variant; the hybrid row of each is held against its dense one."""
    labels = load_labels()
    return [
        row for variant in VARIANTS for row in _rows(variant, labels, asyncio.run(_measured(folder, variant, labels)))
    ]


async def _measured(folder: Path, variant: str, labels: Labels) -> dict[str, SystemScores]:
    async with ingest_pages(folder, variant) as workspace:
        return {
            arms: await evaluate(ByArm(workspace, arms), labels.dataset, system=arms, metrics=METRICS) for arms in ARMS
        }


@asynccontextmanager
async def ingest_pages(folder: Path, variant: str) -> AsyncIterator[Workspace]:
    """Give a workspace that has all pages."""
    profile, sections = VARIANTS[variant]
    # Kept: what has not changed since the last run is not embedded again.
    place = cache_folder(None) / "bench" / f"takaro-{profile}"
    async with open_engine(_settings(profile, sections, place)) as engine:
        items, listings = await scan_paths([folder], engine.settings.limits)
        report = await workspace_of(engine).documents.ingest_items(with_page_ids(items, folder), listings=listings)
        print(f"  {variant}: {report.documents} pages, {report.chunks} chunks", file=sys.stderr)
        yield workspace_of(engine)


def _settings(profile: str, sections: Sequence[str], data_dir: Path) -> Settings:
    chosen: dict[str, Any] = {section: read_profile(profile)[section] for section in sections}
    return Settings.model_validate({"data_dir": data_dir, **chosen})


def with_page_ids(items: Iterator[Item | Failure], folder: Path) -> Iterator[Item | Failure]:
    """The path under the folder is what the labels know a page by."""
    root = folder.resolve()
    for item in items:
        if isinstance(item, Failure):
            yield item
        else:
            page = Path(item.external_id).relative_to(root).as_posix()
            yield replace(item, metadata={**item.metadata, "dataset_id": page})


def _rows(variant: str, labels: Labels, scored: Mapping[str, SystemScores]) -> list[Row]:
    queries = labels.dataset.queries
    held_out = load_labels("test").kinds
    groups = {"all": list(range(len(queries)))}
    groups |= {kind: labels.positions(kind) for kind in dict.fromkeys(labels.kinds.values())}
    groups["of the seed"] = [n for n, query in enumerate(queries) if query.id.startswith(SEED)]
    rows = [_quality(variant, kind, places, scored) for kind, places in groups.items()]
    test = [n for n, query in enumerate(queries) if query.id in held_out]
    gains = [
        _gain(variant, name, places, metric, scored)
        for name, places in (("all", groups["all"]), ("test half", test))
        for metric in METRICS
    ]
    return [*rows, *gains, _missed(variant, labels, scored)]


def _quality(variant: str, kind: str, places: Sequence[int], scored: Mapping[str, SystemScores]) -> Row:
    means = {
        metric: " / ".join(f"{np.mean(_of(scored[arms], metric, places)):.3f}" for arms in ARMS) for metric in METRICS
    }
    value = ", ".join(f"{metric} {mean}" for metric, mean in means.items())
    return Row(PART, f"{variant}, {kind} ({len(places)}): {' / '.join(ARMS)}", value)


def _gain(variant: str, name: str, places: Sequence[int], metric: str, scored: Mapping[str, SystemScores]) -> Row:
    dense = _of(scored["dense"], metric, places)
    found = paired_bootstrap(_of(scored["hybrid"], metric, places), dense)
    relative = found.difference / float(np.mean(dense))
    value = f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}], {relative:+.1%}"
    what = f"{variant}, hybrid against dense, {name} ({len(places)}), {metric}"
    return Row(PART, what, value, "> 0", found.difference > 0)


def _of(row: SystemScores, metric: str, places: Sequence[int]) -> list[float]:
    return [row.per_query[metric][place] for place in places]


def _missed(variant: str, labels: Labels, scored: Mapping[str, SystemScores]) -> Row:
    hits = scored["hybrid"].per_query["hit@5"]
    missed = [query.text for query, hit in zip(labels.dataset.queries, hits, strict=True) if not hit]
    return Row(PART, f"{variant}, not among the first 5 of hybrid", "; ".join(missed) or "none")

"""What each query transform gains, on the training queries of a labelled collection: nothing here chose by the test."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.data import load, vectors
from bench.report import Row
from ragstone import Settings, open_engine
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.engine.workspace import Workspace
from ragstone.evaluate.dataset import load_dataset
from ragstone.evaluate.metrics import paired_bootstrap
from ragstone.evaluate.runner import SystemScores, evaluate
from ragstone.settings.retrieval import RetrievalSettings, Transform
from ragstone.stores.factory import open_stores
from ragstone.testing.workspaces import workspace_of

PART = "transforms"
MODEL = "granite-embedding-30m-english"
METRICS = ("ndcg@10", "recall@10")
LOCAL: tuple[Transform, ...] = ("normalize", "stop_words", "stem", "entities", "decompose", "feedback")
WORDNET = Path("/usr/share/wordnet")


@dataclass(frozen=True)
class ByTransform:
    """A workspace that puts every query through one transform."""

    workspace: Workspace
    name: Transform | None

    async def retrieve(self, query: str, k: int) -> SearchResult:
        return await self.workspace.search(SearchQuery(query, k=k, strategy=self.name))


def run(folder: Path) -> list[Row]:
    """Every transform that needs no LLM, each held against the plain query."""
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(_fill(Path(place), folder))
        wordnet = WORDNET if WORDNET.is_dir() else None
        scored = asyncio.run(_measured(Path(place), folder, wordnet))
    plain = scored.pop("none")
    rows = [Row(PART, "the plain query", _value(plain))]
    rows += [_gain(name, row, plain) for name, row in scored.items()]
    if "synonyms" not in scored:
        rows.append(Row(PART, "synonyms", f"not measured: {WORDNET} does not exist"))
    return rows


async def _fill(place: Path, folder: Path) -> None:
    """The collection with vectors that were made once, so that it is not embedded for every measurement."""
    collection = load(folder)
    stores = open_stores(Settings(data_dir=place))
    await peers.build(stores, collection, await asyncio.to_thread(vectors, collection, MODEL))
    await stores.ledger.close()


async def _measured(place: Path, folder: Path, wordnet: Path | None) -> dict[str, SystemScores]:
    dataset = load_dataset(folder, "train")
    names: list[Transform | None] = [None, *LOCAL]
    if wordnet:
        names.append("synonyms")
    # Time is no object here: what a transform is worth must not depend on how busy the machine is.
    retrieval = RetrievalSettings(timeout=60, wordnet=wordnet)
    scored: dict[str, SystemScores] = {}
    async with open_engine(Settings(data_dir=place, retrieval=retrieval)) as engine:
        for name in names:
            print(f"  {name or 'none'} …", file=sys.stderr)
            row = await evaluate(ByTransform(workspace_of(engine), name), dataset, system=str(name), metrics=METRICS)
            if row.degraded:
                raise SystemExit(f"{name}: {'; '.join(row.degraded)}")
            scored[name or "none"] = row
    return scored


def _value(row: SystemScores) -> str:
    scores = ", ".join(f"{metric} {row.scores[metric]:.4f}" for metric in METRICS)
    return f"{scores}, p50 {row.latency_ms(50):.0f} ms"


def _gain(name: str, row: SystemScores, plain: SystemScores) -> Row:
    found = paired_bootstrap(row.per_query["ndcg@10"], plain.per_query["ndcg@10"])
    value = f"{_value(row)}, {found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
    return Row(PART, name, value)

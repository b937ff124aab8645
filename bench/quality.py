"""Quality on a labelled collection: every way to search next to what each half does without the rest of it.

The references are run here, on the same queries: BM25 (bm25s where it is installed, else the same formula written
out), the embedder alone over whole documents, and plain reciprocal rank fusion of those two.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import Stemmer

from bench.data import Collection, load, vectors
from bench.report import Row
from ragstone.engine.engine import open_engine
from ragstone.engine.experiments import ARMS, MODES, SYSTEMS, WorkspaceRetriever, kb_name
from ragstone.evaluate.dataset import documents_as_items
from ragstone.evaluate.metrics import ndcg, paired_bootstrap
from ragstone.evaluate.runner import evaluate
from ragstone.models.weights.artefacts import cache_folder
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Settings
from ragstone.testing.workspaces import workspace_of

PART = "quality"
DEPTH = 100
K1, B = 1.5, 0.75
RRF_K = 60
WORD = re.compile(r"\b\w\w+\b")
STEMMER = Stemmer.Stemmer("english")
AT_LEAST = {"fast": 0.735, "balanced": 0.74, "thorough": 0.74}
FUNCTION_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with"
)
STOP_WORDS = frozenset(FUNCTION_WORDS.split())
Gains = Mapping[str, tuple[float, ...]]
"""By system, nDCG@10 of each query."""


def run(folder: Path) -> list[Row]:
    collection = load(folder)
    gains, times = asyncio.run(_measured(collection))
    references = _references(collection)
    gains = {**{name: _gains(collection, ranked) for name, ranked in references.items()}, **gains}
    return [*_score_rows(gains, times), *_difference_rows(gains, list(references))]


async def _measured(collection: Collection) -> tuple[dict[str, tuple[float, ...]], dict[str, str]]:
    """nDCG@10 and times of each way that Ragstone has; the documents are ingested once and kept."""
    settings = kept_settings(collection)
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(documents_as_items(collection.dataset))
    gains, times = {}, {}
    for name in (*ARMS, *MODES):
        print(f"  {name} …", file=sys.stderr)
        async with open_engine(_of_system(settings, name)) as engine:
            retriever = WorkspaceRetriever(workspace_of(engine), SYSTEMS[name])
            row = await evaluate(retriever, collection.dataset, system=name, metrics=("ndcg@10",))
        gains[name] = row.per_query["ndcg@10"]
        skipped = f"; degraded: {', '.join(row.degraded)}" if row.degraded else ""
        times[name] = f", p50 {row.latency_ms(50):.0f} ms, p95 {row.latency_ms(95):.0f} ms{skipped}"
    return gains, times


def kept_settings(collection: Collection) -> Settings:
    """The settings of the data folder in which the documents of a collection are kept."""
    kept = cache_folder(None) / "bench" / f"kb-{collection.dataset.name}-{len(collection.ids)}"
    overrides = {"kb": kb_name(collection.dataset.name), "activity.searches": False, "cache.search_seconds": 0}
    # A data folder that an earlier run has filled saves the time.
    place = {} if "RAGSTONE_DATA_DIR" in os.environ else {"data_dir": kept}
    return load_settings(overrides={**overrides, **place})


def _of_system(settings: Settings, name: str) -> Settings:
    from ragstone.settings.retrieval import RerankingSettings

    plain = {"reranking": RerankingSettings()}
    return settings if SYSTEMS[name].reranks else settings.model_copy(update=plain)


def _references(collection: Collection) -> dict[str, list[list[int]]]:
    """Rankings of document numbers, one for each query."""
    name, lexical = _bm25(collection)
    made = vectors(collection, Settings().embedding.model)
    dense = [np.argsort(-scores, kind="stable")[:DEPTH].tolist() for scores in made.queries @ made.documents.T]
    fused = [_plain_rrf(*pair) for pair in zip(lexical, dense, strict=True)]
    return {name: lexical, "embedder alone": dense, "plain RRF of the two": fused}


def _plain_rrf(*rankings: Sequence[int]) -> list[int]:
    scores: Counter[int] = Counter()
    for ranking in rankings:
        for rank, document in enumerate(ranking, start=1):
            scores[document] += 1 / (RRF_K + rank)  # type: ignore[assignment]  # a Counter adds up anything
    return [document for document, _ in sorted(scores.items(), key=lambda item: (-item[1], item[0]))][:DEPTH]


def _bm25(collection: Collection) -> tuple[str, list[list[int]]]:
    queries = [query.text for query in collection.dataset.queries]
    try:
        import bm25s  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return "BM25 by the formula of bm25s", _written_out(collection.texts, queries)
    index = bm25s.BM25(k1=K1, b=B)
    index.index(bm25s.tokenize(collection.texts, stopwords="en", stemmer=STEMMER, show_progress=False))
    asked = bm25s.tokenize(queries, stopwords="en", stemmer=STEMMER, show_progress=False)
    found, _ = index.retrieve(asked, k=DEPTH, show_progress=False)
    return "bm25s", [[int(one) for one in row] for row in found]


def _written_out(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """Lucene's BM25 over stemmed words of two letters and more."""
    words = [_words(text) for text in texts]
    lengths = np.array([len(one) for one in words], np.float64)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, one in enumerate(words):
        for word, count in Counter(one).items():
            postings.setdefault(word, []).append((number, count))
    rankings = []
    for query in queries:
        scores = np.zeros(len(texts))
        for word in _words(query):
            if word in postings:
                numbers, counts = np.array(postings[word]).T
                rarity = np.log(1 + (len(texts) - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += rarity * counts / (counts + norm[numbers])
        rankings.append(np.argsort(-scores, kind="stable")[:DEPTH].tolist())
    return rankings


def _words(text: str) -> list[str]:
    words = WORD.findall(text.lower())
    return list(STEMMER.stemWords([word for word in words if word not in STOP_WORDS]))


def _gains(collection: Collection, rankings: Sequence[Sequence[int]]) -> tuple[float, ...]:
    grades = collection.dataset.grades
    return tuple(
        ndcg([collection.ids[number] for number in ranking], grades[query.id], 10)
        for query, ranking in zip(collection.dataset.queries, rankings, strict=True)
    )


def _score_rows(gains: Gains, times: Mapping[str, str]) -> list[Row]:
    rows = []
    for name, per_query in gains.items():
        mean, least = float(np.mean(per_query)), AT_LEAST.get(name)
        rows.append(
            Row(
                PART,
                name,
                f"nDCG@10 {mean:.4f}{times.get(name, '')}",
                f"≥ {least}" if least else "",
                mean >= least if least else None,
            )
        )
    return rows


def _difference_rows(gains: Gains, references: Sequence[str]) -> list[Row]:
    """What the whole is worth over each reference, and each mode over the one below it."""
    pairs = [("balanced", name) for name in references]
    steps = list(zip(MODES[1:], MODES, strict=False))
    rows = []
    for system, against in [*pairs, *steps]:
        interval = paired_bootstrap(gains[system], gains[against])
        step = (system, against) in steps
        rows.append(
            Row(
                PART,
                f"{system} - {against}",
                f"{interval.difference:+.4f} ({interval.low:+.4f} to {interval.high:+.4f})",
                "not significantly worse" if step else "",
                interval.high >= 0 if step else None,
            )
        )
    return rows

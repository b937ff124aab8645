"""Verdicts on SciFact's held-out claims, by checker, with the cited abstracts given and with search."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench import peers
from bench.claims_data import LABELS, Claim, KeptEmbedder, Label, as_hit, read_abstracts, read_claims
from bench.data import load, vectors
from bench.report import Row
from bench.searching import pipeline_over
from ragstone.answer.verify import ClaimVerifier
from ragstone.core.answers import Verdict
from ragstone.core.model_types import Entailment, Relation
from ragstone.core.search import SearchResult
from ragstone.models import build_embedder
from ragstone.query.context import SearchRequest
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.stores.factory import open_stores

MODEL = "granite-embedding-30m-english"
NOISE = 0.1
SURE = 0.95
"""Also when it is wrong: nothing tells its errors apart."""
RELATIONS: dict[Label, Relation] = {"SUPPORT": "entails", "REFUTE": "contradicts", "NOT ENOUGH": "neutral"}
THRESHOLDS = (0.7, 0.9)
Search = Callable[[str], Awaitable[SearchResult]]


class NoisyOracle:
    """Stands in for an entailment model: knows the labelled sentences and is wrong about one premise in ten."""

    name = "noisy oracle"

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = {claim.text: claim for claim in claims}

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        return [self._label(premise, hypothesis) for premise in premises]

    async def close(self) -> None:
        """Nothing is held."""

    def _label(self, premise: str, hypothesis: str) -> Entailment:
        claim = next((one for text, one in self._claims.items() if hypothesis in text), None)
        told: Mapping[str, Label] = claim.rationales if claim else {}
        true: Label = next((label for text, label in told.items() if text.strip() in premise), "NOT ENOUGH")
        dice = int.from_bytes(hashlib.sha256(f"{premise} {hypothesis}".encode()).digest()[:4], "big")
        share = dice / 2**32
        others = [label for label in LABELS if label != true]
        said: Label = true if share >= NOISE else others[dice % 2]
        return Entailment(RELATIONS[said], SURE)


def run(folder: Path) -> list[Row]:
    """Accuracy and macro-F1 of each way to label a claim."""
    return asyncio.run(_measure(folder))


async def _measure(folder: Path) -> list[Row]:
    abstracts = read_abstracts(folder)
    claims = read_claims(folder, "dev", {document: told for document, (_, told) in abstracts.items()})
    embedder = KeptEmbedder(build_embedder(EmbeddingSettings()))
    collection = load(folder)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        stores = open_stores(Settings(data_dir=Path(place)))
        await peers.build(stores, collection, await asyncio.to_thread(vectors, collection, MODEL))
        pipeline, kb = pipeline_over(stores, embedder), await stores.ledger.of("default").kb("default")
        assert kb is not None

        async def search(query: str) -> SearchResult:
            request = SearchRequest(query, 10, "balanced", "hybrid", "zscore", 100)
            return await pipeline.search("default", kb, request)

        def cited(claim: Claim) -> Search:
            hits = tuple(as_hit(document, *abstracts[document]) for document in claim.cited)

            async def found(query: str) -> SearchResult:
                return SearchResult(query, query, "balanced", hits, (), (), 0.0)

            return found

        baselines = await _baselines(claims, search)
        rows += [_row("baseline", name, claims, said) for name, said in baselines.items()]
        floor = best([scores(labels(claims), said) for said in baselines.values()])
        rows += await _checkers("cited abstracts given", claims, embedder, cited, floor)
        rows += await _checkers("top 10 of a search", claims, embedder, lambda _: search, floor)
        await stores.close()
    await embedder.close()
    return rows


async def _baselines(claims: Sequence[Claim], search: Search) -> dict[str, list[Label]]:
    """Labels without reading: the most frequent one, and what the score of the best hit alone would say."""
    said: dict[str, list[Label]] = {"always the most frequent label": ["SUPPORT"] * len(claims)}
    first = [(await search(claim.text)).hits[0] for claim in claims]
    measures = {"score": [hit.score for hit in first], "cosine": [hit.scores["dense"] for hit in first]}
    for name, values in measures.items():
        for least in THRESHOLDS:
            said[f"best hit's {name} over {least}"] = ["SUPPORT" if value > least else "NOT ENOUGH" for value in values]
    return said


async def _checkers(
    setting: str,
    claims: Sequence[Claim],
    embedder: KeptEmbedder,
    search_for: Callable[[Claim], Search],
    floor: tuple[float, float],
) -> list[Row]:
    oracle = NoisyOracle(claims)
    checkers = {
        "explicit checks": ClaimVerifier(embedder),
        f"a double of an entailment model, wrong {NOISE:.0%} of the time": ClaimVerifier(embedder, lambda: oracle),
    }
    rows = []
    for name, verifier in checkers.items():
        verdicts = [await verifier.verify(claim.text, search_for(claim)) for claim in claims]
        rows.append(_row(setting, name, claims, [label_of(verdict) for verdict in verdicts], floor))
        rows += [_precision(setting, name, status, claims, verdicts) for status in ("VERIFIED", "LIKELY")]
    return rows


def label_of(verdict: Verdict) -> Label:
    """The label a verdict amounts to; where sources disagree, the side that is surer."""
    if verdict.stance == "mixed":
        refuting = max(item.refutation for item in verdict.evidence)
        return "REFUTE" if refuting > verdict.support else "SUPPORT"
    told: dict[str, Label] = {"supported": "SUPPORT", "refuted": "REFUTE"}
    return told.get(verdict.stance, "NOT ENOUGH")


def _row(
    setting: str, name: str, claims: Sequence[Claim], said: Sequence[Label], floor: tuple[float, float] | None = None
) -> Row:
    accuracy, macro = scores(labels(claims), said)
    value = f"accuracy {accuracy:.3f}, macro-F1 {macro:.3f}"
    if floor is None:
        return Row("claims", f"{setting}: {name}", value)
    met = accuracy > floor[0] and macro > floor[1]
    return Row("claims", f"{setting}: {name}", value, f"> {floor[0]:.3f}, > {floor[1]:.3f}", met)


def labels(claims: Sequence[Claim]) -> list[Label]:
    """What the data set says of each claim."""
    return [claim.label for claim in claims]


def best(measured: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The best accuracy and the best macro-F1, each of whichever baseline has it."""
    return max(accuracy for accuracy, _ in measured), max(macro for _, macro in measured)


def _precision(setting: str, name: str, status: str, claims: Sequence[Claim], verdicts: Sequence[Verdict]) -> Row:
    reached = [claim.label for claim, one in zip(claims, verdicts, strict=True) if one.status == status]
    right = sum(label == "SUPPORT" for label in reached)
    return Row("claims", f"{setting}: {name}, {status}", f"{right} of {len(reached)} are labelled SUPPORT")


def scores(told: Sequence[Label], said: Sequence[Label]) -> tuple[float, float]:
    """Accuracy and the mean F1 of the three labels."""
    pairs = list(zip(told, said, strict=True))
    accuracy = sum(true == guess for true, guess in pairs) / len(pairs)
    f1 = [
        2
        * sum(true == guess == label for true, guess in pairs)
        / max(sum(true == label for true, _ in pairs) + sum(guess == label for _, guess in pairs), 1)
        for label in LABELS
    ]
    return accuracy, float(np.mean(f1))

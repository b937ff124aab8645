"""Fits the weights of `ragstone.answer.verify.judging` on training claims; the held-out claims are never read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.claims_data import Claim, KeptEmbedder, as_hit, read_abstracts, read_claims
from bench.report import Row
from bench.twins import pairs
from ragstone.answer.verify.judging import against_features, bearing_features
from ragstone.answer.verify.reading import SentenceReader, SentenceReading
from ragstone.models import build_embedder
from ragstone.settings.tree import EmbeddingSettings

Array = NDArray[np.float64]
DOCUMENTS = 150
TWINS_EACH = 2
TWIN_WEIGHT = 0.5
"""Quotations and their twins count less: most claims are put in other words."""
RIDGE = 1.0


def run(folder: Path) -> list[Row]:
    """The weights, as they stand in the code."""
    return asyncio.run(_fit(folder))


async def _fit(folder: Path) -> list[Row]:
    abstracts = read_abstracts(folder)
    sentences = {document: told for document, (_, told) in abstracts.items()}
    # No abstract of a held-out claim is learnt from.
    held_out = {document for claim in read_claims(folder, "dev", sentences) for document in claim.cited}
    claims = [one for one in read_claims(folder, "train", sentences) if held_out.isdisjoint(one.cited)]
    embedder = KeptEmbedder(build_embedder(EmbeddingSettings()))
    reader = SentenceReader(embedder)
    examples: list[tuple[SentenceReading, float, float | None, float]] = []
    for claim in claims:
        hits = [as_hit(document, *abstracts[document]) for document in claim.cited]
        readings, _ = await reader.read(claim.text, hits)
        refuted = None if claim.label == "NOT ENOUGH" else float(claim.label == "REFUTE")
        examples.append((readings[0], float(refuted is not None), refuted, 1.0))
    for document in sorted({one for claim in claims for one in claim.cited})[:DOCUMENTS]:
        title, told = abstracts[document]
        for pair in list(pairs(sentence.strip() for sentence in told))[:TWINS_EACH]:
            for text, refuted in ((pair.original, 0.0), (pair.twin, 1.0)):
                readings, _ = await reader.read(text, [as_hit(document, title, told)])
                examples.append((readings[0], 1.0, refuted, TWIN_WEIGHT))
    await embedder.close()
    return _rows(claims, examples)


def _rows(claims: Sequence[Claim], examples: Sequence[tuple[SentenceReading, float, float | None, float]]) -> list[Row]:
    bearing = logistic(
        [bearing_features(one) for one, *_ in examples],
        [bears for _, bears, _, _ in examples],
        [weight for *_, weight in examples],
    )
    sided = [(one, refuted, weight) for one, _, refuted, weight in examples if refuted is not None]
    against = logistic(
        [against_features(one) for one, *_ in sided],
        [refuted for _, refuted, _ in sided],
        [weight for *_, weight in sided],
    )
    part = f"claims-fit, {len(claims)} claims, {len(examples)} examples"
    return [
        Row(part, "BEARING_WEIGHTS", ", ".join(f"{weight:.2f}" for weight in bearing)),
        Row(part, "AGAINST_WEIGHTS", ", ".join(f"{weight:.2f}" for weight in against)),
    ]


def logistic(features: Sequence[Sequence[float]], outcomes: Sequence[float], weights: Sequence[float]) -> Array:
    """Logistic regression by Newton's method, with a small ridge on all but the constant."""
    x, y, w = (np.asarray(values, np.float64) for values in (features, outcomes, weights))
    ridge = RIDGE * np.eye(x.shape[1])
    ridge[0, 0] = 0.0
    found = np.zeros(x.shape[1])
    for _ in range(50):
        probability = 1 / (1 + np.exp(-x @ found))
        gradient = x.T @ (w * (y - probability)) - ridge @ found
        curvature = (x * (w * probability * (1 - probability))[:, None]).T @ x + ridge
        found += np.linalg.solve(curvature, gradient)
    return found

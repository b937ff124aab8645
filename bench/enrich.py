"""What normalizing and enriching cost, without the model."""

from __future__ import annotations

import time
from pathlib import Path

from bench.data import load
from bench.report import Row
from ragstone.core.types import Item
from ragstone.ingest.enrich.near_duplicates import bands, signature
from ragstone.ingest.extract import normalize, plain_text
from ragstone.ingest.prepare import enrich
from ragstone.language.analyzer import analyze
from ragstone.settings.tree import EnrichSettings

TEXTS = 400
ROUNDS = 3


def run(folder: Path) -> list[Row]:
    """Processor time for each 1,000 characters, and beside analysing the same text for BM25."""
    texts = load(folder).texts[:TEXTS]
    thousands = sum(map(len, texts)) / 1000
    _described(texts[:1])  # the language model is loaded once
    spent = min(_described(texts) for _ in range(ROUNDS))
    floor = min(_analysed(texts) for _ in range(ROUNDS))
    value = f"{spent * 1000 / thousands:.2f} ms, {spent / floor:.1f}× analysing it for BM25"
    return [Row("enrich", "normalize, describe and sign 1,000 characters", value)]


def _described(texts: list[str]) -> float:
    settings = EnrichSettings()
    started = time.thread_time()
    for number, text in enumerate(texts):
        item = Item("bench", str(number), str(number), text)
        parsed = normalize(item, plain_text(text, item.uri))
        enrich(parsed, settings)
        bands(signature(parsed.text))
    return time.thread_time() - started


def _analysed(texts: list[str]) -> float:
    started = time.thread_time()
    for text in texts:
        analyze(text)
    return time.thread_time() - started

"""What normalizing and enriching cost, without the model."""

from __future__ import annotations

import time
from pathlib import Path

from bench.data import load
from bench.report import Row
from ragstone.core.settings import EnrichSettings
from ragstone.core.types import Item
from ragstone.ingest.enrich import bands, enrich, signature
from ragstone.ingest.extract import plain_text
from ragstone.ingest.normalize import normalize

TEXTS = 400
ROUNDS = 3
MOST_MS = 1.5


def run(folder: Path) -> list[Row]:
    """Processor time for each 1,000 characters, the best of a few rounds."""
    texts = load(folder).texts[:TEXTS]
    thousands = sum(map(len, texts)) / 1000
    _all_of(texts[:1])  # the language model is loaded once
    spent = min(_all_of(texts) for _ in range(ROUNDS))
    per_thousand = spent * 1000 / thousands
    return [
        Row(
            "enrich",
            "normalize, enrich and sign 1,000 characters",
            f"{per_thousand:.2f} ms",
            f"≤ {MOST_MS:g} ms",
            per_thousand <= MOST_MS,
        )
    ]


def _all_of(texts: list[str]) -> float:
    settings = EnrichSettings()
    started = time.thread_time()
    for number, text in enumerate(texts):
        item = Item("bench", str(number), str(number), text)
        parsed = normalize(item, plain_text(text, item.uri)).parsed
        enrich(parsed, settings)
        bands(signature(parsed.text))
    return time.thread_time() - started

"""How long `ask` takes when a knowledge base of pages has been filled up to 10,000 chunks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bench.answers.collection import AskedQuestion
from bench.report import Row, percentiles
from bench.synthetic import fill
from ragstone.engine.engine import open_engine
from ragstone.settings.load import load_settings

CHUNKS = 10_000
GOALS = {"median of ask": 300, "p95 of ask": 800}
"""Milliseconds."""
WARM = 5


async def measure_speed(data: Path, questions: Sequence[AskedQuestion]) -> list[Row]:
    """Fill the data folder with synthetic chunks beside its pages, and time each question; it is not as before."""
    settings = load_settings(overrides={"data_dir": str(data)}, environment={})
    asked = [question.text for question in questions if not question.earlier]
    async with open_engine(settings) as engine:
        components = engine._components
        kb = await components.ledger.of("default").kb("default")
        assert kb is not None
        there = (await engine.workspace("default").knowledge_bases.stats()).chunks
        await fill(components.stores, CHUNKS - there, model=components.embedder.model)
    async with open_engine(settings) as engine:
        workspace = engine.workspace("default")
        for text in asked[:WARM]:
            await workspace.ask(text)
        seconds, processor = [], []
        for text in asked:
            started, spent = time.perf_counter(), time.process_time()
            await workspace.ask(text)
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - spent)
    part = f"{CHUNKS:,} chunks, {len(seconds)} questions"
    rows = [
        Row(part, name, f"{value:.0f} ms", f"≤ {GOALS[name]} ms", value <= GOALS[name])
        for name, value in zip(GOALS, percentiles(seconds), strict=True)
    ]
    low, high = percentiles(processor)
    # On a machine that does other work too, this says more than the time that passed.
    return [*rows, Row(part, "processor time of ask, median and p95", f"{low:.0f} and {high:.0f} ms")]

"""Workers that can be killed: `worker_process FOLDER LEASE_SECONDS ATTEMPTS`, with a model that takes its time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import ragstone.engine.components
import ragstone.engine.engine
import ragstone.ingest.jobs.worker
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.engine.engine import Engine
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder

SECONDS_PER_TEXT = 0.002
POISON = "poisonous"
"""A text with this word ends the process that embeds it."""


class SlowEmbedder(FakeEmbedder):
    """Takes long enough to be killed while it works."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if any(POISON in text for text in texts):
            os._exit(9)
        await asyncio.sleep(SECONDS_PER_TEXT * len(texts))
        return await super().embed(texts, role)


def open_engine(folder: Path, lease: float = 1.0, attempts: int = 1000, workers: int = 1) -> Engine:
    settings = Settings(
        data_dir=folder,
        jobs={"lease_seconds": lease, "attempts": attempts, "retry_seconds": 0.0, "workers": workers},
        chunking={"strategy": "sentence", "size": 40, "overlap": 0},
    )
    built = ragstone.engine.components.build_embedder
    ragstone.engine.components.build_embedder = lambda _: SlowEmbedder()
    try:
        return ragstone.engine.engine.open_engine(settings)
    finally:
        ragstone.engine.components.build_embedder = built


async def work(folder: Path, lease: float, attempts: int) -> None:
    async with open_engine(folder, lease, attempts) as engine:
        await engine.worker().run()


def nursery(folder: Path, lease: float, attempts: int) -> None:
    """Start a worker for each line that is read, and say its process id: a copy starts sooner than an interpreter."""
    # Small claims, so that a second is long beside the time one takes.
    ragstone.ingest.jobs.worker.MOST_JOBS = 4
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asyncio.run(work(folder, lease, attempts))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    nursery(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))

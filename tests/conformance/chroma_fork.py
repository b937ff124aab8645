"""A process that forks before Chroma is used, and lets the child use it: `chroma_fork.py FOLDER`."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from pathlib import Path

from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import make_points, new_partition


async def write_and_count(provider: ChromaProvider) -> None:
    place = new_partition()
    await provider.upsert(place, make_points(unit_vectors(5)))
    print(await provider.count(place), flush=True)
    await provider.close()


if __name__ == "__main__":
    made = ChromaProvider(Adapter(kind="chroma"), Path(sys.argv[1]), "collection")
    child = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(write_and_count(made)))
    child.start()
    child.join()
    sys.exit(child.exitcode)

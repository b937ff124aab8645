"""A process that writes to Qdrant until it is killed: `qdrant_writer.py FOLDER ENGINE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.suites.provider_persistence import write_until_killed

if __name__ == "__main__":
    adapter = Adapter(kind="qdrant", options={"engine": sys.argv[2]})
    asyncio.run(write_until_killed(QdrantProvider(adapter, Path(sys.argv[1]), "collection")))

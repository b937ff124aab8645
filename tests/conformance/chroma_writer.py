"""A process that writes to Chroma until it is killed: `chroma_writer.py FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.testing.suites.provider_persistence import write_until_killed

if __name__ == "__main__":
    provider = ChromaProvider(Adapter(kind="chroma"), Path(sys.argv[1]), "collection")
    asyncio.run(write_until_killed(provider))

"""A process that writes to an embedded Milvus in the given folder until it is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus.provider import MilvusProvider
from ragstone.testing.suites.provider_persistence import write_until_killed

if __name__ == "__main__":
    asyncio.run(write_until_killed(MilvusProvider(Adapter(kind="milvus"), Path(sys.argv[1]), "collection")))

"""The shipped suite against vectors in memory."""

from __future__ import annotations

from pathlib import Path

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.testing.suites.providers import ProviderSuite


class TestMemoryProvider(ProviderSuite):
    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return MemoryProvider(Adapter(kind="memory"), folder, isolation)

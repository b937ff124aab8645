"""The shipped suites against Qdrant's own engine in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance import qdrant_writer
from tests.conformance.isolations import FewIsolations

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.suites.provider_persistence import ProviderPersistenceSuite
from ragstone.testing.suites.providers import ProviderSuite


class TestQdrantEdge(FewIsolations, ProviderSuite, ProviderPersistenceSuite):
    refuses = frozenset({"range of texts"})

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return QdrantProvider(Adapter(kind="qdrant", options={"engine": "edge"}), folder, isolation)

    def writer(self, folder: Path) -> Sequence[str]:
        return [sys.executable, qdrant_writer.__file__, str(folder), "edge"]

"""The shipped suites against the local mode of Qdrant's client."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conformance import qdrant_writer
from tests.conformance.isolations import FewIsolations

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.suites.provider_persistence import ProviderPersistenceSuite
from ragstone.testing.suites.providers import ProviderSuite


class TestQdrantLocal(FewIsolations, ProviderSuite, ProviderPersistenceSuite):
    refuses = frozenset({"range of texts"})

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return QdrantProvider(Adapter(kind="qdrant"), folder, isolation)

    def writer(self, folder: Path) -> Sequence[str]:
        return [sys.executable, qdrant_writer.__file__, str(folder), "local"]

    @pytest.mark.req("R-STO-10", "R-FUT-21", "R-STO-36")
    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        await super().test_the_nearest_come_first_with_their_cosine(provider)

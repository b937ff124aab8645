"""The shipped suite against Qdrant's REST protocol, spoken by a double that checks every request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.conformance.isolations import FewIsolations
from tests.doubles.qdrant import QdrantDouble

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.suites.providers import ProviderSuite

KEY = "key-of-the-double"


class TestQdrantServer(FewIsolations, ProviderSuite):
    refuses = frozenset({"range of texts"})

    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with QdrantDouble(KEY) as self.double:
            yield
        assert self.double.violations == []

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        adapter = Adapter(kind="qdrant", url=self.double.url, api_key=SecretStr(KEY))
        return QdrantProvider(adapter, folder, isolation)

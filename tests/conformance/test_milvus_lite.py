"""The shipped suites against Milvus inside this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import grpc  # noqa: F401 - before any provider is made, since gRPC settles at its import what a fork may do
from hypothesis import given
from tests.conformance.isolations import FewIsolations

from ragstone.core.filters import Filter
from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus.provider import MilvusProvider
from ragstone.testing.suites.filter_cases import COMMON, filters
from ragstone.testing.suites.provider_persistence import ProviderPersistenceSuite
from ragstone.testing.suites.providers import ProviderSuite


def embedded(folder: Path, isolation: Isolation) -> VectorProvider:
    return MilvusProvider(Adapter(kind="milvus"), folder, isolation)


class TestMilvusLite(FewIsolations, ProviderSuite):
    refuses = frozenset(COMMON)

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return embedded(folder, isolation)

    def test_filters_mean_what_they_mean_elsewhere(self, tmp_path: Path, isolation: Isolation) -> None:
        """All are left to the ledger: see docs/reference/stores/milvus.md."""
        provider = embedded(tmp_path, isolation)

        @given(filters)
        def check(where: Filter) -> None:
            assert not provider.can_filter(where)

        check()


class TestMilvusLiteOnDisk(FewIsolations, ProviderPersistenceSuite):
    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return embedded(folder, isolation)

    def writer(self, folder: Path) -> Sequence[str]:
        return [sys.executable, str(Path(__file__).with_name("milvus_writer.py")), str(folder)]

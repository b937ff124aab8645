"""The shipped suites against Chroma: in a folder, in memory and on a real server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.conformance import chroma_writer
from tests.conformance.chroma_server import chroma_server
from tests.conformance.isolations import FewIsolations

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.testing.suites.provider_persistence import ProviderPersistenceSuite
from ragstone.testing.suites.providers import ProviderSuite

ISOLATIONS: tuple[Isolation, ...] = ("collection", "filter")
REFUSED = frozenset({"range of texts", "not of a range"})


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as url:
        yield url


class TestChromaInAFolder(FewIsolations, ProviderSuite, ProviderPersistenceSuite):
    isolations = ISOLATIONS
    refuses = REFUSED
    forks = False

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return ChromaProvider(Adapter(kind="chroma"), folder, isolation)

    def writer(self, folder: Path) -> Sequence[str]:
        return [sys.executable, chroma_writer.__file__, str(folder)]

    @pytest.mark.req("R-STO-06", "R-TST-25")
    async def test_all_is_there_after_close_and_open(self, tmp_path: Path) -> None:
        await super().test_all_is_there_after_close_and_open(tmp_path)

    @pytest.mark.req("R-STO-06")
    async def test_writers_at_the_same_time_lose_nothing(self, provider: VectorProvider) -> None:
        await super().test_writers_at_the_same_time_lose_nothing(provider)

    @pytest.mark.req("R-STO-06")
    async def test_the_filter_acts_before_the_cut(self, provider: VectorProvider) -> None:
        await super().test_the_filter_acts_before_the_cut(provider)

    @pytest.mark.req("R-STO-29", "R-TST-25")
    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        await super().test_the_nearest_come_first_with_their_cosine(provider)


class TestChromaInMemory(ProviderSuite):
    isolations = ("collection",)
    refuses = REFUSED

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return ChromaProvider(Adapter(kind="chroma", options={"in_memory": True}), folder, isolation)


class TestChromaOnAServer(ProviderSuite):
    isolations = ("filter",)
    refuses = REFUSED

    @pytest.fixture(autouse=True)
    def _address(self, server: str) -> None:
        self.url = server

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return ChromaProvider(Adapter(kind="chroma", url=self.url), folder, isolation)

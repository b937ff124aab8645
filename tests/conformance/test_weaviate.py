"""The shipped suite against Weaviate's protocol, on a loopback double."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.conformance.isolations import FewIsolations
from tests.doubles.weaviate import WeaviateDouble

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.weaviate.provider import WeaviateProvider
from ragstone.testing.suites.providers import ProviderSuite


@pytest.fixture(scope="module")
def weaviate() -> Iterator[WeaviateDouble]:
    with WeaviateDouble() as double:
        yield double


class TestWeaviateProvider(FewIsolations, ProviderSuite):
    refuses = frozenset({"range of texts"})
    examples = 15

    @pytest.fixture(autouse=True)
    def _service(self, weaviate: WeaviateDouble) -> None:
        self.service = weaviate

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        adapter = Adapter(kind="weaviate", url=self.service.url, api_key=SecretStr(self.service.api_key))
        return WeaviateProvider(adapter, folder, isolation)

    @pytest.mark.req("R-STO-11", "R-STO-36", "R-FUT-21")
    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        await super().test_the_nearest_come_first_with_their_cosine(provider)

    @pytest.mark.req("R-REL-14")
    async def test_tenants_and_spaces_are_kept_apart(self, provider: VectorProvider) -> None:
        await super().test_tenants_and_spaces_are_kept_apart(provider)

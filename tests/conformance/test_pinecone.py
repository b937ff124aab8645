"""The shipped suite against Pinecone's protocol, on a loopback double that shows writes two requests later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.conformance.isolations import FewIsolations
from tests.doubles.pinecone import PineconeDouble

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.pinecone.provider import PineconeProvider
from ragstone.testing.suites.providers import ProviderSuite


@pytest.fixture(scope="module")
def pinecone() -> Iterator[PineconeDouble]:
    with PineconeDouble(lag=2) as double:
        yield double


async def at_once(_seconds: float) -> None:
    await asyncio.sleep(0)


class TestPineconeProvider(FewIsolations, ProviderSuite):
    isolations = ("namespace", "filter")
    refuses = frozenset({"range of texts"})
    examples = 15

    @pytest.fixture(autouse=True)
    def _service(self, pinecone: PineconeDouble) -> None:
        self.service = pinecone

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        adapter = Adapter(kind="pinecone", url=self.service.url, api_key=SecretStr(self.service.api_key))
        return PineconeProvider(adapter, folder, isolation, sleep=at_once)

    @pytest.mark.req("R-STO-36", "R-TST-25")
    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        await super().test_the_nearest_come_first_with_their_cosine(provider)

    @pytest.mark.req("R-REL-14")
    async def test_tenants_and_spaces_are_kept_apart(self, provider: VectorProvider) -> None:
        await super().test_tenants_and_spaces_are_kept_apart(provider)

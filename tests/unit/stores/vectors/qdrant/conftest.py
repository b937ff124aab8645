"""A Qdrant server of the test's own, and providers that are connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.doubles.qdrant import QdrantDouble
from tests.unit.stores.vectors.qdrant.served import KEY, PLACE, Connect, Naps

from ragstone.core.types import Json
from ragstone.core.vectors import Isolation
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import make_points


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def double() -> Iterator[QdrantDouble]:
    with QdrantDouble(KEY) as served:
        yield served


@pytest.fixture
async def connect(double: QdrantDouble, naps: Naps) -> AsyncIterator[Connect]:
    """Makes providers, and closes them when the test is over."""
    made: list[QdrantProvider] = []

    def connected(isolation: Isolation = "collection", *, url: str = "", **options: Json) -> QdrantProvider:
        adapter = Adapter(kind="qdrant", url=url or double.url, api_key=SecretStr(KEY), options=options)
        made.append(QdrantProvider(adapter, Path("unused"), isolation, sleep=naps))
        return made[-1]

    yield connected
    for one in made:
        await one.close()


@pytest.fixture
async def provider(double: QdrantDouble, connect: Connect) -> QdrantProvider:
    """One that holds five points; what it sent so far is forgotten."""
    opened = connect(timeout=5)
    await opened.open(PLACE)
    await opened.upsert(PLACE, make_points(unit_vectors(5)))
    double.requests.clear()
    return opened

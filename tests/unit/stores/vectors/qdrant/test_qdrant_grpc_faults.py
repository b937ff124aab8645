"""The same faults over gRPC, where they have other names."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tests.conformance.qdrant_grpc import grpc_in_front_of
from tests.doubles.qdrant import QdrantDouble, error_reply
from tests.unit.stores.vectors.qdrant.served import KEY, PLACE, QUERY, Connect, Naps

from ragstone.core.errors import StoreBusy, StoreError
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import make_points


@pytest.fixture
def port(double: QdrantDouble) -> Iterator[int]:
    with grpc_in_front_of(double) as served:
        yield served


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(
    double: QdrantDouble, connect: Connect, naps: Naps, port: int, status: int
) -> None:
    provider = connect(prefer_grpc=True, grpc_port=port)
    await provider.open(PLACE)
    double.faults += [error_reply("busy", status)] * 2
    await provider.upsert(PLACE, make_points(unit_vectors(1)))
    assert naps == [0.5, 1.0]
    assert await provider.count(PLACE) == 1
    double.faults += [error_reply("busy", status)] * 3
    with pytest.raises(StoreBusy) as refused:
        await provider.search(PLACE, QUERY, 3)
    assert double.url in str(refused.value)


@pytest.mark.parametrize(("status", "what"), [(401, "refused the api_key"), (400, "refused the request")])
async def test_what_is_refused_is_not_tried_again(
    double: QdrantDouble, connect: Connect, naps: Naps, port: int, status: int, what: str
) -> None:
    provider = connect(prefer_grpc=True, grpc_port=port)
    double.faults += [error_reply(KEY, status)]
    with pytest.raises(StoreError, match=what) as refused:
        await provider.count(PLACE)
    assert refused.value.hint
    assert KEY not in f"{refused.value} {refused.value.hint}"
    assert naps == []


async def test_a_collection_that_is_not_there_is_empty(connect: Connect, port: int) -> None:
    provider = connect(prefer_grpc=True, grpc_port=port)
    assert await provider.search(PLACE, QUERY, 3) == []
    with pytest.raises(StoreError, match="someone deleted it"):
        await provider.upsert(PLACE, make_points(unit_vectors(1)))


async def test_nobody_at_the_port(connect: Connect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        provider = connect(prefer_grpc=True, grpc_port=taken.getsockname()[1])
        with pytest.raises(StoreBusy) as refused:
            await provider.health()
        assert "store.vectors.url" in refused.value.hint

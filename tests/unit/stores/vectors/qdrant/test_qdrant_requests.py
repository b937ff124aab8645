"""What a Qdrant server is sent, and what is made of its answers."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr
from tests.doubles.qdrant import QdrantDouble, error_reply
from tests.doubles.qdrant_points import Collection
from tests.unit.stores.vectors.qdrant.served import KEY, PLACE, QUERY, Connect

from ragstone.core.errors import ModelMismatch, StoreError
from ragstone.core.types import Json
from ragstone.core.vectors import Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points, new_partition

SCOPED = ("query", "delete", "count", "scroll")


async def test_who_comes_second_finds_the_collection_made(provider: QdrantProvider, double: QdrantDouble) -> None:
    await provider.open(PLACE)
    assert [request.method for request in double.requests] == ["PUT", "GET", "GET"]
    with pytest.raises(ModelMismatch):
        await provider.open(VectorPartition(PLACE.tenant_id, PLACE.space, 7))


async def test_a_collection_that_cannot_be_made_is_no_place(provider: QdrantProvider, double: QdrantDouble) -> None:
    double.faults += [error_reply("Wrong input", 400)]
    with pytest.raises(StoreError, match="refused the request"):
        await provider.open(new_partition())


async def test_a_collection_of_other_vectors_is_somebody_elses(
    provider: QdrantProvider, double: QdrantDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collection, "distance", "Dot")
    with pytest.raises(StoreError, match="was not made by Ragstone"):
        await provider.open(PLACE)


async def test_a_collection_that_someone_deleted_is_reported(provider: QdrantProvider, double: QdrantDouble) -> None:
    double.collections.clear()
    assert await provider.search(PLACE, QUERY, 3) == []
    with pytest.raises(StoreError, match="someone deleted it"):
        await provider.upsert(PLACE, make_points(unit_vectors(1)))


@pytest.mark.req("R-TEN-05")
async def test_every_call_on_a_shared_collection_names_tenant_and_space(double: QdrantDouble, connect: Connect) -> None:
    provider = connect("filter")
    await provider.open(PLACE)
    payloads = [{"document_id": "d1", "chunk_index": at} for at in range(2)]
    await provider.upsert(PLACE, make_points(unit_vectors(2), *payloads))
    await provider.search(PLACE, QUERY, 3)
    await provider.delete(PLACE, [id_of(0)])
    await provider.count(PLACE)
    assert [page async for page in provider.ids(PLACE)] == [[id_of(1)]]
    await provider.drop(PLACE)
    scoped = [request for request in double.requests if request.path.split("/")[-1] in SCOPED]
    assert len(scoped) == 5
    for request in scoped:
        must = json.loads(request.body)["filter"]["must"]
        assert {"key": "tenant_id", "match": {"value": PLACE.tenant_id}} in must
        assert {"key": "space", "match": {"value": PLACE.space}} in must
    (written,) = [request for request in double.requests if request.path.endswith("rs_d32/points")]
    assert [point["payload"] for point in json.loads(written.body)["points"]] == [
        payload | {"tenant_id": PLACE.tenant_id, "space": PLACE.space, "chunk_id": id_of(at)}
        for at, payload in enumerate(payloads)
    ]


async def test_points_of_others_in_a_collection_are_not_taken_for_chunks(
    provider: QdrantProvider, double: QdrantDouble
) -> None:
    (collection,) = double.collections.values()
    for number, payload in enumerate([{}, {"chunk_id": 7}, {"chunk_id": None}]):
        collection.put({"id": number, "vector": QUERY.tolist(), "payload": payload})
    found = await provider.search(PLACE, QUERY, 100)
    assert {one.chunk_id for one in found} == {id_of(number) for number in range(5)}
    assert sorted([one async for page in provider.ids(PLACE) for one in page]) == sorted(
        id_of(number) for number in range(5)
    )


@pytest.mark.parametrize(
    ("isolation", "collection", "hnsw", "indexes"),
    [
        ("collection", "rs_t1_s1", {"m": 16, "ef_construct": 100}, {}),
        (
            "namespace",
            "rs_d32",
            {"m": 0, "ef_construct": 100, "payload_m": 16},
            {"tenant_id": {"type": "keyword", "is_tenant": True}, "space": {"type": "keyword"}},
        ),
        (
            "filter",
            "rs_d32",
            {"m": 16, "ef_construct": 100},
            {"tenant_id": {"type": "keyword"}, "space": {"type": "keyword"}},
        ),
    ],
)
async def test_collections_are_made_for_their_isolation(
    double: QdrantDouble,
    connect: Connect,
    isolation: Isolation,
    collection: str,
    hnsw: dict[str, Json],
    indexes: dict[str, Json],
) -> None:
    provider = connect(isolation)
    await provider.open(PLACE)
    assert {name: (one.hnsw, one.indexes) for name, one in double.collections.items()} == {collection: (hnsw, indexes)}


async def test_points_travel_in_batches(double: QdrantDouble, connect: Connect) -> None:
    provider = connect()
    wide = new_partition(10_000)
    for place, points in (
        (PLACE, make_points(unit_vectors(600))),
        (wide, [Point(id_of(number), np.ones(10_000, np.float32), {}) for number in range(150)]),
    ):
        await provider.open(place)
        double.requests.clear()
        await provider.upsert(place, points)
        sizes = [len(json.loads(request.body)["points"]) for request in double.requests]
        assert sizes == ([256, 256, 88] if place is PLACE else [100, 50])
    double.requests.clear()
    await provider.delete(PLACE, [id_of(number) for number in range(1500)])
    assert [len(json.loads(request.body)["points"]) for request in double.requests] == [1000, 500]


async def test_a_full_scan_is_asked_for_when_it_is_set(double: QdrantDouble, connect: Connect) -> None:
    provider = connect(exact=True)
    await provider.open(PLACE)
    await provider.search(PLACE, QUERY, 3)
    assert json.loads(double.requests[-1].body)["params"] == {"exact": True}


async def test_an_open_key_is_mentioned_once(provider: QdrantProvider) -> None:
    health = await provider.health()
    assert health.version == "1.17.0"
    assert "travels unencrypted" in health.detail


def test_another_event_loop_and_a_forked_child_connect_anew(double: QdrantDouble) -> None:
    adapter = Adapter(kind="qdrant", url=double.url, api_key=SecretStr(KEY))
    provider = QdrantProvider(adapter, Path("unused"), "collection")
    asyncio.run(provider.open(PLACE))
    assert asyncio.run(provider.count(PLACE)) == 0
    with asyncio.Runner() as runner:
        runner.run(provider.upsert(PLACE, make_points(unit_vectors(5))))
        child = multiprocessing.get_context("fork").Process(target=_search, args=(provider,))
        child.start()
        child.join(60)
        child.kill()
        child.join()
        assert child.exitcode == 0
        assert runner.run(provider.count(PLACE)) == 5
        runner.run(provider.close())


def _search(inherited: QdrantProvider) -> None:
    (found,) = asyncio.run(inherited.search(PLACE, QUERY, 1))
    assert found.chunk_id == id_of(0)

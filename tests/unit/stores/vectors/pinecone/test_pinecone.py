"""Pinecone: the index it makes, what it waits for, what it refuses, and what goes over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr
from tests.doubles.pinecone import PineconeDouble
from tests.doubles.rest import Refused
from tests.doubles.web import Reply, json_reply

from ragstone.core.errors import ModelMismatch, PointRefused, SettingsError, StoreBusy, StoreError
from ragstone.core.filters import parse_filter
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.pinecone.provider import PineconeProvider, metadata_filter
from ragstone.stores.vectors.pinecone.records import MAX_METADATA, point_of, record, upsert_bodies
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import all_ids, id_of, make_points

PLACE = VectorPartition("acme", "s1", 4)
INDEX = "ma-rag-rpg-index"
SECRET = "canary-key-1234"


@pytest.fixture
def pinecone() -> Iterator[PineconeDouble]:
    with PineconeDouble(api_key=SECRET) as double:
        yield double


class Waits:
    """Sleeps without sleeping, and remembers it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def make_provider(
    pinecone: PineconeDouble, waits: Waits | None = None, key: str = SECRET, **options: Any
) -> PineconeProvider:
    adapter = Adapter(kind="pinecone", url=pinecone.url, api_key=SecretStr(key), options=options)
    return PineconeProvider(adapter, Path("unused"), "namespace", sleep=waits or Waits())


def sent(pinecone: PineconeDouble, path: str) -> list[Any]:
    """The bodies that were posted to a path of the index."""
    requests = pinecone.indexes[INDEX].data.requests
    return [json.loads(one.body) for one in requests if one.path == path]


@pytest.mark.req("R-STO-08", "R-TST-25")
async def test_the_index_is_made_as_the_settings_say(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone, index_name="other", cloud="aws", region="us-east-1", dimension=4)
    pinecone.starting = 2
    assert (await provider.health()).detail == "index 'other' is made when it is first needed"
    await provider.open(PLACE)
    (request,) = [one for one in pinecone.control.requests if one.method == "POST"]
    assert request.headers["api-key"] == SECRET
    assert json.loads(request.body) == {
        "name": "other",
        "schema": {"fields": {"_values": {"type": "dense_vector", "dimension": 4, "metric": "cosine"}}},
        "deployment": {"deployment_type": "managed", "cloud": "aws", "region": "us-east-1"},
    }
    assert (await provider.health()).detail == "index 'other' holds vectors of 4 dimensions"
    await provider.close()


@pytest.mark.req("R-STO-08")
async def test_without_options_the_index_has_its_usual_name_and_place(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    (request,) = [one for one in pinecone.control.requests if one.method == "POST"]
    made = json.loads(request.body)
    assert made["name"] == "ma-rag-rpg-index"
    assert (made["deployment"]["region"], made["deployment"]["cloud"]) == ("us-west1", "gcp")
    await provider.close()


@pytest.mark.req("R-TEN-04")
async def test_tenants_have_a_namespace_each(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    points = make_points(unit_vectors(2, 4))
    for tenant in ("acme", "umbrella"):
        await provider.open(VectorPartition(tenant, "s1", 4))
        await provider.upsert(VectorPartition(tenant, "s1", 4), points)
    assert set(pinecone.indexes[INDEX].namespaces) == {"tenant_acme", "tenant_umbrella"}
    await provider.search(PLACE, points[0].vector, 1)
    assert sent(pinecone, "/query")[-1]["namespace"] == "tenant_acme"
    await provider.close()


@pytest.mark.req("R-STO-09")
async def test_an_index_of_another_dimension_is_refused(pinecone: PineconeDouble) -> None:
    pinecone.make(INDEX, 8)
    provider = make_provider(pinecone)
    for refused in (provider.open(PLACE), provider.upsert(PLACE, make_points(unit_vectors(1, 4)))):
        with pytest.raises(ModelMismatch, match="holds vectors of 8 dimensions, not of 4") as raised:
            await refused
        assert "index_name" in raised.value.hint
    with pytest.raises(ModelMismatch, match="holds vectors of 384 dimensions, not of 4"):
        await make_provider(pinecone, dimension=384).open(PLACE)
    await provider.close()


@pytest.mark.parametrize(("given", "message"), [({"metric": "euclidean"}, "cosine"), ({"deployment": "pod"}, "pods")])
async def test_an_index_that_works_otherwise_is_refused(
    pinecone: PineconeDouble, given: dict[str, str], message: str
) -> None:
    pinecone.make(INDEX, 4, **given)
    provider = make_provider(pinecone)
    with pytest.raises(SettingsError, match=message):
        await provider.open(PLACE)
    await provider.close()


async def test_an_index_of_documents_is_refused(pinecone: PineconeDouble) -> None:
    described = {"name": INDEX, "status": {"ready": True}, "schema": {"fields": {"body": {"type": "string"}}}}
    pinecone.control.faults.append(json_reply(described))
    provider = make_provider(pinecone)
    with pytest.raises(StoreError, match="without dense vectors"):
        await provider.open(PLACE)
    await provider.close()


async def test_an_index_that_another_process_makes_meanwhile_is_used(pinecone: PineconeDouble) -> None:
    pinecone.make(INDEX, 4)
    pinecone.control.faults.append(json_reply({}, 404))
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    assert await provider.count(PLACE) == 0
    await provider.close()


async def test_an_index_that_never_gets_ready_is_given_up(pinecone: PineconeDouble) -> None:
    pinecone.starting = 1000
    waits = Waits()
    provider = make_provider(pinecone, waits, visible_within=5)
    with pytest.raises(StoreBusy, match="not ready within 5 s"):
        await provider.open(PLACE)
    assert sum(waits.seconds) == 5
    await provider.close()


@pytest.mark.parametrize("log_numbers", [True, False])
async def test_a_write_is_done_when_it_is_found(pinecone: PineconeDouble, log_numbers: bool) -> None:
    pinecone.lag, pinecone.log_numbers = 3, log_numbers
    waits = Waits()
    provider = make_provider(pinecone, waits)
    await provider.open(PLACE)
    waits.seconds.clear()
    points = make_points(unit_vectors(5, 4))
    await provider.upsert(PLACE, points)
    assert len(waits.seconds) == 3
    assert len(await provider.search(PLACE, points[0].vector, 10)) == 5
    await provider.close()


async def test_a_delete_is_done_when_it_is_gone(pinecone: PineconeDouble) -> None:
    pinecone.lag = 3
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    points = make_points(unit_vectors(5, 4))
    await provider.upsert(PLACE, points)
    await provider.delete(PLACE, [id_of(0)])
    assert id_of(0) not in {one.chunk_id for one in await provider.search(PLACE, points[0].vector, 10)}
    await provider.close()


async def test_a_write_that_is_never_found_is_told(pinecone: PineconeDouble) -> None:
    pinecone.lag = 10_000
    waits = Waits()
    provider = make_provider(pinecone, waits, visible_within=5)
    await provider.open(PLACE)
    waits.seconds.clear()
    with pytest.raises(StoreBusy, match="did not show it within 5 s"):
        await provider.upsert(PLACE, make_points(unit_vectors(1, 4)))
    assert waits.seconds[:3] == [0.1, 0.2, 0.4]
    assert 5 <= sum(waits.seconds) < 7.1
    await provider.close()


@pytest.mark.req("R-STO-18")
async def test_many_points_go_in_batches_of_a_hundred(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    await provider.upsert(PLACE, make_points(unit_vectors(250, 4)))
    assert [len(body["vectors"]) for body in sent(pinecone, "/vectors/upsert")] == [100, 100, 50]
    assert len(await all_ids(provider, PLACE)) == 250
    await provider.close()


def test_a_batch_keeps_to_two_megabytes() -> None:
    noise = np.random.default_rng(1)
    points = [Point(id_of(n), unit_vectors(1, 4)[0], {"text": noise.bytes(15_000).hex()}) for n in range(100)]
    made = list(upsert_bodies(PLACE, points, "tenant_acme"))
    assert len(made) == 2
    assert all(len(body) < 2 * 1024 * 1024 for body in made)
    assert sum(len(json.loads(body)["vectors"]) for body in made) == 100


def metadata_of(payload: dict[str, Any]) -> Any:
    return record(PLACE, Point(id_of(0), unit_vectors(1, 4)[0], payload))["metadata"]


@pytest.mark.parametrize(
    ("payload", "left_out"),
    [
        ({"a": 1, "text": "short"}, None),
        ({"a": 1, "text": "word " * 20_000}, None),
        ({"a": 1, "text": np.random.default_rng(1).bytes(50_000).hex()}, "text"),
        ({"a": 1, "b": np.random.default_rng(1).bytes(50_000).hex(), "text": "t"}, "payload"),
    ],
)
def test_what_is_too_large_is_packed_or_left_out_by_name(payload: dict[str, Any], left_out: str | None) -> None:
    point = Point(id_of(0), unit_vectors(1, 4)[0], payload)
    stored = record(PLACE, point)
    assert stored["metadata"].get("left_out") == left_out
    assert len(json.dumps(stored["metadata"]).encode()) <= 40 * 1024
    kept = {None: payload, "text": {"a": 1}, "payload": {}}[left_out]
    assert point_of(PLACE, stored).payload == kept
    # Filters do not need what was left out.
    assert '["a",1]' in stored["metadata"]["terms"]


def test_metadata_that_cannot_be_filtered_whole_is_refused() -> None:
    with pytest.raises(PointRefused, match=rf"chunk {id_of(0)} is more than Pinecone takes \({MAX_METADATA}"):
        metadata_of({f"field{n}": n for n in range(300)})
    with pytest.raises(PointRefused, match=r"metadata of 'docs/atlas.md' is more than"):
        metadata_of({"uri": "docs/atlas.md", **{f"field{n}": n for n in range(300)}})


def test_ids_of_places_never_meet() -> None:
    places = [
        VectorPartition("a", "b#c", 4),
        VectorPartition("a#b", "c", 4),
        VectorPartition("a", "b", 4),
        VectorPartition("A", "b", 4),
    ]
    vector = unit_vectors(1, 4)[0]
    assert len({record(place, Point(id_of(0), vector, {}))["id"] for place in places}) == 4


def test_every_search_names_tenant_and_space() -> None:
    own = [{"tenant_id": {"$eq": "acme"}}, {"space": {"$eq": "s1"}}]
    assert metadata_filter(PLACE, None) == {"$and": own}
    where = parse_filter({"or": [{"a": ["x", 1]}, {"not": {"b": True}}]})
    assert metadata_filter(PLACE, where) == {
        "$and": [*own, {"$or": [{"terms": {"$in": ['["a","x"]', '["a",1]']}}, {"terms": {"$nin": ['["b",true]']}}]}]
    }


async def test_a_hit_of_another_place_is_not_taken(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    await provider.upsert(PLACE, make_points(unit_vectors(1, 4)))
    foreign = {"matches": [{"id": f"umbrella#s1#{id_of(1)}", "score": 1.0}]}
    pinecone.indexes[INDEX].data.faults.append(json_reply(foreign))
    assert await provider.search(PLACE, unit_vectors(1, 4)[0], 5) == []
    await provider.close()


@pytest.mark.parametrize("body", [b"[]", b'{"matches": [{"score": 1}]}', b'{"matches": {"a": 1}}', b"7"])
async def test_an_answer_of_another_shape_is_told(pinecone: PineconeDouble, body: bytes) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    pinecone.indexes[INDEX].data.faults.append(Reply(body))
    with pytest.raises(StoreError, match="another shape"):
        await provider.search(PLACE, unit_vectors(1, 4)[0], 5)
    await provider.close()


async def test_a_list_that_never_ends_is_given_up(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    page = json_reply({"vectors": [], "pagination": {"next": "same"}})
    pinecone.indexes[INDEX].data.faults.extend([page] * 2)
    with pytest.raises(StoreError, match="same page"):
        await provider.count(PLACE)
    await provider.close()


async def test_writes_survive_passing_failures(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    index = pinecone.indexes[INDEX]
    index.data.faults.extend([json_reply({}, 429, retry_after="1"), json_reply({}, 500)])
    await provider.upsert(PLACE, make_points(unit_vectors(3, 4)))
    assert await provider.count(PLACE) == 3
    await provider.close()


async def test_a_wrong_key_is_told_without_any_key(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone, key="canary-wrong-9")
    with pytest.raises(StoreError, match=r"pinecone at 127\.0\.0\.1:\d+ refused the API key") as raised:
        await provider.health()
    assert "canary" not in str(raised.value) + raised.value.hint + repr(provider)
    await provider.close()


async def test_an_index_that_is_gone_is_empty(pinecone: PineconeDouble) -> None:
    provider = make_provider(pinecone)
    await provider.open(PLACE)
    await provider.upsert(PLACE, make_points(unit_vectors(3, 4)))
    index = pinecone.indexes.pop(INDEX)
    index.namespaces.clear()
    assert await provider.count(PLACE) == 0
    assert await provider.search(PLACE, unit_vectors(1, 4)[0], 5) == []
    await provider.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"indexname": "x"}, "indexname is not an option of pinecone"),
        ({"index_name": "Not Valid"}, "index_name is 'Not Valid'"),
        ({"index_name": 5}, "index_name is 5"),
        ({"environment": "nowhere"}, "no cloud 'nowhere'"),
        ({"cloud": "ibm"}, "no cloud 'ibm'"),
        ({"dimension": "384"}, "dimension is '384'"),
        ({"timeout": 0}, "timeout is 0"),
        ({"visible_within": True}, "visible_within is True"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    adapter = Adapter(kind="pinecone", api_key=SecretStr(SECRET), options=options)
    with pytest.raises(SettingsError, match=message):
        PineconeProvider(adapter, Path("unused"), "namespace")


def test_a_collection_for_each_tenant_is_refused() -> None:
    adapter = Adapter(kind="pinecone", api_key=SecretStr(SECRET))
    with pytest.raises(SettingsError, match="'collection'") as raised:
        PineconeProvider(adapter, Path("unused"), "collection")
    assert raised.value.hint == "choose one of: filter, namespace"


def test_the_key_of_the_environment_goes_to_pinecone_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINECONE_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="needs an API key"):
        PineconeProvider(Adapter(kind="pinecone"), Path("unused"), "namespace")
    monkeypatch.setenv("PINECONE_API_KEY", SECRET)
    PineconeProvider(Adapter(kind="pinecone"), Path("unused"), "namespace")
    with pytest.raises(SettingsError, match="needs an API key"):
        PineconeProvider(Adapter(kind="pinecone", url="http://elsewhere"), Path("unused"), "namespace")


@pytest.mark.parametrize(
    "where",
    [
        {},
        [],
        {"$and": []},
        {"terms": {"$in": []}},
        {"terms": {"$in": [1]}},
        {"terms": {"$regex": "x"}},
        {"terms": "x"},
        {"$not": {"terms": {"$in": ["x"]}}},
        {"terms": {"$in": ["x"], "$nin": ["y"]}},
    ],
)
def test_the_double_refuses_filters_that_pinecone_or_this_project_does_not_know(where: Any) -> None:
    from tests.doubles.pinecone import passing

    with pytest.raises(Refused):
        passing(where)

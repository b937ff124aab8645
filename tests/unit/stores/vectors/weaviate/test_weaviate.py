"""Weaviate: the classes it makes, what every call names, what it refuses, and what goes over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.doubles.rest import Refused
from tests.doubles.weaviate import WeaviateDouble
from tests.doubles.weaviate_graphql import Word, parse_query
from tests.doubles.web import Reply, json_reply

from ragstone.core.errors import ModelMismatch, SettingsError, StoreBusy, StoreError
from ragstone.core.filters import In, Not, Range, parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.vectors import Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.weaviate import provider as module
from ragstone.stores.vectors.weaviate.provider import WeaviateProvider, literal
from ragstone.stores.vectors.weaviate.schema import can_translate, class_name, object_of, passing, within
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import all_ids, id_of, make_points

PLACE = VectorPartition("acme", "s1", 4)
SECRET = "canary-key-1234"
ISOLATIONS: tuple[Isolation, ...] = ("collection", "namespace", "filter")


@pytest.fixture
def weaviate() -> Iterator[WeaviateDouble]:
    with WeaviateDouble(api_key=SECRET) as double:
        yield double


async def at_once(_seconds: float) -> None:
    """Waits for nothing."""


def make_provider(
    weaviate: WeaviateDouble, isolation: Isolation = "filter", key: str = SECRET, **options: Any
) -> WeaviateProvider:
    adapter = Adapter(kind="weaviate", url=weaviate.url, api_key=SecretStr(key), options=options)
    return WeaviateProvider(adapter, Path("unused"), isolation, sleep=at_once)


def queries(weaviate: WeaviateDouble) -> list[Any]:
    """The GraphQL that was sent, taken apart."""
    return [parse_query(json.loads(one.body)["query"]) for one in weaviate.http.requests if one.path == "/v1/graphql"]


@pytest.mark.req("R-STO-11")
@pytest.mark.parametrize(
    ("isolation", "name", "many"),
    [("collection", "Rs_acme_s1", False), ("namespace", "Rs_namespace_d4", True), ("filter", "Rs_filter_d4", False)],
)
async def test_the_class_is_made_as_the_isolation_says(
    weaviate: WeaviateDouble, isolation: Isolation, name: str, many: bool
) -> None:
    provider = make_provider(weaviate, isolation)
    for _ in range(2):
        await provider.open(PLACE)
    made = weaviate.classes[name]
    assert list(weaviate.classes) == [name]
    assert made.many_tenants is many
    assert list(made.objects) == (["acme"] if many else [""])
    assert made.definition["vectorizer"] == "none"
    assert made.definition["vectorIndexConfig"] == {"distance": "cosine"}
    assert (await provider.health()).version == "1.40.3"
    assert all(one.headers["authorization"] == f"Bearer {SECRET}" for one in weaviate.http.requests)
    await provider.close()


@pytest.mark.req("R-TEN-05")
@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_every_point_says_whose_it_is_and_every_call_asks(weaviate: WeaviateDouble, isolation: Isolation) -> None:
    provider = make_provider(weaviate, isolation)
    await provider.open(PLACE)
    payload = {"document_id": "d1", "chunk_index": 7, "text": "t"}
    await provider.upsert(PLACE, make_points(unit_vectors(1, 4), payload))
    ((stored,),) = [list(some.values()) for some in weaviate.classes[class_name(PLACE, isolation)].objects.values()]
    wanted = {"tenant_id": "acme", "space": "s1", "chunk_id": id_of(0), "document_id": "d1", "chunk_index": 7}
    assert wanted.items() <= stored.properties.items()
    where = parse_filter({"or": [{"a": 1}, {"b": 2}]})
    assert await provider.search(PLACE, unit_vectors(1, 4)[0], 5, where) == []
    await provider.read(PLACE, [id_of(0)])
    await all_ids(provider, PLACE)
    assert await provider.count(PLACE) == 1
    await provider.delete(PLACE, [id_of(0)])
    own = within(PLACE)["operands"]
    asked = [json.loads(json.dumps(query.arguments["where"])) for query in queries(weaviate)]
    removed = [json.loads(one.body)["match"]["where"] for one in weaviate.http.requests if one.method == "DELETE"]
    assert len(asked) == 4
    assert len(removed) == 1
    for one in (*asked, *removed):
        assert one["operator"] == "And"
        assert one["operands"][:2] == own
    tenants = {query.arguments.get("tenant") for query in queries(weaviate)}
    assert tenants == ({"acme"} if isolation == "namespace" else {None})
    await provider.close()


@pytest.mark.parametrize("isolation", ["namespace", "filter"])
async def test_dropping_a_space_leaves_its_neighbours(weaviate: WeaviateDouble, isolation: Isolation) -> None:
    weaviate.most = 10  # so that one call does not remove all
    provider = make_provider(weaviate, isolation)
    places = [PLACE, VectorPartition("acme", "s2", 4), VectorPartition("umbrella", "s1", 4)]
    for place in places:
        await provider.open(place)
        await provider.upsert(place, make_points(unit_vectors(25, 4)))
    await provider.drop(PLACE)
    assert [await provider.count(place) for place in places] == [0, 25, 25]
    await provider.close()


@pytest.mark.req("R-STO-18")
async def test_many_points_come_and_go_in_few_calls_over_one_connection(weaviate: WeaviateDouble) -> None:
    provider, count = make_provider(weaviate), 1000
    await provider.open(PLACE)
    weaviate.http.requests.clear()
    await provider.upsert(PLACE, make_points(unit_vectors(count, 4)))
    stored = [one for one in weaviate.http.requests if one.path == "/v1/batch/objects"]
    assert sum(len(json.loads(one.body)["objects"]) for one in stored) == count
    assert len(stored) == -(-count // module.BATCH) < count / 50
    weaviate.http.requests.clear()
    await provider.delete(PLACE, [id_of(number) for number in range(count)])
    assert [one.method for one in weaviate.http.requests] == ["DELETE"] * -(-count // module.PAGE)
    assert await all_ids(provider, PLACE) == []
    assert weaviate.http.connections == 1
    await provider.close()


async def test_dropping_a_class_of_its_own_drops_the_class(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate, "collection")
    await provider.open(PLACE)
    await provider.drop(PLACE)
    assert weaviate.classes == {}
    await provider.close()


async def test_a_class_of_another_dimension_is_refused(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate, "collection")
    await provider.open(PLACE)
    with pytest.raises(ModelMismatch, match="is for vectors of 4 dimensions, not of 8") as raised:
        await provider.open(VectorPartition("acme", "s1", 8))
    assert raised.value.remedy == Remedy(Action.REEMBED)
    await provider.close()


async def test_ids_come_in_pages_however_many_there_are(
    weaviate: WeaviateDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 20)
    provider = make_provider(weaviate)
    await provider.open(PLACE)
    points = make_points(unit_vectors(300, 4))
    await provider.upsert(PLACE, points)
    pages = [page async for page in provider.ids(PLACE)]
    assert all(len(page) < 20 for page in pages)
    assert sorted(one for page in pages for one in page) == sorted(point.chunk_id for point in points)
    await provider.close()


async def test_what_another_process_dropped_is_empty_and_can_be_made_again(weaviate: WeaviateDouble) -> None:
    one, other = make_provider(weaviate, "collection"), make_provider(weaviate, "collection")
    vector = unit_vectors(1, 4)
    for provider in (one, other):
        await provider.open(PLACE)
        await provider.upsert(PLACE, make_points(vector))
    await one.drop(PLACE)
    weaviate.classes["Other"] = make_class()
    assert await other.search(PLACE, vector[0], 5) == []
    await other.upsert(PLACE, make_points(vector))
    assert await one.count(PLACE) == 1
    await other.drop(PLACE)
    await one.delete(PLACE, [id_of(0)])
    await one.upsert(PLACE, make_points(vector))
    await other.drop(PLACE)
    with pytest.raises(StoreError, match="stored 0 of 1 points: class Rs_acme_s1 not found"):
        await one.upsert(PLACE, make_points(vector))
    await one.upsert(PLACE, make_points(vector))
    assert await one.count(PLACE) == 1
    for provider in (one, other):
        await provider.close()


def make_class() -> Any:
    from tests.doubles.weaviate_class import ClassDouble

    from ragstone.stores.vectors.weaviate.schema import class_definition

    return ClassDouble(class_definition(VectorPartition("o", "o", 4), "filter") | {"class": "Other"})


async def test_a_place_is_unknown_to_a_server_without_classes(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate, "namespace")
    assert await provider.search(PLACE, unit_vectors(1, 4)[0], 5) == []
    assert await provider.count(PLACE) == 0
    await provider.close()


async def test_points_that_were_not_stored_are_told(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate)
    await provider.open(PLACE)
    errors = {"error": [{"message": f"shard is read-only, said {SECRET}"}]}
    results = [{"result": {"status": "SUCCESS"}}, {"result": {"status": "FAILED", "errors": errors}}]
    weaviate.http.faults.append(json_reply(results))
    with pytest.raises(StoreError, match=r"stored 1 of 2 points: shard is read-only, said \*\*\*"):
        await provider.upsert(PLACE, make_points(unit_vectors(2, 4)))
    # It looks whether the class is still there before it tries again.
    weaviate.http.faults.extend([json_reply({"class": "Rs_filter_d4"}), json_reply([])])
    with pytest.raises(StoreError, match="stored 0 of 2 points"):
        await provider.upsert(PLACE, make_points(unit_vectors(2, 4)))
    await provider.close()


async def test_points_that_were_not_removed_are_told(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate)
    await provider.open(PLACE)
    results = {"matches": 3, "successful": 1, "failed": 2, "limit": 10_000}
    weaviate.http.faults.append(json_reply({"results": results}))
    with pytest.raises(StoreBusy, match="removed 1 of 3 points"):
        await provider.delete(PLACE, [id_of(0)])
    await provider.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (json_reply({"data": None, "errors": [{"message": f"bad {SECRET}"}]}), r"refused a query: bad \*\*\*"),
        (json_reply({"error": [{"message": "graphql api is disabled"}]}, 422), "refused a query: graphql api is"),
        (json_reply({"data": {"Get": {}}}), "another shape"),
        (json_reply({"data": {"Get": {"Rs_filter_d4": [{"chunk_id": "x"}]}}}), "another shape"),
        (json_reply([]), "another shape"),
    ],
)
async def test_a_query_that_fails_is_told(weaviate: WeaviateDouble, fault: Reply, message: str) -> None:
    provider = make_provider(weaviate)
    await provider.open(PLACE)
    weaviate.http.faults.append(fault)
    with pytest.raises(StoreError, match=message):
        await provider.search(PLACE, unit_vectors(1, 4)[0], 5)
    await provider.close()


async def test_writes_survive_passing_failures(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate)
    await provider.open(PLACE)
    weaviate.http.faults.extend([json_reply({}, 503), json_reply({}, 429, retry_after="1")])
    await provider.upsert(PLACE, make_points(unit_vectors(3, 4)))
    assert await provider.count(PLACE) == 3
    await provider.close()


async def test_a_wrong_key_is_told_without_any_key(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate, key="canary-wrong-9")
    with pytest.raises(StoreError, match=r"weaviate at 127\.0\.0\.1:\d+ refused the API key") as raised:
        await provider.health()
    assert "canary" not in str(raised.value) + raised.value.hint + repr(provider)
    await provider.close()


@pytest.mark.parametrize("version", ["1.26.9", "1.9.0", "0.23.2"])
async def test_a_server_that_is_too_old_is_refused(weaviate: WeaviateDouble, version: str) -> None:
    weaviate.version = version
    provider = make_provider(weaviate)
    with pytest.raises(StoreError, match=f"is version {version}"):
        await provider.open(PLACE)
    await provider.close()


async def test_a_class_that_is_refused_is_told(weaviate: WeaviateDouble) -> None:
    provider = make_provider(weaviate)
    weaviate.http.faults.extend(
        [
            json_reply({"version": "1.40.3"}),
            json_reply({}, 404),
            json_reply({"error": [{"message": "maximum number of collections reached"}]}, 422),
            json_reply({}, 404),
        ]
    )
    with pytest.raises(StoreError, match="refused a class: maximum number of collections reached"):
        await provider.open(PLACE)
    await provider.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grpc_port": 1}, "grpc_port is not an option of weaviate"),
        ({"consistency": "SOME"}, "consistency is 'SOME'"),
        ({"timeout": "5"}, "timeout is '5'"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        WeaviateProvider(Adapter(kind="weaviate", url="http://h", options=options), Path("unused"), "filter")


def test_an_address_is_needed() -> None:
    with pytest.raises(SettingsError, match="weaviate needs an address") as raised:
        WeaviateProvider(Adapter(kind="weaviate"), Path("unused"), "filter")
    assert raised.value.hint == "set store.vectors.url to something like http://host:8080"


async def test_a_server_without_keys_gets_none(weaviate: WeaviateDouble) -> None:
    provider = WeaviateProvider(Adapter(kind="weaviate", url=weaviate.url), Path("unused"), "filter")
    with pytest.raises(StoreError, match="refused the API key"):
        await provider.health()
    assert "authorization" not in weaviate.http.requests[0].headers
    await provider.close()


def test_names_of_places_never_meet_and_are_names() -> None:
    places = [
        VectorPartition("a", "b", 4),
        VectorPartition("a_b", "c", 4),
        VectorPartition("a", "b_c", 4),
        VectorPartition("A", "b", 4),
        VectorPartition("é\x00", "", 4),
    ]
    names = [class_name(place, "collection") for place in places]
    assert len({name.lower() for name in names}) == len(places)
    for name in names:
        assert name.isascii()
        assert name.replace("_", "").isalnum()
        assert len(name) < 200
    vector = unit_vectors(1, 4)[0]
    numbers = {object_of(place, "filter", Point(id_of(0), vector, {}))["id"] for place in places}
    assert len(numbers) == len(places)


def test_filters_are_written_as_conditions_on_terms() -> None:
    where = parse_filter({"a": ["x", 1], "not": {"b": True}})
    assert where is not None
    assert passing(where) == {
        "operator": "And",
        "operands": [
            {"path": ["terms"], "operator": "ContainsAny", "valueTextArray": ['["a","x"]', '["a",1]']},
            {"path": ["terms"], "operator": "NotEqual", "valueText": '["b",true]'},
        ],
    }


def test_a_long_negation_is_left_to_the_ledger() -> None:
    assert can_translate(In("a", tuple(range(1000))))
    assert can_translate(Not(In("a", tuple(range(100)))))
    assert not can_translate(Not(In("a", tuple(range(101)))))
    assert can_translate(Not(Range("a", gte=0.1, lt=0.7)))


@pytest.mark.parametrize("text", ['"', "\\", '"}) { x } #', "\n\t\x00", '\\"', "'", "/"])
def test_no_text_gets_out_of_its_quotes(text: str) -> None:
    query = parse_query(f"{{ Get {{ C(where: {literal({'operator': 'Equal', 'valueText': text})}) {{ f }} }} }}")
    assert query.arguments == {"where": {"operator": "Equal", "valueText": text}}
    assert isinstance(query.arguments["where"]["operator"], Word)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{ Get { C } }",
        "{ Get { C(limit: 1) { f } }",
        "{ Get { C(limit: 1 limit: 2) { f } } }",
        '{ Get { C(a: "x) { f } } }',
        "{ Get { C(a: ]) { f } } }",
        "{ Get { C(a: 1) { f } } } x",
        "query { Get { C(a: 1) { f } } }",
    ],
)
def test_the_double_refuses_malformed_graphql(text: str) -> None:
    with pytest.raises(Refused):
        parse_query(text)


@pytest.mark.parametrize(
    "where",
    [
        {"operator": "And", "operands": []},
        {"path": ["nope"], "operator": "Equal", "valueText": "x"},
        {"path": ["payload"], "operator": "Equal", "valueText": "x"},
        {"path": ["terms"], "operator": "ContainsAny", "valueTextArray": []},
        {"path": ["terms"], "operator": "ContainsAny", "valueText": "x"},
        {"path": ["terms"], "operator": "Equal", "valueInt": 1},
        {"path": ["slot"], "operator": "Equal", "valueText": "x"},
        {"path": ["terms"], "operator": Word("Equal"), "valueText": "x"},
        {"path": ["terms"], "operator": "Like", "valueText": "x"},
    ],
)
def test_the_double_refuses_conditions_that_weaviate_does_not_know(where: Any) -> None:
    with pytest.raises(Refused):
        make_class().passing(where, graphql=False)

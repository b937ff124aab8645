"""What a Qdrant server is sent when it holds words beside the vectors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.doubles.qdrant import QdrantDouble
from tests.unit.stores.vectors.qdrant.served import KEY, PLACE, QUERY, Connect

from ragstone.core.errors import SettingsError, StoreError
from ragstone.core.filters import parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.vectors import Isolation, Point, VectorPartition, Words
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger.index_feed import NO_VECTOR
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points

BOTH = Point(id_of(0), unit_vectors(1)[0], {"lang": "de"}, Words([7, 4_294_967_295], [1.5, 0.5]))
WORDS_ONLY = Point(id_of(1), NO_VECTOR, {"lang": "en"}, Words([7], [1.0]))
SILENT = Point(id_of(2), NO_VECTOR, {}, Words([], []))
ENGINES = [Adapter(kind="qdrant"), Adapter(kind="qdrant", options={"engine": "edge"})]


def words_on(double: QdrantDouble, isolation: Isolation = "collection") -> QdrantProvider:
    adapter = Adapter(kind="qdrant", url=double.url, api_key=SecretStr(KEY))
    return QdrantProvider(adapter, Path("unused"), isolation, words=True)


@pytest.fixture
async def worded(double: QdrantDouble) -> AsyncIterator[QdrantProvider]:
    provider = words_on(double)
    await provider.open(PLACE)
    await provider.upsert(PLACE, [BOTH, WORDS_ONLY, SILENT])
    yield provider
    await provider.close()
    assert double.violations == []


def sent(double: QdrantDouble, path: str) -> list[dict[str, object]]:
    return [json.loads(one.body) for one in double.requests if one.path.endswith(path) and one.body]


@pytest.mark.req("R-STO-17")
async def test_a_collection_has_a_graph_and_an_inverted_index(worded: QdrantProvider, double: QdrantDouble) -> None:
    (made,) = sent(double, "/collections/rs_t1_s1")
    assert made == {
        "vectors": {"dense": {"size": 32, "distance": "Cosine"}},
        "sparse_vectors": {"words": {"modifier": "idf"}},
        "hnsw_config": {"m": 16, "ef_construct": 100},
    }


async def test_both_vectors_travel_in_one_batch(worded: QdrantProvider, double: QdrantDouble) -> None:
    (written,) = sent(double, "/points")
    points = written["points"]
    assert isinstance(points, list)
    assert [sorted(one["vector"]) for one in points] == [["dense", "words"], ["words"], []]
    assert points[0]["vector"]["words"] == {"indices": [7, 4_294_967_295], "values": [1.5, 0.5]}


async def test_a_search_names_the_vector_and_filters_inside(worded: QdrantProvider, double: QdrantDouble) -> None:
    assert [one.chunk_id for one in await worded.search(PLACE, QUERY, 5)] == [id_of(0)]
    found = await worded.search_words(PLACE, Words([7, 9], [1.0, 1.0]), 5)
    assert [one.chunk_id for one in found] == [id_of(0), id_of(1)]
    english = parse_filter({"lang": "en"})
    (only,) = await worded.search_words(PLACE, Words([7], [1.0]), 1, english)
    assert only.chunk_id == id_of(1)
    assert await worded.search_words(PLACE, Words([], []), 5) == []
    queries = sent(double, "/points/query")
    assert [one["using"] for one in queries] == ["dense", "words", "words"]
    assert queries[2]["filter"] == {"must": [{"should": [{"key": "lang", "match": {"any": ["en"]}}]}]}


async def test_points_come_back_with_both_vectors(worded: QdrantProvider) -> None:
    found = {one.chunk_id: one for one in await worded.read(PLACE, [id_of(n) for n in range(3)])}
    both, only, silent = (found[id_of(n)] for n in range(3))
    assert both.words == BOTH.words
    assert both.vector.tolist() == pytest.approx(BOTH.vector.tolist(), abs=1e-6)
    assert (len(only.vector), only.words) == (0, WORDS_ONLY.words)
    assert (len(silent.vector), silent.words) == (0, None)
    assert await worded.count(PLACE) == 3


async def test_words_go_with_their_point(worded: QdrantProvider) -> None:
    await worded.upsert(PLACE, [BOTH._replace(words=Words([9], [1.0]))])
    assert [one.chunk_id for one in await worded.search_words(PLACE, Words([7], [1.0]), 5)] == [id_of(1)]
    await worded.delete(PLACE, [id_of(1)])
    assert await worded.search_words(PLACE, Words([7], [1.0]), 5) == []


@pytest.mark.req("R-STO-18")
async def test_batches_go_over_one_connection() -> None:
    ids = [id_of(n) for n in range(1500)]
    # The client keeps no connection to what it knows to be this machine.
    with QdrantDouble(KEY, "127.0.0.2") as double:
        provider = words_on(double)
        await provider.open(PLACE)
        await provider.upsert(PLACE, [Point(one, NO_VECTOR, {}, Words([7], [1.0])) for one in ids[:600]])
        await provider.delete(PLACE, ids)
        await provider.search_words(PLACE, Words([7], [1.0]), 5)
        await provider.close()
    assert [len(one["points"]) for one in sent(double, "/points")] == [256, 256, 88]  # type: ignore[arg-type]
    assert [len(one["points"]) for one in sent(double, "/points/delete")] == [1000, 500]  # type: ignore[arg-type]
    assert double.connections == 1


async def test_long_chunks_travel_in_smaller_batches(worded: QdrantProvider, double: QdrantDouble) -> None:
    double.requests.clear()
    many = Words(list(range(240_000)), [1.0] * 240_000)
    await worded.upsert(PLACE, [Point(id_of(n), NO_VECTOR, {}, many) for n in range(3)])
    assert [len(one["points"]) for one in sent(double, "/points")] == [2, 1]  # type: ignore[arg-type]


async def test_a_collection_of_the_other_form_is_refused_and_kept(
    double: QdrantDouble, connect: Connect, worded: QdrantProvider
) -> None:
    plain = connect()
    other = VectorPartition("t1", "s2", PLACE.dimension)
    await plain.open(other)
    await plain.upsert(other, make_points(unit_vectors(2)))
    for provider, place, said in ((worded, other, "made without words"), (plain, PLACE, "made with words")):
        with pytest.raises(StoreError, match=said) as refused:
            await provider.open(place)
        assert refused.value.remedy == Remedy(Action.REPAIR_STORES)
        assert said in await provider.misfit(place)
        assert await provider.count(place) > 0
    assert await worded.misfit(PLACE) == await worded.misfit(VectorPartition("t9", "s9", 8)) == ""


@pytest.mark.req("R-STO-37")
def test_words_are_declared_where_they_are_held(double: QdrantDouble, connect: Connect) -> None:
    assert words_on(double).capabilities.sparse
    assert not connect().capabilities.sparse
    assert not words_on(double).capabilities.hybrid


@pytest.mark.parametrize("isolation", ["namespace", "filter"])
def test_statistics_of_several_tenants_are_not_mixed(double: QdrantDouble, isolation: Isolation) -> None:
    with pytest.raises(SettingsError, match="how often all tenants use them") as refused:
        words_on(double, isolation)
    assert "store.isolation: collection" in refused.value.hint


@pytest.mark.parametrize("adapter", ENGINES, ids=["local", "edge"])
async def test_words_last(adapter: Adapter, tmp_path: Path) -> None:
    def opened() -> QdrantProvider:
        return QdrantProvider(adapter, tmp_path, "collection", words=True)

    first = opened()
    await first.open(PLACE)
    await first.upsert(PLACE, [BOTH, WORDS_ONLY, SILENT])
    await first.close()
    again = opened()
    await again.open(PLACE)
    found = await again.search_words(PLACE, Words([7], [1.0]), 5)
    assert [one.chunk_id for one in found] == [id_of(0), id_of(1)]
    assert await again.count(PLACE) == 3
    await again.drop(PLACE)
    assert await again.search_words(PLACE, Words([7], [1.0]), 5) == []
    await again.close()

"""Vectors in PostgreSQL, sorted exactly and by approximate indexes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psycopg
import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import INDEXED, on_16, server

from ragstone.core.errors import SettingsError
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import VectorIndex
from ragstone.core.types import Candidate, KnowledgeBase, Vector
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.vectors.pgvector import index as pgvector
from ragstone.stores.vectors.pgvector.index import PgVectorIndex
from ragstone.stores.vectors.pgvector.maintenance import PgVectorOptions
from ragstone.testing.builders import make_version, put, unit_vectors
from ragstone.testing.suites.vectors import VectorSuite

postgres_databases = postgres_server.postgres_databases


class Maintained:
    """Sees to its indexes before each search, so that even a Space of one vector is searched by one."""

    def __init__(self, index: PgVectorIndex) -> None:
        self._index = index

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        await self._index.maintain(tenant)
        return await self._index.search(tenant, kb, vector, k, where)


class TestExact(VectorSuite):
    version = 18

    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        ledger = PostgresLedger(server(self.version).database(folder), folder)
        return ledger, PgVectorIndex(ledger, IndexCache(64))

    @pytest.mark.req("R-STO-13")
    async def test_the_nearest_come_in_order(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_the_nearest_come_in_order(stores)

    @pytest.mark.req("R-REL-14", "R-TST-52")
    async def test_tenants_and_kbs_are_searched_apart(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_tenants_and_kbs_are_searched_apart(stores)


class TestHnsw(VectorSuite):
    version = INDEXED
    options: ClassVar[dict[str, Any]] = {"index": "hnsw", "exact_below": 0}

    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        ledger = PostgresLedger(server(self.version).database(folder), folder)
        return ledger, Maintained(PgVectorIndex(ledger, IndexCache(64), self.options))

    @pytest.mark.req("R-STO-12", "R-STO-13")
    async def test_the_nearest_come_in_order(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_the_nearest_come_in_order(stores)


class TestIvfflat(TestHnsw):
    options: ClassVar[dict[str, Any]] = {"index": "ivfflat", "exact_below": 0, "lists": 4, "probes": 4}


TestHnsw16 = on_16(TestHnsw, "test_the_nearest_come_in_order", "test_the_filter_acts_before_the_cut")


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[PostgresLedger]:
    opened = PostgresLedger(server(INDEXED).database(tmp_path), tmp_path)
    yield opened
    await opened.close()


def open_index(ledger: PostgresLedger, **options: Any) -> PgVectorIndex:
    index = PgVectorIndex(ledger, IndexCache(64), options)
    index.serve()
    return index


async def fill(ledger: PostgresLedger, first: int, last: int) -> KnowledgeBase:
    """Ten documents, each with a tenth of the vectors `first` to `last`."""
    vectors = unit_vectors(last)[first:]
    parts = np.array_split(vectors, 10)
    return await put(
        ledger, *(make_version(f"{first}-{n}", ["x"] * len(part), vectors=part) for n, part in enumerate(parts))
    )


async def definitions(ledger: PostgresLedger) -> dict[str, str]:
    """The approximate indexes that there are, by name."""
    found = await ledger.read(
        "default",
        lambda connection, _: connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE starts_with(indexname, 'idx_chunks_embedding')"
        ).fetchall(),
    )
    return dict(found)


@pytest.mark.req("R-STO-31", "R-STO-12")
@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
async def test_a_filter_that_leaves_one_in_a_hundred_still_gets_the_nearest(
    ledger: PostgresLedger, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = unit_vectors(2_500)
    kb = await put(
        ledger,
        *(
            make_version(f"d{n}", ["x"] * 25, vectors=vectors[25 * n : 25 * n + 25], metadata={"n": n})
            for n in range(100)
        ),
    )
    opened = open_index(ledger, index=index, exact_below=0)
    assert [order.makes for order in await opened.maintain("default")] == [True]
    live = {n: await ledger.of("default").document_chunks(make_version(f"d{n}").document_id) for n in (3, 77)}
    monkeypatch.delattr(pgvector._Query, "exactly")  # the index has to do it alone
    hits = total = 0
    for n, chunks in live.items():
        own = vectors[25 * n : 25 * n + 25]
        for query in unit_vectors(10, seed=n):
            found = await opened.search("default", kb, query, 10, parse_filter({"n": n}))
            nearest = np.argsort(-(own @ query))[:10]
            hits += len({one.chunk_id for one in found} & {chunks[row].id for row in nearest})
            total += 10
            assert len(found) == 10
    assert hits / total >= 0.95


async def test_a_large_space_is_searched_by_its_index(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = await fill(ledger, 0, 1_000)
    index = open_index(ledger, exact_below=500)
    await index.maintain("default")
    plans: list[str] = []
    found = pgvector._Query._fetch

    def explained(self: pgvector._Query, statement: str, parameters: Sequence[Any]) -> list[Candidate]:
        rows = self._connection.execute(f"EXPLAIN {statement}", parameters)
        plans.append("\n".join(line for (line,) in rows))
        return found(self, statement, parameters)

    monkeypatch.setattr(pgvector._Query, "_fetch", explained)
    query = unit_vectors(1, seed=5)[0]
    by_index = await index.search("default", kb, query, 10)
    assert "Index Scan using idx_chunks_embedding_1_1" in plans[0]
    few = await index.search("default", kb, query, 10, parse_filter({"external_id": "0-1"}))
    assert len(few) == 10
    assert "idx_chunks_embedding" not in plans[1]
    assert len(plans) == 2
    exact = await open_index(ledger, index="none").search("default", kb, query, 10)
    assert [one.chunk_id for one in by_index] == [one.chunk_id for one in exact]


@pytest.mark.req("R-STO-12")
@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, "USING hnsw (((vector)::halfvec(32)) halfvec_cosine_ops) WITH (m='16', ef_construction='100')"),
        ({"index": "ivfflat"}, "USING ivfflat (((vector)::halfvec(32)) halfvec_cosine_ops) WITH (lists='100')"),
    ],
)
async def test_an_index_is_made_when_a_space_is_large_enough(
    ledger: PostgresLedger, options: dict[str, Any], made: str
) -> None:
    index = open_index(ledger, exact_below=100, **options)
    kb = await fill(ledger, 0, 90)
    assert await index.maintain("default") == []
    assert await definitions(ledger) == {}
    await fill(ledger, 90, 110)
    assert await definitions(ledger) == {}
    await ledger.clean_up("default")  # which workers do from time to time
    ((name, definition),) = (await definitions(ledger)).items()
    assert name == "idx_chunks_embedding_1_1"
    assert made in definition
    assert definition.endswith("WHERE (space_id = 1)")
    assert len(await index.search("default", kb, unit_vectors(1)[0], 110)) == 110
    assert await index.maintain("default") == []


@pytest.mark.req("R-STO-30")
async def test_an_ivfflat_index_that_was_built_on_too_little_is_made_anew(ledger: PostgresLedger) -> None:
    index = open_index(ledger, index="ivfflat", exact_below=10, lists=5)
    await fill(ledger, 0, 20)
    await index.maintain("default")
    await fill(ledger, 20, 79)
    assert await index.maintain("default") == []
    await fill(ledger, 79, 89)
    assert [order.vectors for order in await index.maintain("default")] == [89]
    assert list(await definitions(ledger)) == ["idx_chunks_embedding_1_2"]
    hnsw = open_index(ledger, exact_below=10)
    assert [order.makes for order in await hnsw.maintain("default")] == [True]
    await fill(ledger, 89, 400)
    assert await hnsw.maintain("default") == []


@pytest.mark.req("R-STO-14")
async def test_an_index_can_be_made_anew_at_will(ledger: PostgresLedger) -> None:
    index = open_index(ledger, index="ivfflat", exact_below=10, lists=5)
    kb = await fill(ledger, 0, 20)
    for number in (1, 2, 3):
        assert [order.makes for order in await index.rebuild("default", kb)] == [True]
        assert list(await definitions(ledger)) == [f"idx_chunks_embedding_1_{number}"]
    assert len(await index.search("default", kb, unit_vectors(1)[0], 20)) == 20
    assert await open_index(ledger, exact_below=10_000).rebuild("default", kb) != []
    assert await definitions(ledger) == {}
    bare = await put(ledger, make_version("bare", kb="bare"), kb="bare")
    assert await index.rebuild("default", bare) == []


async def test_other_options_make_another_index_or_none(ledger: PostgresLedger) -> None:
    await fill(ledger, 0, 20)
    for options, kind in (
        ({}, "USING hnsw"),
        ({"index": "ivfflat", "lists": 3}, "lists='3'"),
        ({"index": "ivfflat", "lists": 4}, "lists='4'"),
    ):
        await open_index(ledger, exact_below=10, **options).maintain("default")
        ((_, definition),) = (await definitions(ledger)).items()
        assert kind in definition
    await open_index(ledger, index="none").maintain("default")
    assert await definitions(ledger) == {}


async def test_what_was_left_half_made_is_made_again(ledger: PostgresLedger, tmp_path: Path) -> None:
    kb = await fill(ledger, 0, 20)
    index = open_index(ledger, exact_below=10)
    await index.maintain("default")
    one = server(INDEXED)
    with psycopg.connect(one.admin(one.name_of(tmp_path))) as admin:
        admin.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ragstone.idx_chunks_embedding_1_1'::regclass"
        )
    assert len(await index.search("default", kb, unit_vectors(1)[0], 10)) == 10
    assert [order.drops for order in await index.maintain("default")] == [("idx_chunks_embedding_1_1",)]
    assert list(await definitions(ledger)) == ["idx_chunks_embedding_1_2"]


async def test_an_index_that_cannot_be_made_stops_nothing(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    index = open_index(ledger, exact_below=10)
    kb = await fill(ledger, 0, 20)
    monkeypatch.setattr(PgVectorOptions, "definition", "m = 1")  # which pgvector refuses
    await ledger.clean_up("default")
    assert "cannot maintain an index or the retrieval log" in caplog.text
    assert len(await index.search("default", kb, unit_vectors(1)[0], 10)) == 10


async def test_two_who_tend_the_indexes_at_once_make_one(ledger: PostgresLedger, tmp_path: Path) -> None:
    await fill(ledger, 0, 20)
    second = PostgresLedger(server(INDEXED).database(tmp_path), tmp_path)
    both = [open_index(each, exact_below=10) for each in (ledger, second)]
    done = await asyncio.gather(*(index.maintain("default") for index in both))
    assert sorted(map(len, done)) == [0, 1]
    assert list(await definitions(ledger)) == ["idx_chunks_embedding_1_1"]
    await second.close()


async def test_the_index_of_a_space_that_is_gone_goes(ledger: PostgresLedger) -> None:
    index = open_index(ledger, exact_below=10)
    await fill(ledger, 0, 20)
    await index.maintain("default")
    async with ledger.transaction("default") as transaction:
        await transaction.delete_kb("default")
    assert [order.drops for order in await index.maintain("default")] == [("idx_chunks_embedding_1_1",)]
    assert await definitions(ledger) == {}


@pytest.mark.req("R-STO-34")
async def test_vectors_that_the_index_cannot_hold_are_refused_when_a_space_is_made(ledger: PostgresLedger) -> None:
    open_index(ledger)
    for dimension, name in ((4_001, "one"), (16_001, "two")):
        with pytest.raises(SettingsError, match=r"4,000 dimensions at most"):
            await put(ledger, make_version(vectors=unit_vectors(1, dimension), kb=name), kb=name)
        assert await ledger.of("default").kb(name) is None
    kb = await put(ledger, make_version(vectors=unit_vectors(1, 4_000), kb="most"), kb="most")
    assert kb.space is not None
    with pytest.raises(SettingsError, match="4,000"):
        await SqlSpaceBook(ledger).of("default").open(kb, "long-model", 4_001)


async def test_without_an_index_longer_vectors_are_sorted(ledger: PostgresLedger) -> None:
    index = open_index(ledger, index="none")
    vectors = unit_vectors(3, 5_000)
    kb = await put(ledger, make_version(texts=("a", "b", "c"), vectors=vectors))
    found = await index.search("default", kb, vectors[1], 2)
    assert found[0].score == pytest.approx(1, abs=2e-3)
    # Another process with an index leaves that Space alone.
    assert await open_index(ledger, exact_below=1).maintain("default") == []
    open_index(ledger, index="none")
    with pytest.raises(SettingsError, match="16,000"):
        await put(ledger, make_version(vectors=unit_vectors(1, 16_001), kb="x"), kb="x")


async def test_a_query_of_nothing_but_zeros_finds_all_equally_far(ledger: PostgresLedger) -> None:
    kb = await fill(ledger, 0, 20)
    index = open_index(ledger, exact_below=0)
    await index.maintain("default")
    found = await index.search("default", kb, np.zeros(32, np.float32), 10)
    assert [one.score for one in found] == [0.0] * 10
    assert [one.chunk_id for one in found] == sorted(one.chunk_id for one in found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"index": "flat"}, "index is 'flat'"),
        ({"index": None}, "index is None"),
        ({"list": 100}, "list is not an option of pgvector"),
        ({"lists": 0}, "lists is 0"),
        ({"lists": "100); DROP TABLE x"}, "lists is '100"),
        ({"probes": True}, "probes is True"),
        ({"ef_search": 1_001}, "ef_search is 1001"),
        ({"exact_below": -1}, "exact_below is -1"),
        ({"exact_below": 1.5}, "exact_below is 1.5"),
    ],
)
def test_an_option_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=r"store\.vectors\.options") as refused:
        PgVectorOptions.parse(given)
    assert said in str(refused.value)

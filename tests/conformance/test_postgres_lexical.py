"""The lexical indexes in PostgreSQL's own tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server

from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex
from ragstone.stores.indexes import IndexCache, TransactionalIndex
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.lexical.postgres import PostgresLexicalIndex, PostingsWriter
from ragstone.stores.lexical.postgres_fts import PostgresFtsIndex, any_of
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import delete, make_version, put
from ragstone.testing.suites.keywords import KeywordSuite
from ragstone.testing.suites.lexical import WordWeightSuite

postgres_databases = postgres_server.postgres_databases


def open_ledger(folder: Path, writers: Sequence[TransactionalIndex], version: int = 18) -> PostgresLedger:
    return PostgresLedger(postgres_server.server(version).database(folder), folder, writers)


class TestPostgresLexicalIndex(WordWeightSuite):
    version = 18

    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        ledger = open_ledger(folder, PostgresLexicalIndex.writers(), self.version)
        return ledger, PostgresLexicalIndex(ledger, IndexCache(64))

    @pytest.mark.req("R-STO-35")
    async def test_any_term_is_enough(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_any_term_is_enough(stores)

    @pytest.mark.req("R-HYB-17")
    async def test_identifiers_are_found_whole_and_by_part(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_identifiers_are_found_whole_and_by_part(stores)

    @pytest.mark.req("R-REL-14", "R-TST-52")
    async def test_tenants_are_searched_apart(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_tenants_are_searched_apart(stores)


TestPostgresLexicalIndex16 = postgres_server.on_16(
    TestPostgresLexicalIndex, "test_any_term_is_enough", "test_tenants_are_searched_apart"
)


class TestPostgresFtsIndex(KeywordSuite):
    version = 18

    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        ledger = open_ledger(folder, PostgresFtsIndex.writers(), self.version)
        return ledger, PostgresFtsIndex(ledger, IndexCache(64))

    @pytest.mark.req("R-STO-22", "R-STO-35")
    async def test_any_term_is_enough(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_any_term_is_enough(stores)

    @pytest.mark.req("R-STO-22", "R-DOM-11")
    async def test_scores_are_ts_rank_over_the_raw_content(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        ledger, index = stores
        assert isinstance(ledger, PostgresLedger)
        texts = ("the server is running", "servers and servers", "nothing of it")
        kb = await put(ledger, make_version("a", texts, context="Server > "))

        def ranks(connection: Connection, tenant_id: str) -> dict[str, float]:
            rows = connection.execute(
                "SELECT id, ts_rank(to_tsvector('english', content), 'server | run'::tsquery) FROM chunks "
                "WHERE tenant_id = ?",
                (tenant_id,),
            )
            return {chunk_id: rank for chunk_id, rank in rows if rank > 0}

        expected = await ledger.read("default", ranks)
        found = await index.search("default", kb, "Do servers run?", 10)
        assert len(found) == 2
        assert {one.chunk_id: one.score for one in found} == pytest.approx(expected)
        assert [one.score for one in found] == sorted(expected.values(), reverse=True)


TestPostgresFtsIndex16 = postgres_server.on_16(
    TestPostgresFtsIndex, "test_any_term_is_enough", "test_scores_are_ts_rank_over_the_raw_content"
)


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["a"], "'a'"),
        (["it's", "b"], "'it''s' | 'b'"),
        (["back\\slash"], "'back\\\\slash'"),
        (["' | '", "!x & y:*"], "''' | ''' | '!x & y:*'"),
    ],
)
def test_words_cannot_become_operators(words: list[str], query: str) -> None:
    assert any_of(words) == query


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[PostgresLedger]:
    opened = open_ledger(tmp_path, PostgresLexicalIndex.writers())
    yield opened
    await opened.close()


async def rows(ledger: PostgresLedger, statement: str) -> list[Any]:
    return await ledger.read(
        "default", lambda connection, tenant_id: connection.execute(statement, (tenant_id,)).fetchall()
    )


POSTINGS = "SELECT term, chunk_seq, count, length FROM postings WHERE tenant_id = ? ORDER BY 1, 2"
STATISTICS = "SELECT chunks, length FROM lexical_statistics WHERE tenant_id = ?"


async def test_postings_are_those_of_live_chunks(ledger: PostgresLedger) -> None:
    kb = await put(ledger, make_version("a", ("map map chat", "", "map")))
    assert await rows(ledger, POSTINGS) == [("chat", 1, 1, 3), ("map", 1, 2, 3), ("map", 3, 1, 1)]
    assert await rows(ledger, STATISTICS) == [(3, 4)]
    async with ledger.transaction("default") as transaction:
        await transaction.stage(kb, make_version("a", ("shop",)))
    assert len(await rows(ledger, POSTINGS)) == 3
    await put(ledger, make_version("a", ("shop shop",)))
    assert [row[0] for row in await rows(ledger, POSTINGS)] == ["shop"]
    assert await rows(ledger, STATISTICS) == [(1, 2)]
    await delete(ledger, make_version("a").document_id)
    assert await rows(ledger, POSTINGS) == []
    assert await rows(ledger, STATISTICS) == [(0, 0)]
    async with ledger.transaction("default") as transaction:
        await transaction.delete_kb("default")
    assert await rows(ledger, STATISTICS) == []


async def test_a_transaction_that_fails_leaves_the_postings_as_they_were(ledger: PostgresLedger) -> None:
    await put(ledger, make_version("a", ("map",)))
    before = await rows(ledger, POSTINGS)

    async def fail_after_activating() -> None:
        async with ledger.transaction("default") as transaction:
            kb = await transaction.open_kb("default")
            number = await transaction.stage(kb, make_version("b", ("chat",)))
            await transaction.activate(kb, make_version("b").document_id, number)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail_after_activating()
    assert await rows(ledger, POSTINGS) == before
    assert await rows(ledger, STATISTICS) == [(1, 1)]


async def test_whoever_goes_back_from_another_index_finds_everything(tmp_path: Path) -> None:
    first = open_ledger(tmp_path, PostgresLexicalIndex.writers())
    await put(first, make_version("old", ("server map",)), make_version("gone", ("server chat",)))
    await first.close()
    second = open_ledger(tmp_path, PostgresFtsIndex.writers())
    await delete(second, make_version("gone").document_id)
    kb = await put(second, make_version("new", ("server shop shop",)))
    # What was deleted is gone from postings that nobody keeps in step, too.
    assert await rows(second, POSTINGS) == []
    await second.close()
    third = open_ledger(tmp_path, PostgresLexicalIndex.writers())
    index = PostgresLexicalIndex(third, IndexCache(64))
    await put(third, make_version("newest", ("a server",)))
    found = await index.search("default", kb, "server shop", 10)
    live = await third.of("default").chunks(kb, [one.chunk_id for one in found])
    assert sorted(one.title for one in live.values()) == ["Title of new", "Title of newest", "Title of old"]
    assert await rows(third, STATISTICS) == [(3, 6)]
    await third.close()


async def test_a_kb_that_was_made_without_postings_gets_them(tmp_path: Path) -> None:
    plain = open_ledger(tmp_path, ())
    kb = await put(plain, *(make_version(f"d{n}", ("server " * n,)) for n in range(1, 6)))
    index = PostgresLexicalIndex(plain, IndexCache(64))
    assert len(await index.search("default", kb, "server", 10)) == 5
    assert await index.search("default", kb, "nothing", 10) == []
    await plain.close()


async def test_nothing_is_written_for_a_kb_without_postings(ledger: PostgresLedger) -> None:
    await put(ledger, make_version("a", ("map",)))
    await ledger.write("default", lambda connection, _: connection.execute("DELETE FROM lexical_statistics"))
    await ledger.write("default", lambda connection, _: PostingsWriter().add(connection, 1, [(9, "x y")]))
    assert [row[0] for row in await rows(ledger, POSTINGS)] == ["map"]


async def test_a_search_is_answered_by_the_index_alone(ledger: PostgresLedger) -> None:
    await put(ledger, *(make_version(f"d{n}", ("server map chat shop",) * 50) for n in range(10)))

    def plan(connection: Connection, tenant_id: str) -> str:
        found = connection.execute(
            f"EXPLAIN SELECT term, chunk_seq, count, length FROM postings_{tenant_id} "
            "WHERE kb_id = 1 AND term = ANY (?::text[])",
            (["map"],),
        )
        return "\n".join(line for (line,) in found)

    def without_the_heap(connection: Connection, tenant_id: str) -> str:
        connection.execute(
            "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"
        )
        return plan(connection, tenant_id)

    assert "Index Only Scan" in await ledger.read("default", without_the_heap)

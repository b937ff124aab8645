"""The two SQLite indexes in one file with the ledger: what is in memory follows what is on disk."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from ragstone.core.types import Candidate
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger import versions as changes
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical import sqlite as lexical_module
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.stores.migrations import create, list_tables
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.builders import delete, make_version, put, unit_vectors


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path, [Fts5Writer()])
    yield opened
    await opened.close()


def same(one: list[Candidate], two: list[Candidate]) -> bool:
    return [each.chunk_id for each in one] == [each.chunk_id for each in two] and [
        each.score for each in one
    ] == pytest.approx([each.score for each in two], abs=1e-4)


async def test_disk_and_memory_answer_alike(ledger: SqliteLedger) -> None:
    kb = await put(ledger, *(make_version(f"d{n}", ["server " * (n + 1) + "map", "quota"]) for n in range(9)))
    for step in range(4):
        index = SqliteLexicalIndex(ledger, IndexCache(16))
        from_disk = await index.search("default", kb, "server quota", 100)
        from_memory = await index.search("default", kb, "server quota", 100)
        assert same(from_disk, from_memory)
        assert len(from_disk) == 18 - 2 * step
        await delete(ledger, make_version(f"d{step}").document_id)


async def test_many_changes_are_read_in_the_background(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical_module, "INLINE_CHANGES", 3)
    kb = await put(ledger, *(make_version(f"d{n}", ("server map",)) for n in range(10)))
    index = SqliteLexicalIndex(ledger, IndexCache(16))
    answers = [await index.search("default", kb, "server", 100) for _ in range(2)]
    for thread in threading.enumerate():
        if thread.name.endswith("(_load)"):
            thread.join()
    answers.append(await index.search("default", kb, "server", 100))
    assert all(same(answer, answers[0]) for answer in answers)
    assert len(answers[0]) == 10
    await put(ledger, make_version("next", ("server",)))
    assert len(await index.search("default", kb, "server", 100)) == 11


async def test_a_shortened_feed_means_reading_everything_anew(ledger: SqliteLedger) -> None:
    kb = await put(ledger, *(make_version(f"d{n}", ("server",), vectors=unit_vectors(1, seed=n)) for n in range(3)))
    residents = IndexCache(16)
    lexical, vectors = SqliteLexicalIndex(ledger, residents), SqliteVectorIndex(ledger, residents)
    query = unit_vectors(1, seed=9)[0]
    for _ in range(2):
        assert len(await lexical.search("default", kb, "server", 10)) == 3
        assert len(await vectors.search("default", kb, query, 10)) == 3
    await delete(ledger, make_version("d0").document_id)
    await put(ledger, make_version("d9", ("server",), vectors=unit_vectors(1, seed=8)))
    async with ledger.file("default") as file, file.turn:
        await file.write(lambda connection: connection.execute("DELETE FROM changes WHERE seq < 5").close())
    live = {
        one.id
        for name in ("d1", "d2", "d9")
        for one in await ledger.of("default").document_chunks(make_version(name).document_id)
    }
    assert {one.chunk_id for one in await lexical.search("default", kb, "server", 10)} == live
    assert {one.chunk_id for one in await vectors.search("default", kb, query, 10)} == live


async def test_indexes_follow_while_the_feed_is_shortened(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "SHORTEN_EVERY", 10)
    monkeypatch.setattr(changes, "KEPT_CHANGES", 5)
    residents = IndexCache(16)
    lexical, vectors = SqliteLexicalIndex(ledger, residents), SqliteVectorIndex(ledger, residents)
    for n in range(30):
        kb = await put(ledger, make_version(f"d{n % 8}", ("server",), vectors=unit_vectors(1, seed=n)))
        if n % 7 == 0:
            wanted = min(n + 1, 8)
            assert len(await lexical.search("default", kb, "server", 100)) == wanted
            assert len(await vectors.search("default", kb, unit_vectors(1)[0], 100)) == wanted
    async with ledger.file("default") as file:
        (kept,) = await file.read(lambda db: db.execute("SELECT count(*) FROM changes").fetchone())
    assert kept < 20
    assert await ledger.of("default").sequence() == 30 + 22


async def test_what_left_memory_is_read_again(ledger: SqliteLedger) -> None:
    residents = IndexCache(0)
    vectors = SqliteVectorIndex(ledger, residents)
    kbs = [await put(ledger, make_version(kb=name, vectors=unit_vectors(1)), kb=name) for name in ("one", "two")]
    for _ in range(2):
        for kb in kbs:
            assert len(await vectors.search("default", kb, unit_vectors(1)[0], 10)) == 1


@pytest.mark.req("R-STO-20")
async def test_an_index_survives_a_restart(tmp_path: Path) -> None:
    answers = []
    for turn in range(2):
        ledger = SqliteLedger(tmp_path, [Fts5Writer()])
        if turn == 0:
            versions = (
                make_version(f"d{n}", ("server " * n + "map",), vectors=unit_vectors(1, seed=n)) for n in range(9)
            )
            await put(ledger, *versions)
        kb = await ledger.of("default").kb("default")
        assert kb is not None
        lexical = await SqliteLexicalIndex(ledger, IndexCache(16)).search("default", kb, "server", 5)
        dense = await SqliteVectorIndex(ledger, IndexCache(16)).search("default", kb, unit_vectors(1)[0], 5)
        answers.append((lexical, dense))
        await ledger.close()
    assert len(answers[0][0]) == len(answers[0][1]) == 5
    assert answers[0] == answers[1]


@pytest.mark.req("R-DOM-02", "R-STO-23")
async def test_a_kb_scopes_insert_search_and_deletion(ledger: SqliteLedger) -> None:
    residents = IndexCache(16)
    lexical, vectors = SqliteLexicalIndex(ledger, residents), SqliteVectorIndex(ledger, residents)
    near, far = unit_vectors(2)
    kbs = {
        name: await put(ledger, make_version(texts=("server",), vectors=vector[None], kb=name), kb=name)
        for name, vector in (("one", near), ("two", far))
    }
    for name, kb in kbs.items():
        (own,) = await ledger.of("default").document_chunks(make_version(kb=name).document_id)
        (by_vector,) = await vectors.search("default", kb, near, 10)
        (by_word,) = await lexical.search("default", kb, "server", 10)
        assert by_vector.chunk_id == by_word.chunk_id == own.id
        assert by_vector.score == pytest.approx(float(near @ (near if name == "one" else far)), abs=1e-3)
    async with ledger.transaction("default") as transaction:
        assert await transaction.delete_kb("one") == 1
    assert await vectors.search("default", kbs["one"], near, 10) == []
    assert await lexical.search("default", kbs["one"], "server", 10) == []
    assert len(await vectors.search("default", kbs["two"], near, 10)) == 1
    assert len(await lexical.search("default", kbs["two"], "server", 10)) == 1


async def test_a_kb_is_deleted_without_taking_out_its_chunks_one_by_one(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(ledger, make_version("a", ("server",)))
    taken_out: list[object] = []
    monkeypatch.setattr(Fts5Writer, "remove", lambda *_: taken_out.append(_))
    async with ledger.transaction("default") as transaction:
        assert await transaction.delete_kb("default") == 1
    assert taken_out == []


@pytest.mark.req("R-TEN-03")
async def test_each_tenant_has_a_file_of_its_own(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    paths = {}
    for tenant in ("one", "two"):
        await put(ledger, make_version(texts=(f"canary of {tenant}",), tenant=tenant), tenant=tenant)
        async with ledger.file(tenant) as file:
            paths[tenant] = file.path
    await ledger.close()
    assert paths["one"].parent != paths["two"].parent
    for tenant, path in paths.items():
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT content FROM chunks").fetchall() == [(f"canary of {tenant}",)]


@pytest.mark.req("R-TEN-06")
def test_every_row_names_its_tenant() -> None:
    for schema in ("tenant", "log"):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            create(connection, schema)
            for table in list_tables(schema):
                columns = connection.execute('SELECT name FROM pragma_table_info(?) WHERE "notnull"', (table,))
                assert ("tenant_id",) in columns.fetchall(), table


async def test_a_file_that_was_closed_and_opened_again_is_not_taken_for_unchanged(tmp_path: Path) -> None:
    ledger, other = (SqliteLedger(tmp_path, [Fts5Writer()], open_tenants=1) for _ in range(2))
    vectors = SqliteVectorIndex(ledger, IndexCache(16))
    kb = await put(ledger, make_version("first", vectors=unit_vectors(1)))
    there = 1
    for writes in range(5):
        assert len(await vectors.search("default", kb, unit_vectors(1)[0], 100)) == there
        await put(ledger, make_version("x", tenant="second"), tenant="second")  # the first file has to make room
        await ledger.of("default").kb("default")
        for n in range(writes):
            await put(other, make_version(f"{writes}.{n}", vectors=unit_vectors(1, seed=n)))
        there += writes
    assert len(await vectors.search("default", kb, unit_vectors(1)[0], 100)) == there
    await ledger.close()
    await other.close()


async def test_a_search_that_reads_nothing_from_disk_keeps_its_tenant_open(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()], open_tenants=2)
    vectors = SqliteVectorIndex(ledger, IndexCache(16))
    query = unit_vectors(1, seed=9)[0]
    kbs = {
        name: await put(ledger, make_version(tenant=name, vectors=unit_vectors(1)), tenant=name)
        for name in ("searched", "idle")
    }
    for name in ("searched", "idle", "searched"):  # the last time from memory
        assert len(await vectors.search(name, kbs[name], query, 10)) == 1
    await put(ledger, make_version(tenant="third"), tenant="third")
    assert ledger.at_hand("searched") is not None
    assert ledger.at_hand("idle") is None
    await ledger.close()


async def test_what_another_process_deletes_is_not_found_the_short_way(tmp_path: Path) -> None:
    ledger, other = (SqliteLedger(tmp_path, [Fts5Writer()]) for _ in range(2))
    vectors = SqliteVectorIndex(ledger, IndexCache(16))
    query = unit_vectors(1, seed=9)[0]
    kb = await put(ledger, *(make_version(f"d{n}", vectors=unit_vectors(1, seed=n)) for n in range(3)))
    for left in (3, 2, 1, 0):
        for _ in range(2):  # the second time from memory
            assert len(await vectors.search("default", kb, query, 10)) == left
        if left:
            await delete(other, make_version(f"d{left - 1}").document_id)
    await ledger.close()
    await other.close()

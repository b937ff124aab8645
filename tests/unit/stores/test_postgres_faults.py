"""What goes wrong with a database: told in Ragstone's words, nothing half written, usable again afterwards."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import make_conninfo
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server
from tests.conformance.suites.queues import T, document_job
from tests.conformance.suites.queues import put as enqueue
from tests.warm import warm_python

from ragstone.core.errors import (
    InputError,
    NotFoundError,
    QuotaExceeded,
    SettingsError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
)
from ragstone.core.tenants import Quotas
from ragstone.core.types import KnowledgeBase
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.postgres import session as postgres_session
from ragstone.stores.ledger.postgres.errors import translate_errors
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.postgres.pool import ConnectionThread
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.lexical import bm25
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import delete, make_version, put, unit_vectors

postgres_databases = postgres_server.postgres_databases
WRITE_AND_WAIT = """
import asyncio, sys
from pathlib import Path
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.testing.builders import make_version, put

async def main():
    ledger = PostgresLedger(sys.argv[1], Path(sys.argv[2]))
    kb = await put(ledger, make_version("acknowledged"))
    async with ledger.transaction("default") as transaction:
        version = make_version("half", ["some words"] * 50)
        number = await transaction.stage(kb, version)
        await transaction.activate(kb, version.document_id, number)
        print("inside", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""
CLAIM_ALL = """
import asyncio, sys
from pathlib import Path
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.queue import SqlQueue
from tests.conformance.suites.queues import take

async def main():
    ledger = PostgresLedger(sys.argv[1], Path(sys.argv[2]))
    queue = SqlQueue(ledger)
    print("ready", flush=True)
    sys.stdin.readline()
    while jobs := await take(queue, most=3):
        print(*(job.id for job in jobs), flush=True)
    await ledger.close()

asyncio.run(main())
"""


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return server(18).database(tmp_path)


@pytest.fixture
async def ledger(dsn: str, tmp_path: Path) -> AsyncIterator[PostgresLedger]:
    opened = PostgresLedger(dsn, tmp_path)
    yield opened
    await opened.close()


async def external_ids(ledger: PostgresLedger, tenant: str = "default") -> list[str]:
    kb = await ledger.of(tenant).kb("default")
    assert kb is not None
    return sorted(one.external_id for one in await ledger.of(tenant).documents(kb))


def start(python: Sequence[str], script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*python, "-c", script, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


async def test_a_task_cancelled_between_writes_leaves_nothing(ledger: PostgresLedger) -> None:
    kb = await put(ledger, make_version("kept"))
    reached = asyncio.Event()

    async def interrupted() -> None:
        async with ledger.transaction("default") as transaction:
            version = make_version("lost")
            number = await transaction.stage(kb, version)
            await transaction.activate(kb, version.document_id, number)
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(interrupted())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


@pytest.mark.parametrize("steps", range(0, 24, 2))
async def test_a_task_cancelled_at_any_step_leaves_all_or_nothing(ledger: PostgresLedger, steps: int) -> None:
    await put(ledger, make_version("kept"))
    task = asyncio.create_task(put(ledger, make_version("perhaps", ("one", "two"))))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) in (["kept", "next"], ["kept", "next", "perhaps"])
    orphans = (
        "SELECT count(*) FROM chunks c LEFT JOIN documents d ON d.id = c.document_id AND d.version = c.version "
        "WHERE d.id IS NULL"
    )
    assert await ledger.read("default", lambda db, _: db.execute(orphans).fetchone()) == (0,)


async def test_many_cancelled_reads_take_no_connection_for_good(ledger: PostgresLedger) -> None:
    await put(ledger, make_version("kept"))
    for _ in range(3):
        tasks = [asyncio.create_task(ledger.of("default").sequence()) for _ in range(30)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert await asyncio.gather(*(ledger.of("default").sequence() for _ in range(30))) == [1] * 30


async def begin_endless_read(ledger: PostgresLedger) -> asyncio.Task[None]:
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def read_endlessly(connection: Connection, _: str) -> None:
        loop.call_soon_threadsafe(begun.set)
        connection.execute("SELECT pg_sleep(300)")

    task = asyncio.create_task(ledger.read("default", read_endlessly))
    await begun.wait()
    return task


async def test_a_read_that_nobody_waits_for_ends_on_the_server_and_frees_its_connection(
    dsn: str, tmp_path: Path
) -> None:
    ledger = PostgresLedger(dsn, tmp_path, pool_size=2)  # one of them reads
    await put(ledger, make_version("kept"))
    task = await begin_endless_read(ledger)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(240):
        assert await external_ids(ledger) == ["kept"]
    await ledger.close()


async def test_postings_that_are_being_loaded_are_loaded_although_their_search_is_out_of_time(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each search would begin anew, and none would ever come to the end."""
    kb = await put(ledger, make_version("a", ["some words"]))
    index, go_on, loop = ResidentBm25Index(ledger, IndexCache(1)), threading.Event(), asyncio.get_running_loop()
    begun = asyncio.Event()
    loads, load_terms = [], bm25._load_terms

    def load_slowly(*given: Any) -> None:
        loads.append(given)
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(240)
        load_terms(*given)

    monkeypatch.setattr(bm25, "_load_terms", load_slowly)
    monkeypatch.setattr(ConnectionThread, "abandon", lambda _: pytest.fail("the load was given up"))
    task = asyncio.create_task(index.search("default", kb, "words", 5))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert len(await index.search("default", kb, "words", 5)) == 1
    assert len(loads) == 1


async def test_no_more_vectors_are_in_memory_than_are_compared_at_once(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = unit_vectors(9)
    kb = await put(ledger, make_version("a", [f"chunk {n}" for n in range(9)], vectors=vectors))
    fetched: list[int] = []
    stack = np.stack

    def count_and_stack(rows: list[Any]) -> Any:
        fetched.append(len(rows))
        return stack(rows)

    monkeypatch.setattr(index_feed, "SCANNED_TOGETHER", 4)
    monkeypatch.setattr(index_feed.np, "stack", count_and_stack)
    monkeypatch.setattr(psycopg.Cursor, "fetchmany", lambda *_: pytest.fail("all rows have come already"))
    found = await ledger.read("default", index_feed.nearest, kb, kb.space, vectors[8], 3, None)
    chunks = await ledger.of("default").document_chunks(make_version("a").document_id)
    best = np.argsort(-(vectors @ vectors[8]))[:3]
    assert [hit.chunk_id for hit in found] == [chunks[row].id for row in best]
    assert fetched == [4, 4, 1]


async def test_whoever_writes_may_read_however_many_do(dsn: str, tmp_path: Path) -> None:
    ledger = PostgresLedger(dsn, tmp_path, pool_size=2)

    async def write(tenant: str) -> list[str]:
        async with ledger.transaction(tenant) as transaction:
            await transaction.open_kb("default")
            await ledger.of(tenant).kbs()
        return [kb.name for kb in await ledger.of(tenant).kbs()]

    assert await asyncio.gather(*(write(f"t{n}") for n in range(8))) == [["default"]] * 8
    await ledger.close()


async def test_a_transaction_that_went_wrong_cannot_be_committed(ledger: PostgresLedger) -> None:
    kb = await put(ledger, make_version("kept"))

    async def swallow() -> None:
        async with ledger.transaction("default") as transaction:
            number = await transaction.stage(kb, make_version("lost"))
            await transaction.activate(kb, make_version("lost").document_id, number)
            with pytest.raises(StoreError):
                await transaction.stage(KnowledgeBase(kb.id, kb.name, None), _broken())

    with pytest.raises(StoreError, match="undone by an earlier failure"):
        await swallow()
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


def _broken() -> Any:
    """A version with two chunks in one place."""
    from dataclasses import replace

    version = make_version("broken", ("one", "two"))
    return replace(version, chunks=(version.chunks[0], version.chunks[0]))


async def test_a_writer_killed_in_the_middle_leaves_nothing_half_visible(
    ledger: PostgresLedger, dsn: str, tmp_path: Path
) -> None:
    child = start([sys.executable], WRITE_AND_WAIT, dsn, tmp_path)
    assert await asyncio.to_thread(read_line, child) == "inside"
    assert await external_ids(ledger) == ["acknowledged"]
    child.kill()
    child.communicate()
    await put(ledger, make_version("next"))  # the lock went with the writer
    assert await external_ids(ledger) == ["acknowledged", "next"]


async def test_processes_claim_without_taking_the_same_job(ledger: PostgresLedger, dsn: str, tmp_path: Path) -> None:
    queued = await enqueue(ledger, *(document_job(str(n)) for n in range(50)))
    children = [start(warm_python(), CLAIM_ALL, dsn, tmp_path) for _ in range(4)]
    for child in children:
        assert await asyncio.to_thread(read_line, child) == "ready"
    outputs = await asyncio.gather(*(asyncio.to_thread(child.communicate, "go\n") for child in children))
    taken = [identity for out, _ in outputs for identity in out.split()]
    assert sorted(taken) == sorted(job.id for job in queued)
    assert await SqlQueue(ledger).of(T).counts() == {"running": 50}


async def test_the_feed_follows_the_commits_of_each_tenant(dsn: str, tmp_path: Path) -> None:
    ledgers = [PostgresLedger(dsn, tmp_path, pool_size=4) for _ in range(2)]
    tenants = ("one", "two")
    seen: dict[str, list[int]] = {name: [] for name in tenants}
    done = asyncio.Event()

    async def watch(tenant: str) -> None:
        while not done.is_set():
            rows = await ledgers[0].read(tenant, _feed)
            numbers = [number for (number,) in rows]
            assert numbers == list(range(1, len(numbers) + 1)), "a number appeared behind a later one"
            seen[tenant].append(len(numbers))

    for name in tenants:
        await put(ledgers[0], make_version("first", tenant=name), tenant=name)
    watching = [asyncio.create_task(watch(name)) for name in tenants]
    await asyncio.gather(
        *(
            put(ledgers[n % 2], make_version(f"d{n}", ("one", "two"), tenant=name), tenant=name)
            for n in range(12)
            for name in tenants
        )
    )
    done.set()
    await asyncio.gather(*watching)
    for name in tenants:
        assert len(await ledgers[0].read(name, _feed)) == 25
        assert seen[name] == sorted(seen[name])
    for ledger in ledgers:
        await ledger.close()


def _feed(connection: Connection, tenant_id: str) -> list[Any]:
    return connection.execute("SELECT seq FROM changes WHERE tenant_id = ? ORDER BY seq", (tenant_id,)).fetchall()


async def test_a_connection_that_the_server_dropped_is_replaced(ledger: PostgresLedger, tmp_path: Path) -> None:
    await put(ledger, make_version("before"))
    await asyncio.gather(*(ledger.of("default").sequence() for _ in range(8)))
    name = server(18).name_of(tmp_path)
    with psycopg.connect(server(18).admin(), autocommit=True) as admin:
        dropped = admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,)
        ).fetchall()
    assert len(dropped) > 1
    assert await external_ids(ledger) == ["before"]
    await put(ledger, make_version("after"))
    assert await external_ids(ledger) == ["after", "before"]


async def test_a_connection_dropped_inside_a_transaction_undoes_it(ledger: PostgresLedger, tmp_path: Path) -> None:
    kb = await put(ledger, make_version("kept"))

    async def cut_off() -> None:
        async with ledger.transaction("default") as transaction:
            await transaction.stage(kb, make_version("lost"))
            with psycopg.connect(server(18).admin(), autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                    (server(18).name_of(tmp_path),),
                )
            await transaction.stage(kb, make_version("lost too"))

    with pytest.raises(StoreError) as raised:
        await cut_off()
    assert raised.value.retryable
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


async def test_a_tenant_that_another_process_writes_for_is_busy(
    ledger: PostgresLedger, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(ledger, make_version("kept"))
    await put(ledger, make_version(tenant="other"), tenant="other")
    monkeypatch.setitem(postgres_session.LIMITS, "lock_timeout", "50ms")
    hasty = PostgresLedger(dsn, tmp_path)
    async with ledger.transaction("default") as transaction:
        await transaction.open_kb("default")
        with pytest.raises(StoreBusy) as raised:
            await put(hasty, make_version("next"))
        assert raised.value.retryable
        assert raised.value.hint
        assert await external_ids(hasty) == ["kept"]
        await put(hasty, make_version(tenant="other"), tenant="other")
    await put(hasty, make_version("next"))
    assert await external_ids(hasty) == ["kept", "next"]
    await hasty.close()


async def test_what_runs_outside_of_transactions_leaves_nothing_behind(ledger: PostgresLedger) -> None:
    await put(ledger, make_version())

    def build(connection: Connection, tenant_id: str) -> Any:
        connection.execute(f"CREATE INDEX CONCURRENTLY mine ON chunks_{tenant_id} (page)")
        return connection.execute("SELECT count(*) FROM chunks").fetchone()

    assert await ledger.outside("default", build) == (1,)
    with pytest.raises(NotFoundError):
        await ledger.outside("nobody", build)

    def left(connection: Connection) -> Any:
        return connection.execute("SELECT current_setting('ragstone.tenant', true)").fetchone()

    assert await ledger.control_write(left) == ("",)


async def test_what_postgres_cannot_keep_becomes_another_character(ledger: PostgresLedger) -> None:
    version = make_version("a\x00b", ("one\x00two \ud800 three",), metadata={"x\x00y".replace("\x00", "_"): "\x00"})
    kb = await put(ledger, version)
    (chunk,) = await ledger.of("default").document_chunks(version.document_id)
    assert chunk.chunk.text == "one\ufffdtwo ? three"
    assert chunk.metadata == {"x_y": "\ufffd"}
    assert chunk.chunk.end == len(chunk.chunk.text)
    assert await ledger.of("default").text(version.document_id) == chunk.chunk.text
    async with ledger.transaction("default") as tx:
        assert await tx.identify(kb, "test", "a\x00b") == version.document_id
    await put(ledger, version)
    assert (await ledger.of("default").stats(kb)).documents == 1
    assert await ledger.of("default").kb("no\x00ne") is None


async def test_a_vector_of_any_dimension_is_kept(ledger: PostgresLedger) -> None:
    for dimension in (1, 3, 1536, 4096, 9000):
        name = f"kb{dimension}"
        vectors = unit_vectors(2, dimension)
        kb = await put(ledger, make_version(texts=("a", "b"), vectors=vectors, kb=name), kb=name)
        known = await ledger.of("default").known_vectors(kb, ["a", "b"])
        assert abs(known["b"] - vectors[1]).max() < 1e-3


async def test_a_deleted_tenant_leaves_nothing_and_its_name_is_free(
    ledger: PostgresLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.stores.control.tenant_rows.REST_SECONDS", 0)
    book = SqlTenantBook(ledger)
    for name in ("one", "two"):
        await put(ledger, make_version(tenant=name, vectors=unit_vectors(1)), tenant=name)
        await ledger.of(name).keep_originals([("ab", b"original")])
    tenant_id = (await book.delete("one")).id
    with psycopg.connect(server(18).admin(server(18).name_of(tmp_path))) as admin:
        assert admin.execute("SELECT relname FROM pg_class WHERE relname LIKE %s", (f"%{tenant_id}%",)).fetchall() == []
        for (table,) in admin.execute(
            "SELECT table_name FROM information_schema.columns "
            "WHERE table_schema = 'ragstone' AND column_name = 'tenant_id'"
        ).fetchall():
            # The audit record says that it was made, and that its deletion began and ended.
            left = 3 if table == "audit" else 0
            assert admin.execute(
                f"SELECT count(*) FROM ragstone.{table} WHERE tenant_id = %s", (tenant_id,)
            ).fetchone() == (left,)
    assert not (tmp_path / "documents" / tenant_id).exists()
    assert await ledger.of("one").kb("default") is None
    assert await external_ids(ledger, "two") == ["a"]
    await put(ledger, make_version("new", tenant="one"), tenant="one")
    assert await external_ids(ledger, "one") == ["new"]
    assert await delete(ledger, make_version("new", tenant="one").document_id, tenant="one")


async def test_twenty_that_race_for_the_last_unit(dsn: str, tmp_path: Path) -> None:
    ledgers = [PostgresLedger(dsn, tmp_path, pool_size=4) for _ in range(2)]
    books = [SqlTenantBook(ledger) for ledger in ledgers]
    await books[0].create("acme", Quotas(documents=1))
    tries = await asyncio.gather(
        *(books[n % 2].reserve("acme", {"documents": 1}) for n in range(20)), return_exceptions=True
    )
    assert sum(isinstance(one, QuotaExceeded) for one in tries) == 19
    for ledger in ledgers:
        await ledger.close()


SECRET = "hunter2-secret"


@pytest.mark.parametrize(
    ("dsn", "error", "hint"),
    [
        (f"postgresql://u:{SECRET}@127.0.0.1:1/x", StoreError, "runs"),
        (f"host=127.0.0.1 port=1 password={SECRET}", StoreError, "runs"),
        (f"postgresql+psycopg://u:{SECRET}@127.0.0.1/x", SettingsError, "postgresql://"),
        (f"postgresql://u:{SECRET}@[bad/x", SettingsError, "postgresql://"),
        (SECRET, SettingsError, "postgresql://"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_told_without_the_password(
    dsn: str, error: type[StoreError], hint: str, tmp_path: Path
) -> None:
    async def use() -> None:
        await PostgresLedger(dsn, tmp_path).work_signals()

    with pytest.raises(error) as raised:
        await use()
    assert hint in raised.value.hint
    shown: BaseException | None = raised.value
    while shown:
        assert SECRET not in f"{shown} {shown!r}"
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


@pytest.mark.parametrize(("change", "hint"), [({"dbname": "nowhere"}, "CREATE DATABASE"), ({"user": "nobody"}, "role")])
async def test_a_server_that_lets_nobody_in_is_not_tried_again(
    dsn: str, tmp_path: Path, change: dict[str, str], hint: str
) -> None:
    ledger = PostgresLedger(make_conninfo(dsn, **change), tmp_path)
    with pytest.raises(StoreError) as raised:
        await ledger.work_signals()
    assert hint in raised.value.hint
    assert not raised.value.retryable
    await ledger.close()


@pytest.mark.parametrize(
    ("error", "wanted", "retryable"),
    [
        (errors.LockNotAvailable(), StoreBusy, True),
        (errors.QueryCanceled(), StoreBusy, True),
        (errors.SerializationFailure(), StoreBusy, True),
        (errors.DeadlockDetected(), StoreBusy, True),
        (errors.TooManyConnections(), StoreBusy, True),
        (errors.DiskFull(), StoreFull, True),
        (errors.DataCorrupted(), StoreCorrupt, False),
        (errors.AdminShutdown(), StoreError, True),
        (errors.IdleInTransactionSessionTimeout(), StoreError, True),
        (errors.ReadOnlySqlTransaction(), StoreError, False),
        (errors.InsufficientPrivilege(), StoreError, False),
        (errors.UniqueViolation(), StoreError, False),
        (psycopg.OperationalError("the connection is lost"), StoreError, True),
        (InputError("already ours"), InputError, False),
    ],
)
def test_errors_are_translated(error: Exception, wanted: type[StoreError], retryable: bool) -> None:
    with pytest.raises(wanted) as raised, translate_errors("the database"):
        raise error
    assert type(raised.value) is wanted
    assert raised.value.retryable is retryable
    assert raised.value is error or raised.value.__cause__ is error

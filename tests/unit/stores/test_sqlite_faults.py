"""What goes wrong with a file: told in Ragstone's words, nothing half written, usable again afterwards."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragstone.core.errors import (
    InputError,
    KbGone,
    NotFoundError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from ragstone.core.jobs import NewJob, Priority
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite import file as sqlite_file
from ragstone.stores.ledger.sqlite.file import translate_errors
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.testing.builders import delete, make_version, put, unit_vectors


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path, [Fts5Writer()])
    yield opened
    await opened.close()


async def tenant_path(ledger: SqliteLedger) -> Path:
    async with ledger.file("default") as file:
        return file.path


async def external_ids(ledger: SqliteLedger) -> list[str]:
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    return sorted(one.external_id for one in await ledger.of("default").documents(kb))


async def test_a_write_that_fails_when_nobody_waits_any_more_is_logged(
    ledger: SqliteLedger, caplog: pytest.LogCaptureFixture
) -> None:
    await put(ledger, make_version("kept"))
    begun, go_on = threading.Event(), threading.Event()
    unseen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context["message"]))

    def refused(*_: object) -> None:
        begun.set()
        go_on.wait()
        raise StoreError("no longer yours")

    task = asyncio.create_task(ledger.write("default", refused))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await put(ledger, make_version("next"))
    gc.collect()
    assert unseen == []
    assert "came to nothing: no longer yours" in caplog.text


async def test_a_task_cancelled_between_writes_leaves_nothing(ledger: SqliteLedger) -> None:
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
    assert await external_ids(ledger) == ["kept"]
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


async def test_a_task_cancelled_while_it_waits_for_the_lock_leaves_nothing(ledger: SqliteLedger) -> None:
    await put(ledger, make_version("kept"))
    with closing(sqlite3.connect(await tenant_path(ledger), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(put(ledger, make_version("lost")))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        # Its first write is stuck in the writer's thread; only now can it go on.
        other.execute("ROLLBACK")
    with pytest.raises(asyncio.CancelledError):
        await task
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


@pytest.mark.parametrize("steps", range(12))
async def test_a_task_cancelled_at_any_step_leaves_all_or_nothing(ledger: SqliteLedger, steps: int) -> None:
    await put(ledger, make_version("kept"))
    task = asyncio.create_task(put(ledger, make_version("perhaps", ("one", "two"))))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) in (["kept", "next"], ["kept", "next", "perhaps"])
    with closing(sqlite3.connect(await tenant_path(ledger))) as connection:
        (orphans,) = connection.execute(
            "SELECT count(*) FROM chunks c LEFT JOIN documents d ON d.id = c.document_id AND d.version = c.version "
            "WHERE d.id IS NULL"
        ).fetchone()
    assert orphans == 0


async def test_a_full_disk_is_told_and_passes(ledger: SqliteLedger) -> None:
    kb = await put(ledger, make_version("kept", vectors=unit_vectors(1)))
    lexical = SqliteLexicalIndex(ledger, IndexCache(16))

    def limit(pages: int) -> Callable[[sqlite3.Connection], None]:
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").close()

    big = make_version("big", [f"word{n} " * 50 for n in range(200)], vectors=unit_vectors(200))
    async with ledger.file("default") as file:
        await file.write(limit(1))
        with pytest.raises(StoreFull) as raised:
            await put(ledger, big)
        assert raised.value.retryable
        assert raised.value.hint
        assert await external_ids(ledger) == ["kept"]
        assert len(await lexical.search("default", kb, "words", 10)) == 1
        await file.write(limit(2**31 - 2))
    await put(ledger, big)
    assert await external_ids(ledger) == ["big", "kept"]
    assert await delete(ledger, big.document_id)


async def test_a_transaction_that_went_wrong_cannot_be_committed(ledger: SqliteLedger) -> None:
    kb = await put(ledger, make_version("kept"))

    async def swallow() -> None:
        async with ledger.transaction("default") as transaction:
            number = await transaction.stage(kb, make_version("lost"))
            async with ledger.file("default") as file:
                await file.write(lambda connection: connection.execute("ROLLBACK").close())
            await transaction.activate(kb, make_version("lost").document_id, number)

    with pytest.raises(StoreError):
        await swallow()
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]


async def test_a_file_that_another_process_holds_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    await put(ledger, make_version("kept"))
    with closing(sqlite3.connect(await tenant_path(ledger), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy) as raised:
            await put(ledger, make_version("next"))
        assert raised.value.retryable
        assert raised.value.hint
        assert await external_ids(ledger) == ["kept"]
        other.execute("ROLLBACK")
    await put(ledger, make_version("next"))
    assert await external_ids(ledger) == ["kept", "next"]
    await ledger.close()


async def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "control.db").write_bytes(b"this is not a database" * 100)
    ledger = SqliteLedger(tmp_path)
    with pytest.raises(StoreCorrupt) as raised:
        await ledger.of("default").kb("default")
    assert "backup" in raised.value.hint
    await ledger.close()


async def test_a_page_of_rubbish_is_corrupt(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    await put(ledger, *(make_version(f"d{n}", ["some words"] * 20) for n in range(20)))
    path = await tenant_path(ledger)
    await ledger.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    again = SqliteLedger(tmp_path, [Fts5Writer()])
    with pytest.raises(StoreCorrupt):
        await again.of("default").kb("default")
    await again.close()


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, not a folder")
    ledger = SqliteLedger(tmp_path / "data")
    for work in (put(ledger, make_version()), ledger.of("default").kbs()):
        with pytest.raises(StoreError) as raised:
            await work
        assert str(raised.value) == f"{tmp_path / 'data' / 'control.db'} cannot be used: Not a directory"
        assert raised.value.hint.endswith("set data_dir to another one")
    await ledger.close()


async def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SqliteLedger(tmp_path)

    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        with pytest.raises(StoreError, match=r"control\.db cannot be used: Permission denied"):
            await ledger.of("default").kbs()
    await ledger.close()


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (sqlite3.OperationalError("database is locked"), StoreBusy),
        (sqlite3.OperationalError("database table is locked"), StoreBusy),
        (sqlite3.OperationalError("database or disk is full"), StoreFull),
        (sqlite3.OperationalError("unable to open database file"), StoreError),
        (sqlite3.OperationalError("attempt to write a readonly database"), StoreReadOnly),
        (sqlite3.OperationalError("disk I/O error"), StoreError),
        (sqlite3.DatabaseError("database disk image is malformed"), StoreCorrupt),
        (sqlite3.IntegrityError("UNIQUE constraint failed"), StoreError),
        (OSError(28, "No space left on device"), StoreFull),
        (OSError(30, "Read-only file system"), StoreReadOnly),
        (PermissionError(13, "Permission denied"), StoreError),
        (sqlite3.IntegrityError("FOREIGN KEY constraint failed"), KbGone),
        (InputError("already ours"), InputError),
    ],
)
def test_errors_are_translated(error: Exception, wanted: type[Exception]) -> None:
    with pytest.raises(wanted) as raised, translate_errors(Path("ledger.db")):
        raise error
    assert type(raised.value) is wanted
    assert raised.value is error or raised.value.__cause__ is error


async def test_only_so_many_tenants_stay_open(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()], open_tenants=2)
    for name in ("one", "two", "three", "one"):
        await put(ledger, make_version(tenant=name, texts=(f"of {name}",)), tenant=name)
    async with ledger.file("two"), ledger.file("three"), ledger.file("one"):
        for name in ("one", "two", "three"):
            document = make_version(tenant=name).document_id
            assert await ledger.of(name).text(document) == f"of {name}"
    assert len(list((tmp_path / "tenants").iterdir())) == 3
    await ledger.close()


async def test_reading_makes_no_tenant(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path)
    assert await ledger.of("nobody").kb("default") is None
    assert await ledger.of("nobody").kbs() == []
    assert await ledger.of("nobody").document("0" * 32) is None
    assert list(os.scandir(tmp_path)) == []
    kb = await put(ledger, make_version())
    with pytest.raises(NotFoundError, match="nobody"):
        await ledger.of("nobody").stats(kb)
    with pytest.raises(NotFoundError, match="nobody"):
        await ledger.of("nobody").text(make_version().document_id)
    assert len(list(os.scandir(tmp_path / "tenants"))) == 1
    await ledger.close()


async def test_names_of_files_say_nothing_about_the_tenant(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path)
    await put(ledger, make_version(tenant="acme"), tenant="acme")
    await ledger.close()
    names = [name for _, folders, files in os.walk(tmp_path) for name in (*folders, *files)]
    assert not [name for name in names if "acme" in name]


@pytest.mark.parametrize(
    "work",
    [
        lambda ledger: ledger.of("default").text("doc\ud800"),
        lambda ledger: ledger.of("default").kb("kb\ud800"),
        lambda ledger: ledger.control_read(
            lambda db: db.execute("SELECT 1 FROM tenants WHERE name = ?", ("a\ud800",)).fetchone(), None
        ),
        lambda ledger: ledger.signal_work("a\ud800"),
    ],
)
async def test_half_a_character_is_no_name(
    ledger: SqliteLedger, work: Callable[[SqliteLedger], Awaitable[object]]
) -> None:
    await put(ledger, make_version("kept"))
    with pytest.raises(InputError, match="is no text: it holds half of a surrogate pair"):
        await work(ledger)
    assert await external_ids(ledger) == ["kept"]


async def test_a_file_that_was_closed_meanwhile_says_so(ledger: SqliteLedger) -> None:
    await put(ledger, make_version("kept"))
    async with ledger.file("default") as file:
        file.close()
        with pytest.raises(StoreError, match=r"^ledger\.db is closed$"):
            await file.look_up(str)
        with pytest.raises(StoreError, match=r"^ledger\.db is closed$"):
            await file.transact(str)
        with pytest.raises(StoreError, match=r"^ledger\.db is closed$"):
            file.version()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_a_number_that_json_does_not_have_is_not_stored(ledger: SqliteLedger, number: float) -> None:
    job = NewJob("document", "upload", "x", "x.md", Priority.UPLOAD, "a" * 32, facts={"metadata": {"score": number}})
    with pytest.raises(InputError, match="this cannot be stored"):
        async with ledger.transaction("default") as transaction:
            await transaction.enqueue(await transaction.open_kb("default"), job)
    kb = await put(ledger, make_version("kept"))
    async with ledger.transaction("default") as transaction:
        assert await transaction.delete_kb(kb.name) == 1

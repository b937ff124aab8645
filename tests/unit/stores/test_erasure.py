"""What is erased is nowhere: in no row, no page, no log, no segment of an index, and nobody else loses anything."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ragstone.core.audit import ErasureTarget
from ragstone.core.clock import now
from ragstone.core.errors import StoreBusy
from ragstone.core.jobs import NewJob, Priority
from ragstone.core.types import NewVersion
from ragstone.stores.ledger import erasure, writes
from ragstone.stores.ledger import erasure as erasure_counts
from ragstone.stores.ledger.sources import SqlSourceBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import MODEL, delete, make_version, put, unit_vectors

CANARY = "xylocaneb"


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path, [Fts5Writer()])
    yield opened
    await opened.close()


def secret(number: int = 0, chunks: int = 3) -> NewVersion:
    """A document whose every chunk has words that nothing else has."""
    texts = [f"{CANARY}{number} speaks of part {n} " + "and so on " * 40 for n in range(chunks)]
    return make_version(f"secret{number}", texts, vectors=unit_vectors(chunks, seed=1000 + number))


def ordinary(number: int) -> NewVersion:
    return make_version(
        f"plain{number}",
        [f"harbour {number} word{n} " + "lighthouse " * 30 for n in range(4)],
        vectors=unit_vectors(4, seed=number),
    )


def files_with(folder: Path, words: bytes) -> list[str]:
    """Every file under a folder that has these bytes, as they are or as SQLite's rows keep them."""
    found = [place.name for place in folder.rglob("*") if place.is_file() and words in place.read_bytes()]
    for place in folder.rglob("ledger.db"):
        with closing(sqlite3.connect(place)) as database:
            packed = database.execute("SELECT text FROM versions UNION ALL SELECT terms FROM terms").fetchall()
        found += ["packed" for (blob,) in packed if words in zlib.decompress(blob)]
    return found


def partition_of(folder: Path, name: str) -> Path:
    (place,) = folder.rglob(name)
    return place


@pytest.mark.req("R-SEC-11")
@pytest.mark.parametrize("together", [1, 50], ids=["one by one", "at once"])
@pytest.mark.parametrize("chosen", [0, 24, 49])
async def test_a_canary_is_in_no_byte_of_any_file(
    ledger: SqliteLedger, tmp_path: Path, chosen: int, together: int
) -> None:
    versions = [secret() if number == chosen else ordinary(number) for number in range(50)]
    for start in range(0, 50, together):
        kb = await put(ledger, *versions[start : start + together])
    packed = zlib.compress(versions[chosen].text.encode(), 1)[10:40]
    assert files_with(tmp_path, CANARY.encode())
    assert files_with(tmp_path, packed)
    await delete(ledger, versions[chosen].document_id)
    assert await ledger.scrub("default", [kb.id])
    assert files_with(tmp_path, CANARY.encode()) == []
    assert files_with(tmp_path, packed) == []
    assert (await ledger.of("default").stats(kb)).documents == 49


async def test_no_version_that_was_replaced_is_left_either(ledger: SqliteLedger, tmp_path: Path) -> None:
    for number in range(12):
        kb = await put(ledger, ordinary(number), secret(number))
    for number in range(12):
        await put(
            ledger, replace(ordinary(number), external_id=f"secret{number}", document_id=secret(number).document_id)
        )
    await ledger.scrub("default", [kb.id])
    assert files_with(tmp_path, CANARY.encode()) == []


async def test_scrubbing_leaves_the_index_as_good_as_it_was(ledger: SqliteLedger) -> None:
    kb = await put(ledger, *(ordinary(number) for number in range(30)), secret())
    await delete(ledger, secret().document_id)

    async def matches(word: str) -> int:
        async with ledger.file("default") as file:
            query = f"SELECT count(*) FROM lexical_{kb.id} WHERE lexical_{kb.id} MATCH ?"
            return int(await file.read(lambda db: db.execute(query, (word,)).fetchone()[0]))

    before = await matches("lighthous")
    await ledger.scrub("default", [kb.id])
    assert (before, await matches("lighthous"), await matches("word2")) == (120, 120, 30)


@pytest.mark.req("R-DOM-05")
async def test_a_document_goes_with_every_row_of_it_and_of_what_came_with_it(ledger: SqliteLedger) -> None:
    child = replace(secret(2), parent_id=secret(1).document_id)
    kb = await put(ledger, secret(1), child, ordinary(1))
    job = NewJob("document", "test", "secret1", "u", Priority.UPLOAD, secret(1).document_id, notify=True)
    async with ledger.transaction("default") as tx:
        await tx.enqueue(kb, job)
        await tx.save_part(secret(1).document_id, "x", "y", b"z")
    async with ledger.transaction("default") as tx:
        erased = await tx.erase(ErasureTarget("document", secret(1).document_id))
    assert erased is not None
    expected = {"documents": 2, "versions": 2, "chunks": 6, "terms": 6, "vectors": 6, "postings": 6}
    assert {name: erased.rows[name] for name in expected} == expected
    assert (erased.rows["jobs"], erased.rows["checkpoints"]) == (1, 1)
    left = await ledger.read("default", erasure_counts.count, erased.traces)
    assert set(left.values()) == {0}
    assert (await ledger.of("default").stats(kb)).documents == 1


def _tell_of_jobs(connection: Connection, tenant_id: str) -> None:
    """Write a notice of each job, as its end does."""
    connection.execute(
        "INSERT INTO notices (tenant_id, kind, job_id, document_id, uri, message, created_at, seen, sent) "
        "SELECT tenant_id, 'failed', id, '', uri, 'no answer', '2026-01-01', 0, 0 FROM jobs WHERE tenant_id = ?",
        (tenant_id,),
    )


async def test_a_source_goes_at_once_with_its_jobs_and_notices(ledger: SqliteLedger) -> None:
    kb = await put(ledger, secret(1), secret(2), replace(ordinary(1), source="other"))
    book = SqlSourceBook(ledger)
    await book.of("default").add(kb, "test", "web", {"urls": []}, "manual", None)
    async with ledger.transaction("default") as tx:
        await tx.enqueue(kb, NewJob("sync", "test", "test", "source:test", Priority.SYNC, notify=True))
    await ledger.write("default", _tell_of_jobs)
    async with ledger.transaction("default") as tx:
        erased = await tx.erase(ErasureTarget("source", "test", "default"))
    assert erased is not None
    assert (erased.rows["documents"], erased.rows["jobs"], erased.rows["sources"]) == (2, 1, 1)
    assert erased.rows["notices"] == 1
    assert set((await ledger.read("default", erasure_counts.count, erased.traces)).values()) == {0}
    assert await book.of("default").all() == []
    assert [one.source for one in await ledger.of("default").documents(kb)] == ["other"]


@pytest.mark.parametrize(
    "target",
    [
        ErasureTarget("document", secret().document_id),
        ErasureTarget("source", "test", "default"),
        ErasureTarget("kb", "default"),
    ],
)
async def test_parts_of_what_was_never_stored_are_erased_and_counted(
    ledger: SqliteLedger, target: ErasureTarget
) -> None:
    await put(ledger, secret(), replace(ordinary(1), source="other"))
    async with ledger.transaction("default") as tx:
        for part in ("pages:1", "pages:51"):
            await tx.save_part("never" * 6, "recipe", part, b"text")
        await tx.save_part(ordinary(1).document_id, "recipe", "pages:1", b"text")
    async with ledger.transaction("default") as tx:
        erased = await tx.erase(target)
    assert erased is not None
    assert erased.rows["checkpoints"] == (3 if target.kind == "kb" else 2)
    assert set((await ledger.read("default", erasure_counts.count, erased.traces)).values()) == {0}
    async with ledger.transaction("default") as tx:
        await tx.save_part("never" * 6, "recipe", "pages:101", b"text")  # by a run that goes on, of something else
        await tx.save_part("never" * 6, "recipe", "pages:51", b"text")
    assert (await ledger.read("default", erasure_counts.count, erased.traces))["checkpoints"] == 1


@pytest.mark.parametrize(
    "target",
    [
        ErasureTarget("document", "0" * 32),
        ErasureTarget("document", "../../etc/passwd"),
        ErasureTarget("document", ""),
        ErasureTarget("source", "nobody", "default"),
        ErasureTarget("source", "", "default"),
        ErasureTarget("kb", "nobody"),
        ErasureTarget("kb", "'; DROP TABLE documents; --"),
    ],
)
async def test_what_is_not_there_takes_nothing_along(ledger: SqliteLedger, target: ErasureTarget) -> None:
    kb = await put(ledger, ordinary(1))
    async with ledger.transaction("default") as tx:
        assert await tx.erase(target) is None
    assert (await ledger.of("default").stats(kb)).documents == 1


async def test_a_kb_goes_with_its_spaces_and_no_other_kb_s(ledger: SqliteLedger) -> None:
    await put(ledger, secret(1), kb="gone")
    await put(ledger, make_version("b", kb="kept"), kb="kept")
    async with ledger.transaction("default") as tx:
        erased = await tx.erase(ErasureTarget("kb", "gone"))
    assert erased is not None
    assert (erased.rows["knowledge_bases"], erased.rows["spaces"], erased.rows["chunks"]) == (1, 1, 3)
    assert erased.traces.chunk_ids == frozenset()
    assert set((await ledger.read("default", erasure_counts.count, erased.traces)).values()) == {0}
    assert [kb.name for kb in await ledger.of("default").kbs()] == ["kept"]


async def test_a_log_that_is_being_read_is_said_to_be_left(ledger: SqliteLedger) -> None:
    kb = await put(ledger, secret())
    async with ledger.file("default") as file:
        await file.write(lambda db: db.execute("PRAGMA busy_timeout = 0").fetchall())
        with closing(sqlite3.connect(file.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM documents").fetchone()
            await delete(ledger, secret().document_id)
            with pytest.raises(StoreBusy, match="log cannot be emptied"):
                await ledger.scrub("default", [kb.id])


async def stage(ledger: SqliteLedger, version: NewVersion, *, age: timedelta) -> int:
    """Stage a version as somebody did who has died since."""
    async with ledger.transaction("default") as tx:
        kb = await tx.open_kb("default")
        assert version.vectors is not None
        kb = await tx.open_space(kb, MODEL, version.vectors.shape[1])
        number = await tx.stage(kb, version)
    moment = (now() - age).isoformat(timespec="seconds")
    await ledger.write(
        "default",
        lambda connection, _: connection.execute(
            "UPDATE versions SET created_at = ? WHERE document_id = ? AND version = ?",
            (moment, version.document_id, number),
        ),
    )
    return number


async def staged(ledger: SqliteLedger) -> int:
    return len(await ledger.read("default", writes.staged_leftovers, now()))


async def test_what_a_crash_left_staged_is_swept_and_what_is_live_stays(ledger: SqliteLedger) -> None:
    kb = await put(ledger, ordinary(1))
    await stage(ledger, ordinary(1), age=timedelta(hours=2))
    await stage(ledger, secret(), age=timedelta(hours=2))
    assert await staged(ledger) == 2
    await ledger.clean_up("default")
    assert await staged(ledger) == 0
    rows = await ledger.read("default", erasure_counts.count_tenant)
    assert (rows["documents"], rows["versions"], rows["chunks"], rows["vectors"]) == (1, 1, 4, 4)
    assert (await ledger.of("default").stats(kb)).documents == 1


async def test_what_somebody_works_on_is_not_swept(ledger: SqliteLedger) -> None:
    await stage(ledger, secret(1), age=timedelta(minutes=30))
    await stage(ledger, secret(2), age=timedelta(hours=2))
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    async with ledger.transaction("default") as tx:
        await tx.enqueue(kb, NewJob("document", "test", "secret2", "u", Priority.UPLOAD, secret(2).document_id))
    await ledger.clean_up("default")
    assert (await ledger.read("default", erasure_counts.count_tenant))["versions"] == 2


async def test_only_files_of_what_is_named_are_swept(ledger: SqliteLedger, tmp_path: Path) -> None:
    await put(ledger, ordinary(1))
    blobs = await ledger.blobs("default", make=True)
    old = time.time() - 7200
    for document_id in ("a" * 32, "b" * 32):
        name = await asyncio.to_thread(blobs.put, document_id, b"left behind")
        os.utime(partition_of(tmp_path, name), (old, old))
    await ledger.clean_up("default", ["a" * 32, "c" * 32])
    assert (blobs.names("a" * 32), len(blobs.names("b" * 32))) == ([], 1)
    await ledger.clean_up("default")
    assert blobs.names("b" * 32) == []


async def test_samples_are_what_somebody_might_search_for(ledger: SqliteLedger) -> None:
    await put(ledger, secret(chunks=50))
    traces = await ledger.read("default", erasure.survey, ErasureTarget("document", secret().document_id))
    assert traces is not None
    assert len(traces.samples) == 3
    assert all(sample.text.startswith(CANARY) and sample.vector is not None for sample in traces.samples)

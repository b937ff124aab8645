"""Original files count against a tenant's bytes, on every ledger: from the upload on until they are gone."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server

from ragstone import Engine, Settings, open_engine
from ragstone.core.errors import QuotaExceeded
from ragstone.core.jobs import DocumentStatus
from ragstone.core.tenants import Quotas, Usage
from ragstone.stores.factory import open_stores
from ragstone.stores.health.check import examine
from ragstone.stores.ledger import jobs as job_rows
from ragstone.testing.fakes import FakeEmbedder

postgres_databases = postgres_server.postgres_databases
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    fake = FakeEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    given: dict[str, Any] = {"data_dir": tmp_path / "data", "jobs": {"retry_seconds": 0}}
    if request.param == "postgres":
        dsn = postgres_server.server(18).database(tmp_path)
        given["store"] = {"ledger": {"kind": "postgres", "dsn": dsn}, "vectors": "pgvector", "lexical": "postgres"}
    return Settings.model_validate(given)


@pytest.fixture
async def engine(settings: Settings, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(settings) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def upload(engine: Engine, text: bytes, name: str = "a.txt", **options: Any) -> DocumentStatus:
    return await engine.workspace("acme").documents.upload(text, name, **options)


async def used(engine: Engine) -> Usage:
    return await engine.tenants.usage("acme")


def on_disk(settings: Settings) -> int:
    return sum(path.stat().st_size for path in (settings.data_dir / "documents").rglob("*") if path.is_file())


@pytest.mark.req("R-TEN-12")
async def test_an_original_counts_from_its_upload_until_it_is_deleted(engine: Engine, settings: Settings) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    text = b"The ferry leaves at nine. " * 40
    taken = await upload(engine, text)
    waiting = await used(engine)
    # The file, and room for its text.
    assert (waiting.queued.bytes, waiting.stock.bytes, waiting.stock.originals) == (2 * len(text), 0, 0)
    await work(engine)
    after = await used(engine)
    assert (after.queued.bytes, after.stock.originals) == (0, len(text))
    assert after.stock.originals == on_disk(settings)
    assert after.stock.bytes > len(text)  # its own text counts besides
    assert await engine.workspace("acme").documents.delete(taken.document_id)
    gone = await used(engine)
    assert (gone.stock.bytes, gone.stock.originals, on_disk(settings)) == (0, 0, 0)


@pytest.mark.req("R-TEN-12")
async def test_what_would_not_fit_beside_the_originals_is_refused_before_it_is_written(
    engine: Engine, settings: Settings
) -> None:
    await engine.tenants.create("acme", Quotas(bytes=2_000))
    await upload(engine, b"a" * 600)
    with pytest.raises(QuotaExceeded, match="may have 2,000 bytes and has 1,200: 1,200 more do not fit"):
        await upload(engine, b"b" * 600, "b.txt")
    await work(engine)
    with pytest.raises(QuotaExceeded, match="1,400 more do not fit"):
        await upload(engine, b"b" * 700, "b.txt")
    assert on_disk(settings) == 600
    assert (await used(engine)).reserved == {}


async def test_text_that_is_longer_than_its_file_has_to_fit_beside_it(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(bytes=1_000))
    taken = await upload(engine, "\xe9t\xe9 ".encode("latin-1") * 112)
    await work(engine)
    failed = await engine.workspace("acme").documents.status(taken.document_id)
    assert failed.processing_error.startswith("a.txt: tenant 'acme' may have 1,000 bytes and has 448: ")
    # It can be tried again, so it is still there, and counted.
    assert (await used(engine)).stock.originals == 448


@pytest.mark.req("R-TEN-12")
async def test_what_was_let_in_can_be_finished(engine: Engine, settings: Settings) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    refused = 0
    for number in range(5):
        try:
            await upload(engine, f"{number} ".encode() * 1_000, f"{number}.txt")
        except QuotaExceeded:
            refused += 1
    assert refused == 3
    await work(engine)
    states = [job.state for job in await engine.workspace("acme").jobs.list()]
    assert states == ["completed"] * 2
    assert (await used(engine)).stock.originals == 4_000 == on_disk(settings)


@pytest.mark.req("R-TEN-12")
async def test_versions_that_a_newer_one_took_the_place_of_count_no_more(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    for number in range(5):
        await upload(engine, f"v{number} ".encode() * 600, external_id="plan")
        assert (await used(engine)).stock.originals == 0
    await work(engine)
    newest, *others = await engine.workspace("acme").jobs.list()
    assert newest.state == "completed"
    assert {job.error_code for job in others} == {"superseded"}
    assert (await used(engine)).stock.originals == 1_800


async def test_a_file_that_is_only_passed_through_counts_no_longer_than_it_waits(
    engine: Engine, tmp_path: Path
) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    (tmp_path / "notes.txt").write_text("A note on the harbour. " * 20)
    await engine.workspace("acme").documents.queue(tmp_path / "notes.txt")
    assert (await used(engine)).queued.bytes == 460
    await work(engine)
    assert (await used(engine)).stock.originals == 0


async def test_a_newer_version_takes_the_place_of_the_older_original(engine: Engine, settings: Settings) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    await upload(engine, b"old words " * 50, external_id="plan")
    await work(engine)
    await upload(engine, b"new words " * 30, external_id="plan")
    assert (await used(engine)).stock.originals == 500
    assert (await used(engine)).queued.bytes == 600
    await work(engine)
    assert (await used(engine)).stock.originals == 300 == on_disk(settings)


async def test_equal_bytes_of_two_documents_are_stored_and_counted_twice(engine: Engine, settings: Settings) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    for name in ("one", "two"):
        await upload(engine, b"the same " * 20, external_id=name)
    await work(engine)
    assert (await used(engine)).stock.originals == 360 == on_disk(settings)


async def test_what_is_counted_wrongly_is_found_and_counted_anew(engine: Engine, settings: Settings) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    kept = await upload(engine, b"kept words " * 10)
    lost = await upload(engine, b"lost words " * 10, "lost.txt")
    await work(engine)
    ledger = engine._components.ledger
    await ledger.write(  # type: ignore[attr-defined]
        "acme", lambda connection, _: connection.execute("UPDATE jobs SET stored = 7").rowcount
    )
    (settings.data_dir / lost.file_path).unlink()
    stores = open_stores(settings)
    (found,) = [one for one in await examine(stores) if one.what == "originals"]
    assert (found.state, found.detail) == ("warn", "tenant 'acme': counted with another size: 2 files, of them gone: 1")
    (repaired,) = [one for one in await examine(stores, repair=True) if one.what == "originals"]
    assert (repaired.state, repaired.repaired) == ("ok", True)
    (after,) = [one for one in await examine(stores) if one.what == "originals"]
    assert (after.state, after.detail) == ("ok", "counted as they are")
    await stores.close()
    assert (await used(engine)).stock.originals == 110
    assert (settings.data_dir / kept.file_path).is_file()


async def test_workers_count_anew_when_they_sweep(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    await upload(engine, b"some words " * 10)
    await work(engine)
    ledger = engine._components.ledger
    await ledger.write(  # type: ignore[attr-defined]
        "acme", lambda connection, _: connection.execute("UPDATE jobs SET stored = 0").rowcount
    )
    assert (await used(engine)).stock.originals == 0
    await ledger.clean_up("acme")
    assert (await used(engine)).stock.originals == 110


async def test_sealed_originals_count_as_they_are_stored(settings: Settings, fake_model: FakeEmbedder) -> None:
    sealed = settings.model_copy(update={"security": type(settings.security).model_validate({"key": KEY})})
    async with open_engine(sealed) as engine:
        await engine.tenants.create("acme", Quotas(bytes=10_000))
        await upload(engine, b"secret words " * 10)
        await work(engine)
        assert (await used(engine)).stock.originals == on_disk(settings) > 130


async def test_an_original_is_kept_however_many_jobs_come_after_its_own(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job that brought a file says whose it is: forgotten, the file would be taken for a stray."""
    monkeypatch.setattr(job_rows, "KEPT_JOBS", 0)
    kept = await upload(engine, b"Words to keep.")
    await work(engine)
    ledger = engine._components.ledger
    old = settings.data_dir / kept.file_path
    later = await upload(engine, b"Later words.", "later.txt")
    await work(engine)
    await ledger.write("acme", _forget_old)  # type: ignore[attr-defined]
    assert {job.document_id for job in await engine.workspace("acme").jobs.list()} == {
        kept.document_id,
        later.document_id,
    }
    os.utime(old, (0, 0))
    await ledger.clean_up("acme")
    assert old.read_bytes() == b"Words to keep."


async def test_an_upload_that_was_cancelled_stays_so_however_many_jobs_come_after_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_rows, "KEPT_JOBS", 0)
    acme, taken = engine.workspace("acme"), await upload(engine, b"Words to leave out.")
    assert taken.job is not None
    await acme.jobs.cancel(taken.job.id)
    await upload(engine, b"Later words.", "later.txt")
    await work(engine)
    await engine._components.ledger.write("acme", _forget_old)  # type: ignore[attr-defined]
    assert (await acme.documents.status(taken.document_id)).status == "failed"
    assert [document.id for document in await acme.documents.list(status="failed")] == [taken.document_id]
    assert await acme.jobs.retry(taken.job.id)


def _forget_old(connection: Any, tenant_id: str) -> None:
    connection.execute("UPDATE counters SET value = 999 WHERE name = 'jobs'")
    job_rows._forget_old(connection, tenant_id)


@pytest.mark.req("R-SEC-12")
async def test_retention_removes_files_of_archives_and_of_uploads_that_failed(
    engine: Engine, settings: Settings
) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    await engine.tenants.set_retention("acme", 30)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ferry.txt", "The ferry leaves at nine.")
    await upload(engine, packed.getvalue(), "all.zip")
    await upload(engine, b"%PDF-1.7 cut", "old.pdf")
    again = await upload(engine, b"%PDF-1.7 cut as well", "again.pdf")
    await work(engine)

    def age(connection: Any, _: str) -> None:
        long_ago = "2020-01-01T00:00:00+00:00"
        connection.execute("UPDATE documents SET updated_at = ?", (long_ago,))
        connection.execute("UPDATE jobs SET created_at = ?, finished_at = ?", (long_ago, long_ago))

    await engine._components.ledger.write("acme", age)  # type: ignore[attr-defined]
    assert again.job is not None
    await engine.workspace("acme").jobs.retry(again.job.id)
    await work(engine)
    await engine._components.maintenance._retire("acme")
    assert await engine.workspace("acme").documents.list() == []
    assert [job.document_id for job in await engine.workspace("acme").jobs.list()] == [again.document_id]
    assert (await used(engine)).stock.originals == on_disk(settings) == len(b"%PDF-1.7 cut as well")


async def test_originals_that_are_imported_count_where_they_come_in(
    engine: Engine, settings: Settings, tmp_path: Path, fake_model: FakeEmbedder
) -> None:
    await engine.tenants.create("acme", Quotas(bytes=10_000))
    await upload(engine, b"old words " * 30, external_id="plan")
    await work(engine)
    await engine.workspace("acme").archive.export(tmp_path / "acme.zip")
    async with open_engine(Settings(data_dir=tmp_path / "there")) as there:
        for _ in range(2):
            await there.workspace("acme").archive.restore(tmp_path / "acme.zip")
            assert (await used(there)).stock.originals == 300
        await upload(there, b"other words " * 10, external_id="plan")
        await work(there)
        assert (await used(there)).stock.originals == 120
        await there.workspace("acme").archive.restore(tmp_path / "acme.zip", overwrite=True)
        assert (await used(there)).stock.originals == 300
        await there._components.ledger.clean_up("acme")
        assert (await used(there)).stock.originals == 300


@pytest.mark.req("R-TEN-12")
async def test_archives_that_wait_to_be_imported_count(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    text = "\n".join(f"Ferry {number} leaves at {number}." for number in range(100)).encode()
    await upload(engine, text)
    await work(engine)
    acme, other = engine.workspace("acme"), engine.workspace("other")
    await acme.archive.export(tmp_path / "a.zip")
    archive = (tmp_path / "a.zip").read_bytes()
    await engine.tenants.create("other", Quotas(bytes=2 * len(archive) + 1))
    for _ in range(2):
        await other.tasks.import_archive(archive)
    waiting = await engine.tenants.usage("other")
    assert (waiting.queued.bytes, waiting.stock.bytes) == (2 * len(archive), 0)
    with pytest.raises(QuotaExceeded):
        await other.tasks.import_archive(archive)

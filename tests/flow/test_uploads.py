"""Uploads: taken in at once, worked on later, and always ended."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.word_files import new_document

from ragstone import Engine, Settings, open_engine
from ragstone.core.documents import GIVEN_BYTES
from ragstone.core.errors import EmptyDocument, InputError, ModelError, NotFoundError, ParserLimit, UnsupportedFormat
from ragstone.core.jobs import Priority
from ragstone.core.model_types import Embeddings
from ragstone.core.search import SearchQuery
from ragstone.core.types import Role
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def found(engine: Engine, query: str) -> list[str]:
    return [hit.text for hit in (await workspace_of(engine).search(SearchQuery(query, arms="lexical"))).hits]


@pytest.mark.req("R-ING-07", "R-ING-16", "R-ING-18", "R-ING-44", "R-ING-17")
async def test_an_upload_is_pending_then_found(engine: Engine) -> None:
    taken = await workspace_of(engine).documents.upload(
        b"The ferry leaves at nine.", "ferry.txt", metadata={"line": "north"}
    )
    assert (taken.status, taken.uri, taken.chunk_count, taken.processed_at) == ("pending", "ferry.txt", 0, None)
    assert await found(engine, "ferry") == []
    await work(engine)
    done = await workspace_of(engine).documents.status(taken.document_id)
    assert (done.status, done.chunk_count, done.processing_error) == ("completed", 1, "")
    assert done.total_tokens > 0
    assert done.processed_at is not None
    assert await found(engine, "ferry") == ["The ferry leaves at nine."]
    document = await workspace_of(engine).documents.get(taken.document_id)
    assert (document.metadata["line"], document.metadata["filename"]) == ("north", "ferry.txt")


@pytest.mark.req("R-ING-16", "R-ING-21", "R-TST-27", "R-REL-07")
async def test_an_upload_that_cannot_be_read_fails_with_its_reason(engine: Engine) -> None:
    taken = await workspace_of(engine).documents.upload(b"%PDF-1.7 cut", "cut.pdf")
    await work(engine)
    failed = await workspace_of(engine).documents.status(taken.document_id)
    assert (failed.status, failed.processing_error) == ("failed", "cut.pdf is a damaged PDF")
    (notice,) = await workspace_of(engine).jobs.notices()
    assert (notice.kind, notice.document_id, notice.message) == (
        "failed",
        taken.document_id,
        "cut.pdf is a damaged PDF",
    )


@pytest.mark.req("R-ING-12", "R-TST-31")
async def test_an_upload_is_checked_read_cut_embedded_stored_and_reported_in_this_order(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_of(engine)
    with pytest.raises(UnsupportedFormat):
        await workspace.documents.upload(b"MZ", "ferry.exe")
    assert await workspace.jobs.list() == []
    file = io.BytesIO()
    letter = new_document()
    for place in ("north", "south"):
        letter.add_paragraph(f"The ferry to the {place} leaves at nine. " * 60)
    letter.save(file)
    embedded: list[str] = []
    embed = fake_model.embed

    async def watched(texts: Sequence[str], role: Role = "document") -> Embeddings:
        if role == "document" and "ferry" in texts[0]:
            embedded.extend(texts)
            # Nothing is stored or reported before it is embedded.
            assert (await found(engine, "ferry"), await workspace.jobs.notices()) == ([], [])
        return await embed(texts, role)

    monkeypatch.setattr(fake_model, "embed", watched)
    taken = await workspace.documents.upload(file.getvalue(), "ferry.docx")
    assert (taken.status, embedded) == ("pending", [])
    await work(engine)
    chunks = [live.chunk for live in await workspace.documents.chunks(taken.document_id)]
    assert len(chunks) > 1
    assert sorted(embedded) == sorted(chunk.contextual for chunk in chunks)
    (space,) = await workspace.embeddings.spaces()
    assert space.vectors == len(chunks)
    hits = (await workspace.search(SearchQuery("the ferry to the south", arms="dense"))).hits
    assert {hit.document_id for hit in hits} == {taken.document_id}
    assert "The ferry to the south" in await workspace.documents.text(taken.document_id)
    assert [notice.kind for notice in await workspace.jobs.notices()] == ["completed"]


@pytest.mark.req("R-ING-20")
async def test_completion_is_noticed(engine: Engine) -> None:
    taken = await workspace_of(engine).documents.upload(b"Words.", "a.txt")
    await work(engine)
    (notice,) = await workspace_of(engine).jobs.notices(unread=True)
    assert (notice.kind, notice.document_id) == ("completed", taken.document_id)
    await workspace_of(engine).jobs.mark_read([-(2**70), notice.id, 2**63])
    assert await workspace_of(engine).jobs.notices(unread=True) == []


async def test_twenty_clients_upload_the_same_bytes(engine: Engine) -> None:
    """FAULTS 6: one document, one set of chunks, twenty equal ids."""
    taken = await asyncio.gather(
        *(workspace_of(engine).documents.upload(b"The same bytes for all.", f"{number}.txt") for number in range(20))
    )
    await work(engine)
    assert len({one.document_id for one in taken}) == 1
    assert (await workspace_of(engine).knowledge_bases.stats()).documents == 1
    assert len(await workspace_of(engine).documents.chunks(taken[0].document_id)) == 1
    again = await workspace_of(engine).documents.upload(b"The same bytes for all.", "19.txt", external_id=None)
    assert again.document_id == taken[0].document_id


async def test_what_is_live_already_is_not_worked_on_again(engine: Engine, fake_model: FakeEmbedder) -> None:
    first = await workspace_of(engine).documents.upload(b"Once is enough.", "once.txt")
    await work(engine)
    fake_model.calls.clear()
    again = await workspace_of(engine).documents.upload(b"Once is enough.", "once.txt")
    assert (again.status, again.document_id) == ("completed", first.document_id)
    await work(engine)
    assert fake_model.calls == []


async def test_a_newer_upload_wins_over_one_that_waits(engine: Engine) -> None:
    await workspace_of(engine).documents.upload(b"The old timetable.", "t.txt", external_id="timetable")
    newer = await workspace_of(engine).documents.upload(b"The new timetable.", "t.txt", external_id="timetable")
    await work(engine)
    assert await workspace_of(engine).documents.text(newer.document_id) == "The new timetable."
    assert sorted(job.state for job in await workspace_of(engine).jobs.list()) == ["cancelled", "completed"]


async def test_a_document_answers_while_its_next_version_fails(engine: Engine) -> None:
    """FAULTS 7: chunks never drop to zero."""
    live = await workspace_of(engine).documents.upload(b"The tide is high.", "tide.txt", external_id="tide")
    await work(engine)
    await workspace_of(engine).documents.upload(b"\x00\x01\x02", "tide.txt", external_id="tide")
    await work(engine)
    status = await workspace_of(engine).documents.status(live.document_id)
    assert status.status == "completed"
    assert "tide.txt" in status.processing_error
    assert await found(engine, "tide") == ["The tide is high."]


@pytest.mark.req("R-ING-22")
async def test_delete_removes_document_job_notice_and_file(engine: Engine, data_dir: Path) -> None:
    taken = await workspace_of(engine).documents.upload(b"A secret canary sings.", "canary.txt")
    await work(engine)
    assert len(list((data_dir / "documents").rglob("*"))) == 3
    assert await found(engine, "canary") == ["A secret canary sings."]
    assert await workspace_of(engine).documents.delete(taken.document_id)
    for arm in ("lexical", "dense", "hybrid"):
        assert (await workspace_of(engine).search(SearchQuery("A secret canary sings.", arms=arm))).hits == ()
    assert not any(path.is_file() for path in (data_dir / "documents").rglob("*"))
    assert await workspace_of(engine).jobs.list() == []
    assert await workspace_of(engine).jobs.notices() == []
    with pytest.raises(NotFoundError):
        await workspace_of(engine).documents.status(taken.document_id)
    assert not await workspace_of(engine).documents.delete(taken.document_id)


async def test_what_is_deleted_while_it_waits_does_not_come_back(engine: Engine) -> None:
    """FAULTS 9."""
    taken = await workspace_of(engine).documents.upload(b"Never to be seen.", "gone.txt")
    assert await workspace_of(engine).documents.delete(taken.document_id)
    await work(engine)
    assert (await workspace_of(engine).knowledge_bases.stats()).documents == 0


async def test_a_cancelled_job_ends_and_may_be_retried(engine: Engine) -> None:
    taken = await workspace_of(engine).documents.upload(b"On second thought.", "thought.txt")
    assert taken.job is not None
    assert await workspace_of(engine).jobs.cancel(taken.job.id)
    await work(engine)
    stopped = await workspace_of(engine).documents.status(taken.document_id)
    assert (stopped.status, stopped.processing_error) == ("failed", "cancelled on request")
    assert await workspace_of(engine).jobs.retry(taken.job.id)
    await work(engine)
    assert (await workspace_of(engine).documents.status(taken.document_id)).status == "completed"


@pytest.mark.req("R-ING-13")
@pytest.mark.req("R-SEC-02")
@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.exe", b"MZ", UnsupportedFormat, "a.exe is of a kind that is not allowed"),
        ("a.txt", b"", EmptyDocument, "a.txt is empty"),
        ("", b"x", InputError, "'' is no file name"),
        ("..", b"x", InputError, "'..' is no file name"),
    ],
)
async def test_what_may_not_be_uploaded(
    engine: Engine, name: str, content: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await workspace_of(engine).documents.upload(content, name)
    assert await workspace_of(engine).jobs.list() == []


async def test_metadata_that_is_taken_in_fits_beside_what_is_found_in_the_document(engine: Engine) -> None:
    names = " ".join(f"Ada{n}a Lovelace{n} met Charles{n} Babbage{n} of Analytical{n} Engines Ltd." for n in range(300))
    notes = "n" * (GIVEN_BYTES - 13)
    documents = workspace_of(engine).documents
    taken = await documents.upload(names.encode(), "names.txt", title="t" * 255, metadata={"notes": notes})
    with pytest.raises(InputError, match="metadata is larger than 48 KiB") as refused:
        await documents.upload(names.encode(), "more.txt", metadata={"a": 1, "notes": notes})
    assert refused.value.hint == "shorten 'notes'"
    await work(engine)
    done = await documents.status(taken.document_id)
    assert (done.status, done.processing_error) == ("completed", "")


@pytest.mark.req("R-ING-14", "R-SEC-02")
async def test_an_upload_of_the_limit_is_too_large(data_dir: Path, fake_model: FakeEmbedder) -> None:
    settings = Settings(data_dir=data_dir, limits={"file_mb": 1})
    async with open_engine(settings) as engine:
        with pytest.raises(ParserLimit, match="allows less than 1"):
            await workspace_of(engine).documents.upload(b"x" * 1024 * 1024, "a.txt")
        assert (await workspace_of(engine).documents.upload(b"x " * 1000, "a.txt")).status == "pending"


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.txt", "/etc/passwd.txt", "C:\\Windows\\passwd.txt", "a\0/passwd.txt"]
)
async def test_a_file_name_is_only_a_name(engine: Engine, data_dir: Path, name: str) -> None:
    """FAULTS 30."""
    taken = await workspace_of(engine).documents.upload(b"Harmless words.", name)
    assert taken.uri == "passwd.txt"
    assert not await asyncio.to_thread(lambda: list(data_dir.rglob("*passwd*")))


@pytest.mark.req("R-ING-15", "R-SEC-03")
async def test_a_malware_scanner_may_refuse(data_dir: Path, fake_model: FakeEmbedder, tmp_path: Path) -> None:
    scanner = tmp_path / "scanner.sh"
    scanner.write_text('#!/bin/sh\nif grep -q VIRUS "$1"; then echo "found a VIRUS"; exit 1; fi\n')
    scanner.chmod(0o700)
    settings = Settings(data_dir=data_dir, extract={"scan_command": [str(scanner)]})
    async with open_engine(settings) as engine:
        good = await workspace_of(engine).documents.upload(b"Quite healthy.", "good.txt")
        bad = await workspace_of(engine).documents.upload(b"A VIRUS inside.", "bad.txt")
        await work(engine)
        assert (await workspace_of(engine).documents.status(good.document_id)).status == "completed"
        refused = await workspace_of(engine).documents.status(bad.document_id)
        assert (refused.status, refused.processing_error) == (
            "failed",
            "bad.txt was refused by the malware scanner: found a VIRUS",
        )


async def test_an_archive_becomes_the_documents_in_it(engine: Engine) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one.txt", "The first member.")
        archive.writestr("two.md", "# Two\n\nThe second member.")
        archive.writestr("../evil.txt", "Outside.")
    taken = await workspace_of(engine).documents.upload(file.getvalue(), "all.zip")
    await work(engine)
    assert sorted(document.title for document in await workspace_of(engine).documents.list()) == ["Two", "one.txt"]
    (job,) = await workspace_of(engine).jobs.list()
    assert (job.state, job.document_id) == ("completed", taken.document_id)
    assert len(job.progress.remarks) == 1
    assert "evil.txt" in job.progress.remarks[0]
    status = await workspace_of(engine).documents.status(taken.document_id)
    assert (status.status, status.chunk_count) == ("completed", 2)
    (notice,) = await workspace_of(engine).jobs.notices()
    assert "evil.txt" in notice.message


def packed(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.txt", text)
    return file.getvalue()


@pytest.mark.req("R-ING-22")
async def test_an_archive_goes_with_all_that_is_in_it(engine: Engine) -> None:
    taken = await workspace_of(engine).documents.upload(
        packed(a="The first lantern.", b="The second lantern."), "all.zip"
    )
    await work(engine)
    assert len(await found(engine, "lantern")) == 2
    assert await workspace_of(engine).documents.delete(taken.document_id)
    assert await found(engine, "lantern") == []
    assert (await workspace_of(engine).knowledge_bases.stats()).documents == 0


async def test_what_a_newer_archive_lacks_goes(engine: Engine) -> None:
    for content in (packed(a="The first lantern.", b="The second lantern."), packed(a="The first lantern.")):
        await workspace_of(engine).documents.upload(content, "all.zip", external_id="all")
        await work(engine)
    assert await found(engine, "lantern") == ["The first lantern."]


@pytest.mark.parametrize("inside", ["!/a.md", "#1:terms.txt"])
async def test_an_upload_is_not_known_as_what_is_inside_another(engine: Engine, inside: str) -> None:
    with pytest.raises(InputError, match="is of a file in an archive or of an attachment"):
        await workspace_of(engine).documents.upload(b"Forged.", "a.md", external_id=f"{'f' * 64}{inside}")
    taken = await workspace_of(engine).documents.upload(
        b"A page.", "a.md", external_id="https://host.example/page#part-1"
    )
    assert taken.status == "pending"


async def test_uploads_go_before_batches(engine: Engine) -> None:
    await workspace_of(engine).documents.upload(b"Batch one.", "1.txt", priority=Priority.BATCH)
    await workspace_of(engine).documents.upload(b"Urgent.", "2.txt")
    await work(engine)
    begun = {job.uri: job.started_at for job in await workspace_of(engine).jobs.list()}
    batch, urgent = begun["1.txt"], begun["2.txt"]
    assert batch is not None
    assert urgent is not None
    assert urgent <= batch  # they may be worked on at the same time, and end in any order


async def test_another_tenants_ids_are_unknown(engine: Engine) -> None:
    """FAULTS 24."""
    taken = await engine.workspace("one").documents.upload(b"Mine alone.", "mine.txt")
    await engine.workspace("two").documents.upload(b"Other.", "other.txt")
    assert taken.job is not None
    for call in (
        engine.workspace("two").documents.status(taken.document_id),
        engine.workspace("two").jobs.get(taken.job.id),
        engine.workspace("two").jobs.cancel(taken.job.id),
        engine.workspace("two").jobs.retry(taken.job.id),
    ):
        with pytest.raises(NotFoundError):
            await call
    assert [job.uri for job in await engine.workspace("two").jobs.list()] == ["other.txt"]


async def test_without_vectors_a_job_waits_for_its_model(engine: Engine, fake_model: FakeEmbedder) -> None:
    fake_model.errors = [ModelError("the service is down")]
    taken = await workspace_of(engine).documents.upload(b"Found by meaning, too.", "a.txt")
    await work(engine)
    assert (await workspace_of(engine).documents.get(taken.document_id)).embedded
    (job,) = await workspace_of(engine).jobs.list()
    assert (job.attempts, job.progress.remarks) == (2, ())


async def test_after_the_last_attempt_words_are_better_than_nothing(engine: Engine, fake_model: FakeEmbedder) -> None:
    fake_model.errors = [ModelError("the service is down")] * 3
    taken = await workspace_of(engine).documents.upload(b"Found by word only.", "a.txt")
    await work(engine)
    assert not (await workspace_of(engine).documents.get(taken.document_id)).embedded
    assert await found(engine, "word") == ["Found by word only."]
    (job,) = await workspace_of(engine).jobs.list()
    assert (job.state, job.attempts) == ("completed", 3)
    assert job.progress.remarks == ("searchable by word only: the service is down",)


@pytest.mark.parametrize("options", [{"title": "a \ud83d b"}, {"metadata": {"note": "\ud83d"}}])
async def test_lone_surrogates_are_no_defect(engine: Engine, options: dict[str, object]) -> None:
    """FAULTS 20."""
    taken = await workspace_of(engine).documents.upload(b"Words enough.", "a.txt", **options)  # type: ignore[arg-type]
    await work(engine)
    assert (await workspace_of(engine).documents.status(taken.document_id)).status == "completed"


async def test_an_external_id_must_be_text(engine: Engine) -> None:
    with pytest.raises(InputError, match="not valid Unicode"):
        await workspace_of(engine).documents.upload(b"Words.", "a.txt", external_id="\ud83d")


async def test_an_upload_survives_a_deletion_that_races_it(engine: Engine) -> None:
    """The bytes of an upload that is on its way in are not the deleted document's."""
    taken = await workspace_of(engine).documents.upload(b"First words.", "a.txt", external_id="a")
    await work(engine)
    (name,) = await engine._components.ledger.of("default").keep_originals([(taken.document_id, b"Second words.")])
    assert await workspace_of(engine).documents.delete(taken.document_id)
    assert await engine._components.ledger.of("default").originals([(taken.document_id, name)]) == [b"Second words."]


async def test_an_older_job_cannot_be_retried_over_a_newer_one(engine: Engine) -> None:
    old = await workspace_of(engine).documents.upload(b"Old words.", "a.txt", external_id="a")
    await workspace_of(engine).documents.upload(b"New words.", "a.txt", external_id="a")
    assert old.job is not None
    assert not await workspace_of(engine).jobs.retry(old.job.id)
    await work(engine)
    assert not await workspace_of(engine).jobs.retry(old.job.id)
    assert await workspace_of(engine).documents.text(old.document_id) == "New words."


async def test_a_deleted_kb_is_not_made_again_by_its_jobs(engine: Engine) -> None:
    await workspace_of(engine).documents.upload(b"Words.", "a.txt", kb="short")
    assert await workspace_of(engine).knowledge_bases.delete("short") == 1
    await work(engine)
    assert [kb.name for kb in await workspace_of(engine).knowledge_bases.list()] == []


async def test_files_that_a_crash_left_are_swept(engine: Engine, data_dir: Path) -> None:
    """FAULTS 16: killed between writing the original and queueing its job."""
    taken = await workspace_of(engine).documents.upload(b"Kept.", "kept.txt")
    lost = "ab" * 16
    await engine._components.ledger.of("default").keep_originals([(lost, b"left behind")])

    def age() -> None:
        for folder in (data_dir / "documents").rglob("*"):
            os.utime(folder, (0, 0))

    await asyncio.to_thread(age)
    await engine._components.maintenance.maintain("default")
    left = await asyncio.to_thread(lambda: {path.name for path in (data_dir / "documents").glob("*/*")})
    assert left == {taken.document_id}

"""What is said of an uploaded document and its chunks, under the names that others know."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.documents import ChunkRecord
from ragstone.core.errors import InputError, ModelError, NotFoundError, UnsupportedFormat
from ragstone.core.jobs import Status
from ragstone.core.search import SearchQuery
from ragstone.schemas.documents import ChunkRecordSchema, DocumentStatusSchema
from ragstone.schemas.search import HitSchema
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

STATUSES = {"pending", "processing", "completed", "failed"}
GUIDE = b"# Guide\n\nWelcome to the island.\n\n## Ferry\n\nThe ferry leaves at nine.\n\n## Fares\n\nTwo crowns."


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    settings = Settings(data_dir=data_dir, jobs={"retry_seconds": 0}, chunking={"strategy": "markdown", "size": 60})
    async with open_engine(settings) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


def listed(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


async def record(engine: Engine, document_id: str) -> dict[str, Any]:
    return DocumentStatusSchema.of(await workspace_of(engine).documents.status(document_id)).as_json()


@pytest.mark.req("R-DOM-14", "R-DOM-16", "R-DOM-25", "R-ING-16")
async def test_the_record_of_an_upload_from_pending_to_completed(engine: Engine) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    taken = await workspace_of(engine).documents.upload(
        GUIDE,
        "guide.md",
        title="The island",
        metadata={"description": "How to get about", "category": "travel", "tags": ["ferry", "fares"]},
    )
    said = DocumentStatusSchema.of(taken).as_json()
    told = {
        "document_id": taken.document_id,
        "filename": "guide.md",
        "file_type": "md",
        "file_size": len(GUIDE),
        "title": "The island",
        "description": "How to get about",
        "category": "travel",
        "tags": ["ferry", "fares"],
        "processing_error": "",
    }
    fresh = {"status": "pending", "chunk_count": 0, "total_tokens": 0, "processed_at": None}
    assert {name: said[name] for name in (*told, *fresh)} == told | fresh
    assert taken.uploaded_at is not None
    assert taken.uploaded_at >= before
    await work(engine)
    done = await record(engine, taken.document_id)
    assert {name: done[name] for name in told} == told
    chunks = await workspace_of(engine).documents.chunks(taken.document_id)
    assert (done["status"], done["chunk_count"]) == ("completed", len(chunks))
    assert done["total_tokens"] == sum(live.chunk.tokens for live in chunks) > 0
    assert done["processed_at"] >= done["uploaded_at"] == said["uploaded_at"]
    document = await workspace_of(engine).documents.get(taken.document_id)
    assert document.metadata["tags"] == ["ferry", "fares"]
    assert document.created_at == taken.uploaded_at


@pytest.mark.req("R-DOM-14")
async def test_what_nobody_said_is_empty(engine: Engine) -> None:
    taken = DocumentStatusSchema.of(await workspace_of(engine).documents.upload(b"Words.", "plain.txt")).as_json()
    assert {name: taken[name] for name in ("title", "description", "category", "tags")} == {
        "title": "",
        "description": "",
        "category": "",
        "tags": [],
    }


@pytest.mark.req("R-DOM-16")
async def test_a_status_is_one_of_four_whatever_happens(engine: Engine, fake_model: FakeEmbedder) -> None:
    seen: set[Status] = set()
    embed = fake_model.embed

    async def watched(*given: Any, **options: Any) -> Any:
        seen.add((await workspace_of(engine).documents.status(good.document_id)).status)
        return await embed(*given, **options)

    fake_model.embed = watched  # type: ignore[method-assign]
    good = await workspace_of(engine).documents.upload(b"The ferry.", "good.txt")
    bad = await workspace_of(engine).documents.upload(b"%PDF-1.7 cut", "cut.pdf")
    stopped = await workspace_of(engine).documents.upload(b"Never mind.", "stopped.txt")
    assert stopped.job is not None
    seen.add(good.status)
    await workspace_of(engine).jobs.cancel(stopped.job.id)
    await work(engine)
    assert seen == {"pending", "processing"}
    ended = [await workspace_of(engine).documents.status(one.document_id) for one in (good, bad, stopped)]
    assert [(one.status, one.processing_error) for one in ended] == [
        ("completed", ""),
        ("failed", "cut.pdf is a damaged PDF"),
        ("failed", "cancelled on request"),
    ]
    assert {one.status for one in ended} | seen == STATUSES


@pytest.mark.req("R-DOM-14")
@pytest.mark.parametrize(
    ("name", "title", "metadata", "problem"),
    [
        ("x" * 252 + ".txt", "", {}, "the file name has 256 characters; at most 255"),
        ("a.txt", "x" * 256, {}, "the title has 256 characters; at most 255"),
        ("a.txt", "", {"category": "x" * 101}, "'category' has 101 characters; at most 100"),
        ("a.txt", "", {"category": 7}, "'category' is int, and has to be text"),
        ("a.txt", "", {"description": ["a"]}, "'description' is list"),
        ("a.txt", "", {"tags": "ferry"}, "'tags' has to be a list of texts"),
        ("a.txt", "", {"tags": [1]}, "'tags' has to be a list of texts"),
        ("a.txt", "", {"source": "Harbour Office"}, "only Ragstone says 'source' of a document"),
        ("a.txt", "", {"parent_doc_id": "f" * 32}, "only Ragstone says 'parent_doc_id'"),
        ("a.txt", "", {"attachment": True}, "only Ragstone says 'attachment'"),
        ("a.txt", "", {"hidden_characters": 0}, "only Ragstone says 'hidden_characters'"),
        ("a.txt", "", {"near_duplicate_of": "abc"}, "only Ragstone says 'near_duplicate_of'"),
        ("a.txt", "", {"source_type": "web"}, "the 'source_type' of what is uploaded is 'upload'"),
    ],
)
async def test_what_is_too_long_or_no_text_or_not_theirs_to_say_is_refused_before_anything_is_kept(
    engine: Engine, data_dir: Path, name: str, title: str, metadata: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        await workspace_of(engine).documents.upload(b"Words.", name, title=title, metadata=metadata)
    assert await workspace_of(engine).jobs.list() == []
    assert not (data_dir / "documents").exists()


async def test_what_is_as_long_as_it_may_be_is_kept_whole(engine: Engine) -> None:
    name, title, category = "n" * 251 + ".txt", "t" * 255, "c" * 100
    taken = await workspace_of(engine).documents.upload(b"Words.", name, title=title, metadata={"category": category})
    await work(engine)
    done = await workspace_of(engine).documents.status(taken.document_id)
    assert (done.filename, done.title, done.category) == (name, title, category)
    assert len(done.file_path) <= 500


@pytest.mark.req("R-DOM-39")
async def test_the_original_lies_under_tenant_and_document_and_not_under_its_own_name(
    engine: Engine, data_dir: Path
) -> None:
    taken = await workspace_of(engine).documents.upload(GUIDE, "../../guide.md")
    tenant = await engine.tenants.get("default")
    assert tenant is not None
    place = Path(taken.file_path)
    assert place.parent == Path("documents", tenant.id, taken.document_id)
    assert (data_dir / place).read_bytes() == GUIDE
    await work(engine)
    assert (await workspace_of(engine).documents.status(taken.document_id)).file_path == taken.file_path
    assert "guide" not in {path.stem for path in listed(data_dir)}


async def test_a_file_that_was_only_passed_through_has_no_path(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Notes on the harbour.")
    ((queued,), _) = await workspace_of(engine).documents.queue(tmp_path / "notes.txt")
    await work(engine)
    done = await workspace_of(engine).documents.status(queued.document_id)
    assert (done.filename, done.file_type, done.file_size, done.file_path) == ("notes.txt", "txt", 21, "")


async def test_the_record_is_of_the_live_version_while_the_next_one_fails(engine: Engine) -> None:
    live = await workspace_of(engine).documents.upload(
        b"The tide is high.", "tide.txt", external_id="tide", metadata={"tags": ["old"]}
    )
    await work(engine)
    await workspace_of(engine).documents.upload(
        b"\x00\x01\x02\x03", "tide.txt", external_id="tide", metadata={"tags": ["new"]}
    )
    await work(engine)
    done = await workspace_of(engine).documents.status(live.document_id)
    assert (done.status, done.file_size, done.tags) == ("completed", 17, ("old",))
    assert "tide.txt" in done.processing_error
    assert done.file_path == live.file_path


@pytest.mark.req("R-DOM-15")
async def test_the_customer_service_profile_takes_three_kinds_of_files(
    data_dir: Path, fake_model: FakeEmbedder
) -> None:
    profile = load_settings(overrides={"profile": "tulia"})
    settings = Settings(data_dir=data_dir, limits=profile.limits.model_dump())
    async with open_engine(settings) as engine:
        types = {
            (await workspace_of(engine).documents.upload(b"x", f"a.{kind}")).file_type
            for kind in ("pdf", "TXT", "docx")
        }
        for name in ("a.md", "a.zip", "a"):
            with pytest.raises(UnsupportedFormat, match="not allowed") as refused:
                await workspace_of(engine).documents.upload(b"x", name)
            assert refused.value.hint == "limits.upload_types allows: pdf, txt, docx"
    assert types == {"pdf", "txt", "docx"}


async def uploaded(engine: Engine, **options: Any) -> list[ChunkRecord]:
    taken = await workspace_of(engine).documents.upload(GUIDE, "guide.md", **options)
    await work(engine)
    return await workspace_of(engine).documents.chunk_records(taken.document_id)


@pytest.mark.req("R-DOM-18", "R-DOM-25", "R-DOM-34", "R-REL-08")
async def test_the_record_of_a_chunk(engine: Engine, fake_model: FakeEmbedder) -> None:
    records = await uploaded(engine)
    chunks = await workspace_of(engine).documents.chunks(records[0].document_id)
    assert [one.chunk_index for one in records] == list(range(len(chunks))) != [0]
    shape = ChunkRecordSchema.of(records[1]).as_json()
    metadata = shape.pop("metadata")
    assert shape == {
        "id": chunks[1].id,
        "document_id": records[0].document_id,
        "content": chunks[1].chunk.text,
        "chunk_index": 1,
        "token_count": chunks[1].chunk.tokens,
        "embedding_model": "fake",
        "embedding_id": chunks[1].id,
        "page_number": None,
        "section_title": "Ferry",
        "created_at": shape["created_at"],
    }
    assert shape["created_at"] is not None
    assert metadata["source_type"] == "upload"
    assert (await workspace_of(engine).documents.status(records[0].document_id)).embedding_model == "fake"


@pytest.mark.req("R-DOM-34")
async def test_a_chunk_without_a_vector_has_no_model(engine: Engine, fake_model: FakeEmbedder) -> None:
    fake_model.errors = [ModelError("the model fell over")]
    await workspace_of(engine).documents.ingest_items([Item("test", "a", "test/a", "The ferry.")])
    (document,) = await workspace_of(engine).documents.list()
    (one,) = await workspace_of(engine).documents.chunk_records(document.id)
    assert (document.embedded, one.embedding_model, one.embedding_id) == (False, "", "")
    assert (await workspace_of(engine).documents.status(document.id)).embedding_model == ""


@pytest.mark.req("R-DOM-34", "R-REL-08")
async def test_a_document_that_was_moved_to_another_model_says_so(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda chosen: FakeEmbedder(name=chosen.model))
    async with open_engine(Settings(data_dir=data_dir, embedding={"model": "old"})) as engine:
        records = await uploaded(engine)
        assert {one.embedding_model for one in records} == {"old"}
        await workspace_of(engine).embeddings.reembed("new", force=True)
        document_id = records[0].document_id
        assert [one.embedding_model for one in await workspace_of(engine).documents.chunk_records(document_id)] == [
            "new"
        ] * len(records)
        assert (await workspace_of(engine).documents.status(document_id)).embedding_model == "new"


@pytest.mark.req("R-DOM-12", "R-DOM-32", "R-DOM-33")
async def test_the_metadata_of_a_chunk(engine: Engine) -> None:
    item = Item(
        "wiki",
        "guide",
        "https://wiki.example/guide.md",
        GUIDE,
        metadata={"author": "Ada", "date": "2026-01-31", "source_type": "web", "content_type": "guide"},
        media_type="text/markdown",
    )
    await workspace_of(engine).documents.ingest_items([item])
    (document,) = await workspace_of(engine).documents.list()
    records = await workspace_of(engine).documents.chunk_records(document.id)
    wanted = {
        "sourceFile": "guide.md",
        "chunkIndex": 1,
        "totalChunks": len(records),
        "source_type": "web",
        "content_type": "guide",
        "timestamp": "2026-01-31T00:00:00+00:00",
        "author": "Ada",
        "url": "https://wiki.example/guide.md",
        "parent_id": document.id,
        "position": 1,
        "hierarchy_level": 0,
        "topic_shift_score": None,
    }
    assert {name: records[1].metadata[name] for name in wanted} == wanted
    (hit,) = (await workspace_of(engine).search(SearchQuery("The ferry leaves at nine.", k=1))).hits
    assert hit.chunk_id == records[1].id
    shown = HitSchema.of(hit).as_json()["metadata"]
    absent = {"topic_shift_score"}
    assert {name: shown[name] for name in wanted if name not in absent} == {
        name: value for name, value in wanted.items() if name not in absent
    }
    assert "chunkIndex" not in hit.metadata  # models are not shown it


@pytest.mark.req("R-ING-02")
async def test_every_chunk_of_a_mail_from_gmail_says_who_wrote_it_when_and_in_which_thread(engine: Engine) -> None:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "Anna <anna@harbour.example>", "Fares"
    mail["Date"] = "Tue, 5 May 2026 10:00:00 +0000"
    mail.set_content("\n\n".join(f"Adults pay nine crowns on line {number}." for number in range(9)))
    mail.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="fares.csv")
    given = {"source_type": "email", "source": "gmail", "thread_id": "t1", "labels": ["INBOX", "Fares"]}
    item = Item("post", "1", "gmail:1", mail.as_bytes(), metadata=given, media_type="message/rfc822")
    await workspace_of(engine).documents.ingest_items([item])
    (document,) = [each for each in await workspace_of(engine).documents.list() if each.external_id == "1"]
    records = await workspace_of(engine).documents.chunk_records(document.id)
    assert [chunk.chunk_index for chunk in records] == list(range(len(records)))
    assert len(records) > 1
    wanted = {
        "source": "gmail",
        "content_type": "email",
        "sender": "Anna <anna@harbour.example>",
        "date": "2026-05-05T10:00:00+00:00",
        "thread_id": "t1",
        "labels": ["INBOX", "Fares"],
        "has_attachments": True,
    }
    for chunk in records:
        assert {name: chunk.metadata.get(name) for name in wanted} == wanted
    hits = (await workspace_of(engine).search(SearchQuery("adults pay", k=20, where={"thread_id": "t1"}))).hits
    assert {hit.metadata["source"] for hit in hits if hit.document_id == document.id} == {"gmail"}


@pytest.mark.req("R-DOM-33")
async def test_the_place_of_a_chunk_in_a_hierarchy(data_dir: Path, fake_model: FakeEmbedder) -> None:
    settings = Settings(
        data_dir=data_dir,
        chunking={"strategy": "hybrid", "unit": "tokens", "size": 24, "min_size": 4, "overlap": 0, "breakpoint": 0.5},
    )
    text = "# Island\n\n" + "\n\n".join(
        f"## {part}\n\n" + " ".join(f"{word} {word} {word} {word}." for word in words.split())
        for part, words in (("Sea", "Ferry Tide Harbour Lantern Gull Net"), ("Land", "Orchard Market Engine Hill"))
    )
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items([Item("test", "a", "test/a.md", text.encode())])
        (document,) = await workspace_of(engine).documents.list()
        records = await workspace_of(engine).documents.chunk_records(document.id)
        chunks = await workspace_of(engine).documents.chunks(document.id)
    ids = {one.id for one in records}
    levels = {one.metadata["hierarchy_level"] for one in records}
    assert levels == {live.chunk.level for live in chunks}
    assert len(levels) > 1
    for live, one in zip(chunks, records, strict=True):
        above = live.chunk.parent
        assert one.metadata["parent_id"] == (document.id if above is None else records[above].id)
        assert one.metadata["position"] == live.chunk.index
    assert any(one.metadata["parent_id"] in ids for one in records)
    assert any(one.metadata["topic_shift_score"] is not None for one in records)


@pytest.mark.req("R-DOM-19")
async def test_no_version_has_two_chunks_of_one_number(engine: Engine, data_dir: Path) -> None:
    await uploaded(engine)
    (file,) = (path for path in (data_dir / "tenants").rglob("*.db"))
    with closing(sqlite3.connect(file)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(chunks)") if row[1] not in ("seq", "id")]
        listed = ", ".join(columns)
        with pytest.raises(sqlite3.IntegrityError, match=r"document_id, chunks\.version, chunks\.chunk_index"):
            connection.execute(
                f"INSERT INTO chunks (id, {listed}) SELECT 'another', {listed} FROM chunks WHERE chunk_index = 1"
            )


@pytest.mark.req("R-DOM-36")
async def test_a_changed_file_is_embedded_again_and_its_time_is_known(
    engine: Engine, tmp_path: Path, fake_model: FakeEmbedder
) -> None:
    file = tmp_path / "folder" / "plan.txt"
    file.parent.mkdir()
    file.write_text("The ferry leaves at nine.")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    await workspace_of(engine).documents.ingest(file.parent)
    (first,) = await workspace_of(engine).documents.list()
    assert first.modified_at == datetime.fromtimestamp(1_700_000_000, UTC)
    fake_model.calls.clear()
    await workspace_of(engine).documents.ingest(file.parent)
    assert fake_model.calls == []
    file.write_text("The ferry leaves at ten.")
    os.utime(file, (1_700_000_500, 1_700_000_500))
    await workspace_of(engine).documents.ingest(file.parent)
    (second,) = await workspace_of(engine).documents.list()
    assert second.modified_at == datetime.fromtimestamp(1_700_000_500, UTC)
    assert [text for call in fake_model.calls for text in call] != []


async def test_nobody_reads_the_record_or_the_chunks_of_another_tenant(engine: Engine) -> None:
    taken = await engine.workspace("acme").documents.upload(GUIDE, "guide.md")
    await engine.workspace("rival").documents.upload(b"Other words.", "other.txt")
    await work(engine)
    with pytest.raises(NotFoundError):
        await engine.workspace("rival").documents.status(taken.document_id)
    assert await engine.workspace("rival").documents.chunk_records(taken.document_id) == []
    assert len(await engine.workspace("acme").documents.chunk_records(taken.document_id)) > 1

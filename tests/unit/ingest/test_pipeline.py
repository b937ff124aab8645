"""What an ingest run does with items: new, changed, equal, broken, many; and how it ends."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.unit.ingest.kit import Kit, counts, item

from ragstone.core.errors import NoTextSeen, StoreFull
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Document, Failure, Item, Parsed, Role
from ragstone.ingest import embed
from ragstone.ingest.diff import LOOK_UP
from ragstone.ingest.embed import FIRST_CHUNKS, LONG_CHUNKS, SLICE_CHUNKS, WAVE_CHUNKS
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.work import Progress
from ragstone.stores.ledger.tenant_ledger import SqlTenantLedger
from ragstone.testing.fakes import FakeEmbedder

WORDS = ("pier", "buoy", "gull", "rope", "crane", "ferry", "anchor", "tide")


async def test_new_documents_are_added(kit: Kit) -> None:
    report = await kit.run([item("pier"), item("buoy", "The buoy is red. The bell on it rings at night.")])
    assert counts(report) == (2, 0, 0, 0)
    assert (report.documents, report.chunks) == (2, 3)
    assert report.degraded == report.warnings == ()
    assert await kit.names() == ["buoy", "pier"]
    assert await kit.by_word("bell") == {"buoy"}
    assert "buoy" in await kit.by_meaning("bell rings")
    document = await kit.document("buoy")
    assert (document.version, document.chunks, document.embedded) == (1, 2, True)
    assert await kit.ledger.of("t").text(document.id) == "The buoy is red. The bell on it rings at night."


async def test_a_document_longer_than_the_queue_does_not_wait_for_ever(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "AHEAD_CHUNKS", 2)
    async with asyncio.timeout(20):
        report = await kit.run([item("short"), item("long", " ".join(f"The {word} is red." for word in WORDS))])
    assert report.chunks == 1 + len(WORDS)


@pytest.mark.req("R-EMB-16")
async def test_unchanged_documents_cost_no_call_of_the_model(kit: Kit) -> None:
    items = [item(name) for name in WORDS]
    await kit.run(items)
    assert len(kit.embedded_texts()) == len(WORDS)
    report = await kit.run(items)
    assert counts(report) == (0, 0, len(WORDS), 0)
    assert kit.embedder.calls == []
    assert (await kit.document("pier")).version == 1


@pytest.mark.req("R-REL-12")
async def test_one_changed_document_costs_one_document(kit: Kit) -> None:
    items = [item(name) for name in WORDS]
    await kit.run(items)
    kit.embedded_texts()
    report = await kit.run([item("pier", "The pier has gone."), *items[1:]])
    assert counts(report) == (0, 1, len(WORDS) - 1, 0)
    assert kit.embedded_texts() == ["The pier has gone."]
    assert (await kit.document("pier")).version == 2
    assert await kit.by_word("pier gone") == {"pier"}
    assert await kit.ledger.of("t").text((await kit.document("pier")).id) == "The pier has gone."


@pytest.mark.req("R-EMB-16")
async def test_a_chunk_that_stays_in_a_changed_document_is_not_embedded_again(kit: Kit) -> None:
    await kit.run([item("pier", "The pier is made of oak. It has nine lamps.")])
    kit.embedded_texts()
    await kit.run([item("pier", "The pier is made of oak. It has ten lamps.")])
    assert kit.embedded_texts() == ["It has ten lamps."]


@pytest.mark.req("R-EMB-16", "R-EMB-15", "R-MOD-14")
async def test_equal_text_is_embedded_once_within_a_run_and_across_runs(kit: Kit) -> None:
    await kit.run([item("one", "Same words."), item("two", "Same words.")])
    assert kit.embedded_texts() == ["Same words."]
    await kit.run([item("three", "Same words.")])
    assert kit.embedder.calls == []
    assert await kit.by_meaning("same words") == {"one", "two", "three"}


async def test_an_item_that_comes_twice_in_a_run_is_one_document(kit: Kit) -> None:
    report = await kit.run([item("pier", "First words."), item("pier", "Second words.")])
    assert report.documents == 1
    assert await kit.ledger.of("t").text((await kit.document("pier")).id) == "Second words."


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "empty.txt", "empty_document"),
        (b" \n\n ", "blank.txt", "empty_document"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "picture.txt", "parse_failed"),
        (bytes(2000), "zeros.txt", "parse_failed"),
        (b"One\x00 two.", "nul.txt", "parse_failed"),
        (b"\x00\x01\x02" * 99, "data.xyz", "unsupported_format"),
        (b"%PDF-1.7 cut off", "cut.pdf", "parse_failed"),
        (b"PK\x03\x04 cut off", "cut.docx", "parse_failed"),
        ("", "text", "empty_document"),
        ("One two three. " * 50, "long", "parser_limit"),
    ],
)
async def test_an_item_that_fails_is_named_and_the_rest_go_on(
    kit: Kit, content: bytes | str, name: str, code: str
) -> None:
    kit.max_chunks = 20
    report = await kit.run([item("pier"), item(name, content), item("buoy")])
    (failure,) = report.failed
    assert (failure.uri, failure.code) == (f"test/{name}", code)
    assert name in failure.error
    assert counts(report) == (2, 0, 0, 1)
    assert await kit.names() == ["buoy", "pier"]


async def test_text_with_nul_and_lone_surrogates_is_taken_without_them(kit: Kit) -> None:
    report = await kit.run([item("nul", "One\x00 two."), item("half", "One \ud800 two.")])
    assert counts(report) == (2, 0, 0, 0)
    assert await kit.ledger.of("t").text((await kit.document("nul")).id) == "One two."
    assert await kit.ledger.of("t").text((await kit.document("half")).id) == "One \ufffd two."


async def test_failures_of_the_source_and_items_without_identity_are_passed_on(kit: Kit) -> None:
    report = await kit.run([Failure("test/x", "too_large", "too large"), item("pier"), item("\udcff")])
    assert report.failed == (
        Failure("test/x", "too_large", "too large"),
        Failure("test/\ufffd", "invalid_input", "the external id of 'test/\ufffd' is not valid Unicode"),
    )
    assert report.added == 1


async def test_a_new_version_that_fails_leaves_the_old_one_live(kit: Kit) -> None:
    await kit.run([item("pier.txt", b"The pier is oak.")])
    report = await kit.run([item("pier.txt", bytes(2000))])
    assert [failure.code for failure in report.failed] == ["parse_failed"]
    assert await kit.by_word("oak") == {"pier.txt"}


@pytest.mark.parametrize("content", [b"", b" \n"])
async def test_a_document_that_was_emptied_says_nothing_any_more(kit: Kit, content: bytes) -> None:
    await kit.run([item("pier.txt", b"The pier is oak."), item("buoy")])
    before = await kit.document("pier.txt")
    report = await kit.run([item("pier.txt", content), item("buoy")])
    assert [(one.code, one.error) for one in report.failed] == [
        ("empty_document", "test/pier.txt is empty; what it said before was removed")
    ]
    assert (report.removed, report.unchanged, report.documents) == (1, 1, 1)
    assert await kit.by_word("oak") == set()
    again = await kit.run([item("pier.txt", content)])
    assert (again.removed, again.failed[0].error) == (0, "test/pier.txt is empty")
    await kit.run([item("pier.txt", b"The pier is oak.")])
    assert (await kit.document("pier.txt")).id == before.id


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.html", b"<script>fill()</script>"), ("a.html", b"<img src=a.png>"), ("a.pdf", b"%PDF-1.7 cut off")],
)
async def test_a_document_whose_words_cannot_be_seen_keeps_those_it_had(kit: Kit, name: str, content: bytes) -> None:
    await kit.run([item(name, "The pier is oak.")])
    report = await kit.run([item(name, content)])
    assert (len(report.failed), report.removed) == (1, 0)
    assert await kit.by_word("oak") == {name}


async def test_a_picture_without_words_is_skipped_and_not_read_again(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def nothing(content: bytes, name: str, options: ParseOptions) -> Parsed:
        looks.append(name)
        raise NoTextSeen(f"no text was found in {name}")

    monkeypatch.setattr("ragstone.ingest.parsers.images.image.parse_image", nothing)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(64)
    for _ in range(2):
        report = await kit.run([item("pier"), item("logo.png", picture), item("crest.png", picture)])
        assert (report.failed, report.skipped, report.documents) == ((), 2, 1)
        assert report.warnings == ("test/logo.png and 1 more skipped: no text was found in it",)
    assert sorted(looks) == ["test/crest.png", "test/logo.png"]


async def test_warnings_of_the_parser_are_in_the_report(kit: Kit) -> None:
    report = await kit.run([item("pier", "The pi\u200ber is oak.")])
    assert report.warnings == ("test/pier: 1 hidden characters were removed",)


async def test_progress_is_monotone_and_complete(kit: Kit) -> None:
    items: list[Item | Failure] = [item(f"n{number}") for number in range(3 * LOOK_UP)]
    await kit.run(items[:LOOK_UP])
    items += [item("empty", ""), Failure("test/x", "too_large", "too large")]
    seen: list[Progress] = []
    report = await kit.run(items, seen=seen)
    assert counts(report) == (2 * LOOK_UP, 0, LOOK_UP, 2)
    assert {step.phase for step in seen} == {"reading", "waiting for the model", "embedding"}
    seen = [step for step in seen if step.document]
    assert [step.done for step in seen] == list(range(1, len(items) + 1))
    assert sorted(step.document for step in seen) == sorted(entry.uri for entry in items)
    for before, after in itertools.pairwise(seen):
        assert before.chunks <= after.chunks
        assert before.failed <= after.failed
    assert (seen[-1].chunks, seen[-1].failed) == (2 * LOOK_UP, 2)


async def test_a_long_document_tells_how_far_it_is(kit: Kit) -> None:
    long = " ".join(f"Sentence number {number} is here." for number in range(LONG_CHUNKS + 64))
    seen: list[Progress] = []
    await kit.run([item("short"), item("long", long)], seen=seen)
    parts = LONG_CHUNKS + 64
    told = [(step.stage, step.part, step.parts) for step in seen if step.document == "test/long"]
    assert told == [*(("embed", part, parts) for part in range(0, parts + 1, SLICE_CHUNKS)), ("", 0, 0)]
    assert [step.stage for step in seen if step.document == "test/short"] == [""]
    assert [step.embedded for step in seen] == sorted(step.embedded for step in seen)
    last = seen[-1]
    assert (last.embedded, last.cut, last.chunks) == (parts + 1, parts + 1, parts + 1)
    assert last.cut_bytes == last.read_bytes > len(long)


@pytest.mark.parametrize(("name", "kept"), [("MiniLM-L6", SLICE_CHUNKS), ("multilingual-MiniLM-L6", 0)])
async def test_slices_are_kept_for_the_very_model_that_embedded_them(kit: Kit, name: str, kept: int) -> None:
    class Stopped(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            if self.calls:
                raise asyncio.CancelledError
            return await super().embed(texts, role)

    family = "sentence-transformers/paraphrase-"
    long = item("long", " ".join(f"Sentence number {number} is here." for number in range(LONG_CHUNKS)))
    with pytest.raises(asyncio.CancelledError):
        await kit.run([long], embedder=Stopped(name=f"{family}MiniLM-L6"))
    model = FakeEmbedder(name=f"{family}{name}")
    await kit.run([long], embedder=model)
    assert sum(len(texts) for texts, _ in model.calls) == LONG_CHUNKS - kept


async def test_a_source_that_breaks_off_surfaces_its_error_and_what_was_stored_stays(kit: Kit) -> None:
    def source() -> Iterator[Item]:
        yield from (item(f"n{number}") for number in range(LOOK_UP))
        yield item("lost")
        raise ConnectionResetError("the mailbox hung up")

    with pytest.raises(ConnectionResetError, match="the mailbox hung up"):
        await kit.run(source())
    assert len(await kit.names()) == LOOK_UP
    assert counts(await kit.run([item("n0"), item("more")])) == (1, 0, 1, 0)


async def test_a_store_that_fails_ends_the_run_with_its_error(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await kit.run([item("pier")])

    def full(tenant: str) -> object:
        raise StoreFull("no space left on the device")

    async def find(*_: object) -> dict[str, Document]:
        monkeypatch.setattr(kit.ledger, "transaction", full)
        return {}

    monkeypatch.setattr(SqlTenantLedger, "find", find)
    with pytest.raises(StoreFull, match="no space left"):
        await kit.run([item(f"n{number}") for number in range(100)])
    monkeypatch.undo()
    assert await kit.names() == ["pier"]
    assert counts(await kit.run([item("buoy")])) == (1, 0, 0, 0)


class Gate(FakeEmbedder):
    """Says when it was reached and then never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_cancelled_run_leaves_everything_usable(kit: Kit) -> None:
    await kit.run([item("pier")])
    gate = Gate()
    run = asyncio.create_task(kit.run([item(f"n{number}") for number in range(200)], embedder=gate))
    await gate.reached.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(asyncio.all_tasks()) == 1
    assert await kit.names() == ["pier"]
    assert counts(await kit.run([item("pier"), item("n0")])) == (1, 0, 1, 0)


async def test_documents_larger_than_a_wave_and_many_small_ones(kit: Kit) -> None:
    sentences = [f"Sentence {number} of the long one." for number in range(2 * WAVE_CHUNKS)]
    long = item("long", "\n\n".join(sentences))
    small = [item(f"n{number}") for number in range(WAVE_CHUNKS + 10)]
    report = await kit.run([*small[:20], long, *small[20:]])
    assert counts(report) == (len(small) + 1, 0, 0, 0)
    assert report.chunks == len(small) + len(sentences)
    document = await kit.document("long")
    assert document.chunks == len(sentences)
    chunks = await kit.ledger.of("t").document_chunks(document.id)
    assert [chunk.chunk.text for chunk in chunks] == sentences
    assert sorted(kit.embedded_texts()) == sorted([*sentences, *(str(one.content) for one in small)])
    known = await kit.ledger.of("t").known_vectors(await kit.kb(), sentences[-1:])
    assert known[sentences[-1]] @ (await FakeEmbedder().embed(sentences[-1:])).vectors[0] > 0.999


@pytest.mark.req("R-ING-45")
async def test_the_model_gets_full_batches_of_small_documents(kit: Kit) -> None:
    await kit.run([item(f"n{number}") for number in range(FIRST_CHUNKS + 2 * WAVE_CHUNKS)])
    assert [len(texts) for texts, _ in kit.embedder.calls] == [FIRST_CHUNKS, WAVE_CHUNKS, WAVE_CHUNKS]


@pytest.mark.req("R-ING-38")
async def test_a_kb_that_does_not_exist_is_made(kit: Kit) -> None:
    assert await kit.ledger.of("t").kb("default") is None
    report = await kit.run([])
    assert counts(report) == (0, 0, 0, 0)
    assert (report.documents, report.chunks) == (0, 0)
    assert (await kit.kb()).name == "default"


async def test_the_ledger_is_asked_for_a_wave_not_for_each_document(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = kit.ledger.read

    async def counted(tenant: str, work: Any, *arguments: Any, **options: Any) -> Any:
        reads.append(work.__name__)
        return await read(tenant, work, *arguments, **options)

    monkeypatch.setattr(kit.ledger, "read", counted)
    await kit.run([item("first")])
    reads.clear()
    await kit.run([item(f"few {number}") for number in range(3)])
    few = sorted(reads)
    reads.clear()
    await kit.run([item(f"many {number}") for number in range(LOOK_UP // 2)])
    assert sorted(reads) == few

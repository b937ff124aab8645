"""The stages of a run beside the plain case: long documents, attachments, moves, near duplicates, verification."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from email.message import EmailMessage

import pytest
from tests.unit.ingest.kit import Kit, counts, item

from ragstone.core.audit import ErasureTarget
from ragstone.core.errors import NoTextSeen, RemoteError
from ragstone.core.ids import document_id
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Block, Candidate, Item, Parsed, Role
from ragstone.ingest.embed import LONG_CHUNKS, SLICE_CHUNKS
from ragstone.ingest.extract import SLICE_PAGES, extract
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.work import SourceListing
from ragstone.settings.tree import EnrichSettings
from ragstone.testing.fakes import FakeEmbedder


class KeptParts(dict[str, bytes]):
    """Parts in memory."""

    async def load(self, part: str) -> bytes | None:
        return self.get(part)

    async def save(self, part: str, data: bytes) -> None:
        self[part] = data


class PagedParser:
    """Reads a document of `pages` pages, and dies at one of them the first time."""

    def __init__(self, pages: int, dies_at: int = 0) -> None:
        self.pages = pages
        self.dies_at = dies_at
        self.read: list[int] = []

    async def __call__(self, content: bytes, name: str, options: ParseOptions) -> Parsed:
        if options.first_page <= self.dies_at < options.first_page + options.window:
            self.dies_at = 0
            raise ConnectionResetError
        last = min(self.pages, options.first_page + options.window - 1)
        self.read += range(options.first_page, last + 1)
        pieces = [f"Page {number}." for number in range(options.first_page, last + 1)]
        text = "\n\n".join(pieces)
        blocks = []
        start = 0
        for offset, piece in enumerate(pieces):
            blocks.append(Block("paragraph", start, start + len(piece), page=options.first_page + offset))
            start += len(piece) + 2
        following = last + 1 if last < self.pages else None
        return Parsed(text, tuple(blocks), metadata={"pages": self.pages}, next_page=following)


async def test_a_long_document_goes_on_where_it_broke_off() -> None:
    parser = PagedParser(4 * SLICE_PAGES - 7, dies_at=3 * SLICE_PAGES + 5)
    kept = KeptParts()
    book = Item("test", "book", "book.pdf", b"x" * 200_000)
    with pytest.raises(ConnectionResetError):
        await extract(book, parser, DEFAULT, kept)
    assert parser.read == list(range(1, 3 * SLICE_PAGES + 1))
    parser.read.clear()
    seen: list[tuple[int, int]] = []
    parsed = await extract(book, parser, DEFAULT, kept, lambda done, total: seen.append((done, total)))
    assert parser.read == list(range(3 * SLICE_PAGES + 1, parser.pages + 1))
    assert [done for done, _ in seen] == [SLICE_PAGES, 2 * SLICE_PAGES, 3 * SLICE_PAGES, parser.pages]
    assert parsed.text == "\n\n".join(f"Page {number}." for number in range(1, parser.pages + 1))
    assert [parsed.text[block.start : block.end] for block in parsed.blocks[-2:]] == [
        f"Page {parser.pages - 1}.",
        f"Page {parser.pages}.",
    ]
    assert parsed.blocks[-1].page == parser.pages


async def test_pages_without_text_are_read_again_once_words_can_be_seen_in_them() -> None:
    kept, scans = KeptParts(), Item("test", "scans", "scans.pdf", b"x" * 200_000)

    async def see_nothing(content: bytes, name: str, options: ParseOptions) -> Parsed:
        return replace(await PagedParser(2 * SLICE_PAGES)(content, name, options), text="", blocks=())

    with pytest.raises(NoTextSeen):
        await extract(scans, see_nothing, DEFAULT, kept)
    assert kept == {}
    parsed = await extract(scans, PagedParser(2 * SLICE_PAGES), DEFAULT, kept)
    assert [block.page for block in parsed.blocks] == list(range(1, 2 * SLICE_PAGES + 1))


class Breaks(FakeEmbedder):
    """Fails after some calls."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if self.left == 0:
            raise RemoteError("the line went dead")
        self.left -= 1
        return await super().embed(texts, role)


async def test_vectors_of_a_long_document_are_not_made_twice(kit: Kit) -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(LONG_CHUNKS + 100))
    long = item("long", text)
    broken = Breaks(after=3)
    with pytest.raises(RemoteError):
        await kit.run([long], embedder=broken)
    made = [text for texts, _ in broken.calls for text in texts]
    assert len(made) == 3 * SLICE_CHUNKS
    assert counts(await kit.run([long])) == (1, 0, 0, 0)
    again = kit.embedded_texts()
    assert not set(made) & set(again)
    assert len(made) + len(again) == LONG_CHUNKS + 100
    assert await kit.by_meaning("sentence number 7") == {"long"}


def mail(*attachments: tuple[str, str]) -> Item:
    message = EmailMessage()
    message["Subject"], message["From"] = "The timetable", "ada@ferry.example"
    message["Message-ID"] = "<1@ferry.example>"
    message.set_content("Ben, the new timetable is attached.")
    for name, text in attachments:
        message.add_attachment(text.encode(), maintype="text", subtype="plain", filename=name)
    return Item("test", "mail", "mail.eml", message.as_bytes(), metadata={"source_type": "email"})


@pytest.mark.req("R-ING-37", "R-ING-40", "R-NRM-10")
async def test_attachments_become_documents_with_the_mails_metadata(kit: Kit) -> None:
    report = await kit.run([mail(("a.txt", "The north line."), ("b.txt", "The south line."))])
    assert counts(report) == (3, 0, 0, 0)
    parent = await kit.document("mail")
    child = await kit.document("mail#1:a.txt")
    assert child.metadata["parent_doc_id"] == parent.id
    assert child.metadata["sender"] == parent.metadata["sender"]
    assert child.metadata["filename"] == "a.txt"
    assert await kit.by_word("north") == {"mail#1:a.txt"}
    async with kit.ledger.transaction("t") as tx:
        assert await tx.delete(parent.id)
    assert await kit.names() == []


async def test_a_mail_whose_attachments_were_lost_half_way_is_read_again(kit: Kit) -> None:
    """Killed between the wave of a mail and that of its attachment."""
    long = " ".join(f"Sentence number {number} is here." for number in range(LONG_CHUNKS + 10))
    letter = mail(("long.txt", long))

    class BreaksAfterTheMail(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            if "Sentence" not in texts[0]:
                return await super().embed(texts, role)
            while await kit.names() != ["mail"]:  # noqa: ASYNC110  (the ledger has no event to wait for)
                await asyncio.sleep(0.01)
            raise RemoteError("the line went dead")

    with pytest.raises(RemoteError):
        await kit.run([letter], embedder=BreaksAfterTheMail())
    assert await kit.names() == ["mail"]
    assert counts(await kit.run([letter])) == (1, 1, 0, 0)
    assert await kit.names() == ["mail", "mail#1:long.txt"]
    assert counts(await kit.run([letter])) == (0, 0, 1, 0)


async def test_an_attachment_says_itself_what_it_is(kit: Kit) -> None:
    await kit.run([mail(("a.py", "def north():\n    return 1\n"))])
    child = await kit.document("mail#1:a.py")
    assert child.metadata.get("content_type") != "email"
    assert "near_duplicate_of" not in child.metadata


async def test_an_attachment_that_is_gone_from_the_mail_goes(kit: Kit) -> None:
    await kit.run([mail(("a.txt", "The north line."), ("b.txt", "The south line."))])
    report = await kit.run([mail(("a.txt", "The north line."))])
    assert counts(report) == (0, 1, 1, 0)
    assert await kit.names() == ["mail", "mail#1:a.txt"]


async def test_an_attachment_that_cannot_be_read_is_named_and_the_mail_stays(kit: Kit) -> None:
    report = await kit.run([mail(("a.pdf", "no PDF at all"))])
    assert counts(report) == (1, 0, 0, 1)
    assert report.failed[0].uri == "mail.eml#a.pdf"
    assert await kit.names() == ["mail"]


async def test_an_attachment_whose_external_id_is_too_long_is_named_and_the_others_stay(kit: Kit) -> None:
    letter = replace(mail(("longer.txt", "The north line."), ("b.txt", "The south line.")), external_id="m" * 1990)
    report = await kit.run([letter])
    assert counts(report) == (2, 0, 0, 1)
    assert report.failed[0].uri == "mail.eml#longer.txt"
    assert await kit.names() == [letter.external_id, f"{letter.external_id}#2:b.txt"]


async def test_what_a_listing_no_longer_has_goes_and_what_moved_stays(kit: Kit) -> None:
    await kit.run([item("a"), item("b"), item("c")])
    moved = replace(item("b"), external_id="elsewhere/b", uri="test/elsewhere/b")
    before = (await kit.document("b")).id
    kit.embedded_texts()
    report = await kit.run([item("a"), moved], listings=[SourceListing("test", frozenset({"a", "elsewhere/b"}))])
    assert counts(report) == (0, 1, 1, 0)
    assert (report.removed, report.moved) == (1, 1)
    assert await kit.names() == ["a", "elsewhere/b"]
    assert (await kit.document("elsewhere/b")).id == before
    assert kit.embedded_texts() == []


async def test_a_listing_minds_only_its_own_part(kit: Kit) -> None:
    await kit.run([item("docs/a"), item("other/b")])
    report = await kit.run([], listings=[SourceListing("test", frozenset(), under="docs/")])
    assert report.removed == 1
    assert await kit.names() == ["other/b"]


async def test_an_attachment_that_equals_a_missing_file_is_a_document_of_its_mail(kit: Kit) -> None:
    await kit.run([item("a.txt", "The north line.")])
    listing = SourceListing("test", frozenset({"mail"}))
    report = await kit.run([mail(("a.txt", "The north line."))], listings=[listing])
    assert (*counts(report), report.removed, report.moved) == (2, 0, 0, 0, 1, 0)
    for _ in range(2):
        assert (await kit.run([mail(("a.txt", "The north line."))], listings=[listing])).removed == 0
    assert await kit.names() == ["mail", "mail#1:a.txt"]
    async with kit.ledger.transaction("t") as tx:
        assert await tx.erase(ErasureTarget("document", (await kit.document("mail")).id))
    assert await kit.names() == []


LETTER = " ".join(f"The {word} of the harbour is told in this sentence." for word in "abcdefghijklmnopqrstuvwxyz")


async def test_a_near_duplicate_says_so(kit: Kit) -> None:
    await kit.run([item("first", LETTER)])
    report = await kit.run([item("second", f"{LETTER} One more."), item("other", "Nothing of the kind.")])
    assert counts(report) == (2, 0, 0, 0)
    first = (await kit.document("first")).id
    assert (await kit.document("second")).metadata["near_duplicate_of"] == first
    assert "near_duplicate_of" not in (await kit.document("other")).metadata


async def test_near_duplicates_of_one_run_are_found(kit: Kit) -> None:
    await kit.run([item("first", LETTER), item("second", f"{LETTER} One more.")])
    first = (await kit.document("first")).id
    assert (await kit.document("second")).metadata["near_duplicate_of"] == first
    assert "near_duplicate_of" not in (await kit.document("first")).metadata


async def test_what_is_there_though_not_listed_stays(kit: Kit) -> None:
    await kit.run([item("docs/a"), item("docs/.hidden")])
    there = SourceListing("test", frozenset({"docs/a"}), under="docs/", is_there=lambda one: one == "docs/.hidden")
    assert (await kit.run([item("docs/a")], listings=[there])).removed == 0
    assert await kit.names() == ["docs/.hidden", "docs/a"]


async def test_what_is_live_is_not_left_out_as_a_near_duplicate(kit: Kit) -> None:
    await kit.run([item("first", LETTER), item("second", "Something else.")])
    kit.enrich = EnrichSettings(near_duplicates="skip")
    report = await kit.run([item("second", f"{LETTER} One more.")])
    assert counts(report) == (0, 1, 0, 0)


async def test_a_near_duplicate_may_be_left_out(kit: Kit) -> None:
    await kit.run([item("first", LETTER)])
    kit.enrich = EnrichSettings(near_duplicates="skip")
    report = await kit.run([item("second", f"{LETTER} One more.")])
    assert (counts(report), report.duplicates) == ((0, 0, 0, 0), 1)
    first = (await kit.document("first")).id
    assert report.warnings == (f"test/second: left out, since it is nearly the same as document {first}",)
    assert await kit.names() == ["first"]


@pytest.mark.req("R-ING-10", "R-ING-32")
async def test_every_stage_is_timed_and_counted(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ragstone")
    report = await kit.run([item("a", "One two three. Four five six."), item("b")])
    (record,) = caplog.records
    facts = record.__dict__["facts"]
    assert (record.getMessage(), facts["stored"], facts["failed"]) == ("ingested documents", 2, 0)
    assert facts["seconds"] >= 0
    names = ["fetch", "extract", "normalize", "chunk", "enrich", "embed", "store", "verify"]
    assert [stage.stage for stage in report.stages] == names
    passed = {stage.stage: (stage.entered, stage.left) for stage in report.stages}
    assert passed["extract"] == (2, 2)
    assert passed["chunk"] == (2, 2)
    assert passed["store"] == (2, 2)
    assert passed["verify"] == (2, 2)
    assert all(stage.ms >= 0 for stage in report.stages)


@pytest.mark.req("R-ING-30", "R-ING-31")
@pytest.mark.parametrize(
    ("arm", "answer", "problem"),
    [
        ("_lexical", [], "it was not found by its own words"),
        ("_vectors", [], "its own vector found nothing where 1.000 was expected"),
        ("_vectors", [Candidate("x", 0.4)], "its own vector found 0.400 where 1.000 was expected"),
    ],
)
async def test_what_cannot_be_found_again_is_reported(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, arm: str, answer: list[Candidate], problem: str
) -> None:
    pipeline = kit.pipeline()

    async def blind(*_: object) -> list[Candidate]:
        return answer

    monkeypatch.setattr(getattr(pipeline._verifier, arm), "search", blind)
    report = await pipeline.run("t", "default", [item("a")])
    assert report.degraded == (f"verify: test/a: {problem}",)


async def test_what_is_deleted_while_it_is_read_does_not_come_back(kit: Kit) -> None:
    """FAULTS 9, for a run without a job."""
    await kit.run([item("a")])
    identity = document_id("t", "default", "test", "a")

    class DeletesMeanwhile(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            async with kit.ledger.transaction("t") as tx:
                assert await tx.delete(identity)
            return await super().embed(texts, role)

    report = await kit.run([item("a", "Other words now.")], embedder=DeletesMeanwhile())
    assert [(failure.code, failure.uri) for failure in report.failed] == [("gone", "test/a")]
    assert await kit.names() == []


@pytest.mark.req("R-CHK-17")
async def test_the_contextual_text_is_what_the_model_gets(kit: Kit) -> None:
    await kit.run(
        [Item("test", "page", "page.md", b"# Fares\n\nDogs travel for two crowns.\n\n## Boats\n\nAll of them.")]
    )
    document = await kit.document("page")
    chunks = [one.chunk for one in await kit.ledger.of("t").document_chunks(document.id)]
    assert sorted(kit.embedded_texts()) == sorted(chunk.contextual for chunk in chunks)
    assert any(chunk.contextual != chunk.text for chunk in chunks)


@pytest.mark.req("R-ING-35")
async def test_several_documents_are_prepared_at_once(kit: Kit) -> None:
    """None of them would ever be through if they went one after the other."""
    together = asyncio.Barrier(5)
    pipeline = kit.pipeline()
    parse = pipeline._preparer._parse

    async def all_at_once(content: bytes, name: str, options: ParseOptions) -> Parsed:
        await asyncio.wait_for(together.wait(), 240)
        return await parse(content, name, options)

    pipeline._preparer._parse = all_at_once
    items = [Item("test", str(number), f"{number}.txt", f"Text {number}.".encode()) for number in range(5)]
    assert counts(await pipeline.run("t", "default", items)) == (5, 0, 0, 0)


def test_the_shares_of_stages_that_work_side_by_side_add_up_to_the_time_that_passed() -> None:
    now = 0.0
    times = StageTimes(lambda: now)
    now = 1.0
    with times.measure("extract"):
        now = 3.0
        with times.measure("embed"), times.measure("embed"):
            now = 7.0
    now = 8.0
    assert times.shares() == {"other": 2000.0, "extract": 4000.0, "embed": 2000.0}
    assert [(stage.stage, stage.ms) for stage in times.stages()] == [("extract", 6000.0), ("embed", 8000.0)]

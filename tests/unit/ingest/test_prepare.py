from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ragstone.core.errors import EmptyDocument, InputError, ParserLimit
from ragstone.core.ids import content_hash
from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Block, Document, Failure, Item, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.extract import plain_text
from ragstone.ingest.parsers.draft import ParseOptions, broken_rules
from ragstone.ingest.prepare import Prepared, PrepareOptions, Preparer, find_unusable
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import ChunkingSettings

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ITEM = Item("mail", "42", "mail/42", "The ferry leaves at nine.", metadata={"year": 2026})


class NoParts:
    """Keeps nothing."""

    async def load(self, part: str) -> bytes | None:
        return None

    async def save(self, part: str, data: bytes) -> None:
        raise AssertionError(part)


async def parse(content: bytes, name: str, options: ParseOptions) -> Parsed:
    """A parser that finds one paragraph, a title and a little metadata."""
    text = content.decode()
    metadata = {"author": "Ada", "year": 1999}
    return Parsed(text, (Block("paragraph", 0, len(text)),), title="Parsed title", metadata=metadata)


def preparer(*, size: int = 8, model: str = "model@1", max_chunks: int = 100, strategy: str = "sentence") -> Preparer:
    chosen = ChunkingSettings.model_validate({"strategy": strategy, "size": size, "overlap": 0})
    chunker = build_chunker(chosen, WordTokenizer(), lambda texts: np.ones((len(texts), 1), np.float32))
    return Preparer(parse, PrepareOptions(lambda kind: chunker, model, max_chunks))


async def prepared_by(by: Preparer, item: Item) -> Prepared:
    return await by.prepare(WorkItem(item, JobBatch()), NoParts(), StageTimes())


async def live(item: Item, by: Preparer, **changes: Any) -> Document:
    """The document that the ledger would hold after this item was ingested."""
    prepared = await prepared_by(by, item)
    document = Document(
        id="d",
        kb="default",
        source=item.source,
        external_id=item.external_id,
        uri=item.uri,
        title=prepared.parsed.title,
        content_hash=prepared.content_hash,
        version=1,
        chunks=len(prepared.chunks),
        tokens=0,
        media_type=prepared.parsed.media_type,
        metadata=prepared.metadata,
        recipe=prepared.recipe,
        embedded=True,
        modified_at=None,
        created_at=MOMENT,
        updated_at=MOMENT,
    )
    return replace(document, **changes)


async def test_text_is_cut_and_analysed() -> None:
    item = replace(ITEM, content="The ferry leaves at nine. Dogs travel for two crowns.")
    prepared = await prepared_by(preparer(), item)
    assert [chunk.text for chunk in prepared.chunks] == ["The ferry leaves at nine.", "Dogs travel for two crowns."]
    assert prepared.terms == ("ferri leav nine", "dog travel two crown")
    assert prepared.content_hash == content_hash(item.content)


async def test_bytes_go_through_the_parser_and_what_the_source_says_wins() -> None:
    prepared = await prepared_by(preparer(), replace(ITEM, content=b"Some words."))
    assert prepared.parsed.text == "Some words."
    assert {key: prepared.metadata[key] for key in ("author", "year", "source")} == {
        "author": "Ada",
        "year": 2026,
        "source": "mail",
    }


@pytest.mark.parametrize(
    ("content", "given", "title"),
    [
        (b"Words.", "Given", "Given"),
        (b"Words.", "", "Parsed title"),
        ("Words.", "Given", "Given"),
        ("Words.", "", "42"),
        ("Words.", " Two\nlines\t", "Two lines"),
        ("Words.", "bad \ud800", "bad \ufffd"),
        (b"Words.", "long" * 1000, "long" * 125),
    ],
)
async def test_the_title_is_the_source_s_then_the_parser_s_then_the_name(
    content: bytes | str, given: str, title: str
) -> None:
    prepared = await prepared_by(preparer(), replace(ITEM, content=content, title=given))
    assert prepared.parsed.title == title


async def test_metadata_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(InputError, match="metadata 'year' holds set, which is not JSON"):
        await prepared_by(preparer(), replace(ITEM, metadata={"year": {1}}))


async def test_a_document_that_makes_too_many_chunks_is_refused() -> None:
    item = replace(ITEM, content="One two three. " * 9)
    assert len((await prepared_by(preparer(max_chunks=5), item)).chunks) == 5
    with pytest.raises(ParserLimit) as caught:
        await prepared_by(preparer(max_chunks=4), item)
    assert str(caught.value) == "mail/42 would make 5 chunks; limits.document_chunks allows 4"
    assert caught.value.hint == "split the file, or raise the limit"


async def test_an_unchanged_item_is_current() -> None:
    by = preparer()
    assert by.is_current(ITEM, await live(ITEM, by))
    assert by.is_current(replace(ITEM), await live(ITEM, preparer()))


async def test_an_item_that_nobody_knows_is_not_current() -> None:
    assert not preparer().is_current(ITEM, None)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ITEM, content="The ferry leaves at ten."),
        replace(ITEM, title="Ferry"),
        replace(ITEM, uri="mail/moved"),
        replace(ITEM, metadata={"year": 2027}),
        replace(ITEM, metadata={"year": 2026, "label": "work"}),
    ],
)
async def test_a_change_of_the_item_makes_it_worth_doing_again(changed: Item) -> None:
    by = preparer()
    assert not by.is_current(changed, await live(ITEM, by))


async def test_a_file_that_was_only_touched_is_current() -> None:
    by = preparer()
    first = replace(ITEM, metadata={"modified_date": MOMENT}, modified_at=MOMENT)
    later = datetime(2026, 2, 2, tzinfo=UTC)
    touched = replace(first, metadata={"modified_date": later}, modified_at=later)
    assert by.is_current(touched, await live(first, by))


async def test_another_chunker_makes_everything_worth_doing_again() -> None:
    assert not preparer(size=9).is_current(ITEM, await live(ITEM, preparer()))


@pytest.mark.parametrize(("strategy", "current"), [("sentence", True), ("semantic", False), ("hybrid", False)])
async def test_another_model_does_so_only_where_it_says_where_to_cut(strategy: str, current: bool) -> None:
    before = preparer(strategy=strategy, model="model@1")
    after = preparer(strategy=strategy, model="model@2")
    assert after.is_current(ITEM, await live(ITEM, before)) is current


async def test_a_document_without_vectors_is_not_current() -> None:
    by = preparer()
    assert not by.is_current(ITEM, await live(ITEM, by, embedded=False))


def test_plain_text_is_cut_at_blank_lines() -> None:
    parsed = plain_text("One\r\n\r\ntwo\nthree\n\n\n\n four ", "a")
    assert parsed.text == "One\n\ntwo\nthree\n\nfour"
    assert broken_rules(parsed) == []
    assert [parsed.text[block.start : block.end] for block in parsed.blocks] == ["One", "two\nthree", "four"]


def test_a_title_stands_above_plain_text() -> None:
    parsed = plain_text("One two.", "a", "Numbers")
    assert (parsed.text, parsed.title) == ("Numbers\n\nOne two.", "Numbers")
    assert broken_rules(parsed) == []


@pytest.mark.parametrize("text", ["", " \n\n\t ", "\x00\x01"])
def test_text_without_a_visible_character_is_refused_by_name(text: str) -> None:
    with pytest.raises(EmptyDocument, match="no text was found in mail/7"):
        plain_text(text, "mail/7")


@pytest.mark.parametrize(
    ("item", "failure"),
    [
        (ITEM, None),
        (replace(ITEM, content="lone \ud800 surrogate", title="\ud800"), None),
        (replace(ITEM, source=""), Failure("mail/42", "invalid_input", "the source of 'mail/42' is missing")),
        (replace(ITEM, external_id=""), Failure("mail/42", "invalid_input", "the external id of 'mail/42' is missing")),
        (replace(ITEM, uri=""), Failure("42", "invalid_input", "the uri of '42' is missing")),
        (
            replace(ITEM, external_id="\udcff"),
            Failure("mail/42", "invalid_input", "the external id of 'mail/42' is not valid Unicode"),
        ),
        (
            replace(ITEM, external_id="4\x002"),
            Failure("mail/42", "invalid_input", "the external id of 'mail/42' holds a NUL character"),
        ),
        (
            replace(ITEM, uri="mail/\udcff"),
            Failure("mail/\ufffd", "invalid_input", "the uri of 'mail/\ufffd' is not valid Unicode"),
        ),
        (replace(ITEM, external_id="é" * 1000, source="s" * 500, uri="u" * 5000), None),
        (
            replace(ITEM, external_id="é" * 1000 + "e"),
            Failure(
                "mail/42", "invalid_input", "the external id of 'mail/42' has 2,001 bytes; at most 2,000 can be stored"
            ),
        ),
        (
            replace(ITEM, source="s" * 501),
            Failure("mail/42", "invalid_input", "the source of 'mail/42' has 501 bytes; at most 500 can be stored"),
        ),
    ],
)
def test_an_item_without_a_proper_identity_is_unusable(item: Item, failure: Failure | None) -> None:
    assert find_unusable(item) == failure


def test_a_live_document_whose_external_id_is_too_long_now_is_not_taken_for_gone() -> None:
    long = replace(ITEM, external_id="e" * 2001)
    failure = find_unusable(long)
    assert failure is not None
    assert failure.external_id == long.external_id

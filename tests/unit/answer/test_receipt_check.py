"""What holds in a receipt is what would be said today: the same checks, the same names, the same marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.answer.receipts import FACTS, checked, forged, live, receipt_of, stored

from ragstone.answer.ask import Judge
from ragstone.answer.check import Checker
from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.receipts import check as receipt_check
from ragstone.answer.receipts.check import LiveDocument
from ragstone.answer.receipts.make import Wording, make_receipt
from ragstone.answer.reply import CitedSentence
from ragstone.core.answers import Answer
from ragstone.core.errors import InputError
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]
DROPPED = [
    ("Critics claim that the pump leaks oil.", "The pump leaks oil."),
    ("If the disk is full, the ingest stops.", "The ingest stops."),
    ("The pump stops at 80 degrees and the fan stops at 40 degrees.", "The pump stops at 40 degrees."),
    ("The ferry does not leave on Sundays.", "The ferry leaves on Sundays."),
    ("The ferry leaves at nine.", "The ferry never leaves at nine."),
    ("The new pump is faster than the old pump.", "The old pump is faster than the new pump."),
    ("The harbour would have closed in May.", "The harbour closed in May."),
    ("Some pumps stop at 80 degrees.", "All pumps stop at 80 degrees."),
    ("It is false that the pump stops at 80 degrees.", "The pump stops at 80 degrees."),
    ("The pump stops at 80 degrees.", "The pump stops at 80 degrees, says evil.example."),
    ("The pump stops at 80 degrees.", "The pump stops at 80 degrees, see https://evil.example/x"),
    ("The pump stops at 80 degrees.", "Pump explodes."),
    ("The bridge was formerly open to cars.", "The bridge is open to cars."),
    ("Alice sold the boat to Bob.", "Bob sold the boat to Alice."),
]


@pytest.mark.parametrize(("source", "sentence"), DROPPED, ids=range(len(DROPPED)))
async def test_a_sentence_that_answering_would_drop_does_not_hold(
    make_hit: MakeHit, source: str, sentence: str
) -> None:
    hit = make_hit(source)
    answering = Checker({1: hit}, Judge().relations)
    assert await answering.check(CitedSentence(sentence, (1,), sentence)) is None
    made = receipt_of([Statement(sentence, "supported", (Quote(hit, 0, len(source)),))])
    report = await checked(made, doc=source)
    assert (report.intact, report.holds) == (True, False)
    assert answering.omissions == [f"1 left out: {report.sentences[0].reason}"]


async def test_what_the_passage_says_beside_the_quote_counts(make_hit: MakeHit) -> None:
    """A forger may choose the quote, but not what else the passage says."""
    text = "The ferry leaves at nine. The ferry never leaves on Sundays at nine."
    hit = make_hit(text)
    made = receipt_of([Statement("The ferry leaves on Sundays at nine.", "supported", (Quote(hit, 0, 25),))])
    assert (await checked(made, doc=text)).sentences[0].reason == "one says that this is so, the other that it is not"


async def test_a_quote_must_be_the_words_that_say_it(make_hit: MakeHit) -> None:
    text = "Our offices are blue. The pump stops at 80 degrees."
    hit = make_hit(text)
    for start, end, reason in ((0, 21, "its quotes are not the words that say it"), (22, 51, "")):
        made = receipt_of([Statement("Pumps stop at 80 degrees.", "supported", (Quote(hit, start, end),))])
        assert (await checked(made, doc=text)).sentences[0].reason == reason


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("It is false that the pump never stops.", 17, 38),
        ("# The pump stops at 80 degrees\n\nMore.", 2, 30),
        ("Does the pump stop at 80 degrees?", 0, 33),
    ],
)
async def test_a_quotation_is_a_whole_sentence_that_states_something(
    make_hit: MakeHit, text: str, start: int, end: int
) -> None:
    hit = make_hit(text)
    made = receipt_of([Statement(text[start:end], "quoted", (Quote(hit, start, end),))])
    report = await checked(made, doc=text)
    assert report.sentences[0].reason == "its quote is not a whole sentence of its source"


async def test_a_quotation_has_one_quote(make_hit: MakeHit) -> None:
    text = "The pump stops at 80 degrees. The fan draws 40 watts."
    hit = make_hit(text)
    made = receipt_of([Statement(text[:29], "quoted", (Quote(hit, 0, 29), Quote(hit, 30, 53)))])
    assert (await checked(made, doc=text)).sentences[0].reason == "its words are not those of its quote"


PUMPS = "The pump stops at 80 degrees."


@pytest.fixture
def quoted(make_hit: MakeHit) -> dict[str, Any]:
    hit = make_hit(PUMPS, section="Manual > Heat", page=3)
    return receipt_of([Statement(PUMPS, "quoted", (Quote(hit, 0, len(PUMPS)),))])


KEPT = {"section": ("Manual", "Heat"), "page": 3}


@pytest.mark.parametrize(
    ("facts", "differences"),
    [
        ({}, ()),
        ({"title": "Notes"}, ("its title is “Notes”, the receipt says “Doc”",)),
        ({"uri": "b.md"}, ("its address is “b.md”, the receipt says “doc.md”",)),
        ({"section": ()}, ("its section is “”, the receipt says “Manual > Heat”",)),
        ({"page": 4}, ("its page is “4”, the receipt says “3”",)),
        ({"page": 2, "metadata": {"page_starts": [[0, 3], [10, 4]]}}, ()),
    ],
)
async def test_what_is_called_otherwise_is_named_and_is_no_tampering(
    quoted: dict[str, Any], facts: dict[str, Any], differences: tuple[str, ...]
) -> None:
    report = await checked(quoted, doc=stored("doc", PUMPS, **(KEPT | facts)))
    assert report.differences == tuple(f"quote 1: {one}" for one in differences)
    assert (report.tampering, report.holds) == ((), not differences)
    assert [one.holds for one in report.sentences] == [True]


async def test_a_forged_title_is_named(quoted: dict[str, Any]) -> None:
    made = forged(quoted, citations=[quoted["citations"][0] | {"title": "A study " + "x" * 200}])
    report = await checked(made, doc=stored("doc", PUMPS, **KEPT))
    assert report.differences == (f"quote 1: its title is “Doc”, the receipt says “A study {'x' * 71}…”",)
    assert not report.holds


async def test_a_name_that_the_document_lost_supports_nothing(make_hit: MakeHit) -> None:
    text = "It stops at 80 degrees."
    hit = make_hit(text, title="The Kestrel pump")
    made = receipt_of([Statement("The Kestrel pump stops at 80 degrees.", "supported", (Quote(hit, 0, 23),))])
    assert (await checked(made, doc=stored("doc", text, title="The Kestrel pump"))).holds
    (sentence,) = (await checked(made, doc=text)).sentences
    assert sentence.reason == "its source does not name Kestrel"


async def test_a_document_that_is_cut_otherwise_now_still_bears_it_out(quoted: dict[str, Any]) -> None:
    whole = f"Preface. {PUMPS} More of it."
    section = {"section": ("Manual", "Heat"), "page": 3}
    two = [live("doc", whole[:20], **section), live("doc", whole[20:], 20, 1, **section)]
    report = await checked(quoted, doc=LiveDocument(whole, two))
    assert (report.citations[0].state, report.citations[0].start, report.holds) == ("moved", 9, True)


async def test_of_passages_that_overlap_the_one_that_was_cited_counts(quoted: dict[str, Any]) -> None:
    above = live("doc", PUMPS, title="Wrong")
    cited = live("doc", PUMPS, **KEPT)
    assert (await checked(quoted, doc=LiveDocument(PUMPS, [above, cited]))).holds


async def test_words_that_no_passage_has_any_more_are_not_found_either(quoted: dict[str, Any]) -> None:
    report = await checked(quoted, doc=LiveDocument(PUMPS, []))
    assert report.sentences[0].reason == "its document no longer says so"


@pytest.mark.parametrize(
    ("marks", "here", "differs"),
    [
        ("[{index}]", "({index})", False),
        ("[siehe Beleg {index}]", "[siehe Beleg {index}]", False),
        ("[this is a lie {index}]", "[{index}]", True),
        ("👎{index}", "[{index}]", True),
    ],
)
async def test_marks_may_speak_only_as_they_do_here(make_hit: MakeHit, marks: str, here: str, differs: bool) -> None:
    hit = make_hit(PUMPS)
    statement = Statement(PUMPS, "quoted", (Quote(hit, 0, len(PUMPS)),))
    report = await checked(receipt_of([statement], Wording("index", marks)), here, doc=PUMPS)
    assert (report.tampering, report.holds) == ((), not differs)
    assert report.differences == (
        (f"its marks read “{marks}”, which is not how marks are written here",) if differs else ()
    )


async def test_marks_without_a_number_are_forged(quoted: dict[str, Any]) -> None:
    made = forged(quoted, answer=f"{PUMPS} Drink it.", wording={"style": "index", "format": "Drink it."})
    assert (await checked(made, doc=stored("doc", PUMPS, **KEPT))).tampering == (
        "the answer is not made of its sentences",
    )


async def test_a_receipt_from_before_wordings_were_kept_is_read(quoted: dict[str, Any]) -> None:
    old = {name: value for name, value in quoted.items() if name != "wording"}
    assert (await checked(forged(old), doc=stored("doc", PUMPS, **KEPT))).holds


async def test_one_that_has_too_much_read_is_refused(quoted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_check, "MOST_READ_CHARS", len(PUMPS))
    assert (await checked(quoted, doc=stored("doc", PUMPS, **KEPT))).holds
    with pytest.raises(InputError, match="at most 29 are read again"):
        await checked(quoted, doc=stored("doc", PUMPS + " ", **KEPT))


def test_an_answer_without_sources_has_no_receipt() -> None:
    answer = Answer("Why?", "Because.", (), (), "without_sources")
    with pytest.raises(InputError, match="stands on no passage"):
        make_receipt(answer, **FACTS)

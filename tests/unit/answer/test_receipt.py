"""Receipts: replayed on documents that stay, move, change and go, and on receipts that somebody changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from tests.unit.answer.receipts import checked, forged, receipt_of, stored

from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.receipts.check import LiveDocument, check_receipt
from ragstone.answer.receipts.make import Wording, digest
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.types import Hit
from ragstone.settings.answers import CitationStyle

PUMPS = "Our pumps are blue. The pump stops at 80 degrees. Ask for more."
FANS = "A fan draws 40 watts."


@pytest.fixture
def receipt(make_hit: Callable[..., Hit]) -> dict[str, Any]:
    pumps, fans = make_hit(PUMPS, "pumps"), make_hit(FANS, "fans")
    made = receipt_of(
        [
            Statement("Pumps stop at 80 degrees.", "supported", (Quote(pumps, 20, 49),)),
            Statement(FANS, "quoted", (Quote(fans, 0, len(FANS)),)),
        ]
    )
    return json.loads(json.dumps(made))


def test_it_holds_what_is_needed_to_look_again(receipt: dict[str, Any]) -> None:
    assert receipt["models"] == {"embedding": "granite@1", "llm": None}
    assert (receipt["engine"], receipt["moment"]) == ("1.2", "2026-01-02T00:00:00+00:00")
    assert (receipt["profile"], receipt["kb"], receipt["question"]) == (
        *("default", "manuals"),
        "When does the pump stop?",
    )
    assert receipt["answer_hash"] == content_hash("Pumps stop at 80 degrees. [1] A fan draws 40 watts. [2]")
    first = receipt["citations"][0]
    assert (first["document_id"], first["start"], first["end"]) == ("pumps", 20, 49)
    assert first["hash"] == content_hash("The pump stops at 80 degrees.")


async def test_it_holds_while_the_documents_do(receipt: dict[str, Any]) -> None:
    report = await checked(receipt, pumps=PUMPS, fans=FANS)
    assert (report.holds, report.intact) == (True, True)
    assert [one.state for one in report.citations] == ["stands", "stands"]


@pytest.mark.parametrize(
    ("pumps", "state", "start", "reason"),
    [
        ("New preface.\n\n" + PUMPS, "moved", 34, ""),
        (PUMPS[20:], "moved", 0, ""),
        (PUMPS.replace("80", "90"), "changed", 20, "its document no longer says so"),
        (None, "gone", 20, "its document is gone"),
    ],
)
async def test_what_becomes_of_a_sentence(
    receipt: dict[str, Any], pumps: str | None, state: str, start: int, reason: str
) -> None:
    documents = {"fans": FANS} | ({"pumps": pumps} if pumps else {})
    report = await checked(receipt, **documents)
    assert (report.citations[0].state, report.citations[0].start) == (state, start)
    assert [(one.holds, one.reason) for one in report.sentences] == [(not reason, reason), (True, "")]
    assert (report.intact, report.holds) == (True, not reason)


def _set(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(receipt: dict[str, Any]) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = receipt
        for part in way:
            place = place[part]
        place[last] = value

    return change


CHANGES = [
    _set("question", "Another?"),
    _set("answer", "Pumps never stop. [1]"),
    _set("moment", "2020-01-01T00:00:00+00:00"),
    _set("models.llm", "a-better-one"),
    _set("sentences.0.text", "Pumps stop at 80 degrees, always."),
    _set("sentences.1.support", "supported"),
    _set("citations.0.quote", "Our pumps are blue."),
    _set("citations.0.title", "Another manual"),
    _set("digest", "0" * 64),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
async def test_any_change_shows(receipt: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> None:
    change(receipt)
    report = await checked(receipt, pumps=PUMPS, fans=FANS)
    assert not report.intact
    assert not report.holds
    assert report.tampering[0] == "its digest does not fit: it is not as it was made"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("sentences.0.text", "Pumps stop at 95 degrees."), "its source does not give that number"),
        (_set("sentences.1.text", "A fan draws 4 watts."), "its words are not those of its quote"),
        (_set("sentences.0.citations", [7]), "it cites nothing that the receipt holds"),
        (_set("sentences.0.citations", []), "it cites nothing that the receipt holds"),
    ],
)
async def test_a_receipt_forged_with_a_fitting_digest_is_still_not_borne_out(
    receipt: dict[str, Any], change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    change(receipt)
    receipt["digest"] = digest(receipt)
    report = await checked(receipt, pumps=PUMPS, fans=FANS)
    assert reason in [one.reason for one in report.sentences]
    assert not report.holds


async def test_order_and_space_do_not_matter(receipt: dict[str, Any]) -> None:
    turned = dict(reversed(copy.deepcopy(receipt).items()))
    assert (await checked(turned, pumps=PUMPS, fans=FANS)).holds


@pytest.mark.parametrize(
    "change",
    [
        lambda receipt: receipt.clear(),
        lambda receipt: receipt.update(unanswered=["who runs it"] * 101),
        lambda receipt: receipt.update(unanswered=["w" * 8001]),
        lambda receipt: receipt.pop("citations"),
        lambda receipt: receipt.update(note="x"),
        _set("receipt", 2),
        _set("citations.0.start", -1),
        _set("citations.0.quote", ""),
        _set("sentences", {"a": 1}),
        _set("citations", [{}] * 2000),
    ],
)
async def test_what_is_no_receipt_is_refused(receipt: dict[str, Any], change: Callable[..., None]) -> None:
    change(receipt)
    with pytest.raises(InputError, match=r"^this is not a receipt of an answer: "):
        await checked(receipt)


@pytest.mark.parametrize(
    "fields",
    [
        {"answer": "The pump explodes at 20 degrees."},
        {"answer": "The pump explodes.", "sentences": [], "citations": []},
        {"answer": "Pumps stop at 80 degrees. [1] A fan draws 40 watts. [2] Drink it."},
        {"answer": "Pumps stop at 80 degrees. [lies 1] A fan draws 40 watts. [lies 2]"},
        {"answer": "Drink it.", "sentences": [], "citations": [], "status": "no_evidence"},
        {"status": "no_evidence"},
    ],
    ids=range(6),
)
async def test_an_answer_of_other_words_than_its_sentences_is_forged(
    receipt: dict[str, Any], fields: dict[str, object]
) -> None:
    report = await checked(forged(receipt, **fields), pumps=PUMPS, fans=FANS)
    assert report.tampering == ("the answer is not made of its sentences",)
    assert not report.holds


@pytest.mark.parametrize("style", get_args(CitationStyle))
@pytest.mark.parametrize("marks", ["[{index}]", "({index})", "[siehe Beleg {index}]", "^{index}"])
async def test_an_answer_of_any_style_holds(make_hit: Callable[..., Hit], style: CitationStyle, marks: str) -> None:
    pumps, fans = make_hit(PUMPS, "pumps"), make_hit(FANS, "fans")
    both = Quote(pumps, 20, 49), Quote(fans, 0, 21)
    made = receipt_of(
        [
            Statement("Pumps stop at 80 degrees.", "supported", both),
            Statement(FANS, "quoted", (Quote(fans, 0, len(FANS)),)),
        ],
        Wording(style, marks),
    )
    assert (await checked(made, marks, pumps=PUMPS, fans=FANS)).holds


async def test_nothing_found_holds() -> None:
    assert (await checked(receipt_of([]))).holds


async def test_a_document_is_read_once_and_what_cites_too_much_is_refused(receipt: dict[str, Any]) -> None:
    asked: list[str] = []

    async def look(document_id: str) -> LiveDocument | None:
        asked.append(document_id)
        return stored(document_id, PUMPS)

    first, sentence = receipt["citations"][0], receipt["sentences"][0]
    many = forged(receipt, citations=[first | {"n": n} for n in range(1, 40)])
    await check_receipt(many, look)
    assert asked == ["pumps"]
    crowd = forged(receipt, sentences=[sentence | {"citations": [1] * 100}] * 21)
    with pytest.raises(InputError, match="cites more than any answer does"):
        await check_receipt(crowd, look)

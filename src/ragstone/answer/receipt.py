"""Receipts of answers: made when the answer is given, checked against the live documents at any time after.

A receipt is a JSON object. Its digest covers every other field, so that a change of any of them shows; and because
quotes and sentences are checked anew, a receipt that was forged as a whole still has to be borne out by the documents.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, ValidationError

from ragstone.answer.support import unsupported
from ragstone.core.answers import Answer, Citation, Sentence, Support
from ragstone.core.clock import canonical
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.proof import CheckedCitation, CheckedSentence, QuoteState, ReceiptReport
from ragstone.core.section import Section
from ragstone.core.types import Json

TextOf = Callable[[str], Awaitable[str | None]]
"""The live text of a document, None when there is none."""

VERSION = 1
REACH = 8000
"""How much of the document around a quote may bear out what is said from it: more than the longest passage."""
MOST = 1000
_NOT_ONE = "this is not a receipt of an answer"
_HINT = "make one with: ragstone ask QUESTION --receipt FILE"


class _Citation(Section):
    n: int
    document_id: str
    chunk_id: str
    title: str
    uri: str
    section: str
    page: int | None
    site: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    quote: str = Field(min_length=1)
    hash: str


class _Sentence(Section):
    text: str
    support: Support
    citations: tuple[int, ...] = Field(max_length=MOST)


class _Receipt(Section):
    receipt: Literal[1]
    engine: str
    moment: str
    tenant: str
    kb: str
    profile: str
    models: dict[str, str | None]
    question: str
    answer: str
    answer_hash: str
    status: Literal["answered", "no_evidence"]
    sentences: tuple[_Sentence, ...] = Field(max_length=MOST)
    citations: tuple[_Citation, ...] = Field(max_length=MOST)
    digest: str


def make_receipt(
    answer: Answer,
    *,
    engine: str,
    moment: datetime,
    tenant: str,
    kb: str,
    profile: str,
    models: Mapping[str, str | None],
) -> dict[str, Json]:
    """All that is needed to check an answer later, as JSON."""
    body: dict[str, Json] = {
        "receipt": VERSION,
        "engine": engine,
        "moment": canonical(moment),
        "tenant": tenant,
        "kb": kb,
        "profile": profile,
        "models": dict(models),
        "question": answer.question,
        "answer": answer.answer,
        "answer_hash": content_hash(answer.answer),
        "status": answer.status,
        "sentences": [_sentence_json(sentence) for sentence in answer.sentences],
        "citations": [_citation_json(citation) for citation in answer.citations],
    }
    return {**body, "digest": digest(body)}


def digest(body: Mapping[str, Json]) -> str:
    """The hash of a receipt's fields, however they are spaced and ordered."""
    bare = {name: value for name, value in body.items() if name != "digest"}
    return content_hash(json.dumps(bare, sort_keys=True, separators=(",", ":")))


async def check_receipt(value: Mapping[str, Any], text_of: TextOf) -> ReceiptReport:
    """Which quotes still stand, and which sentences therefore hold. Raises `InputError` for what is no receipt."""
    receipt = _read(value)
    texts = {
        one.document_id: None if one.site else await text_of(one.document_id) for one in receipt.citations
    }
    checked = {one.n: _look_for(one, texts[one.document_id]) for one in receipt.citations}
    around = {
        one.n: f"{one.title}\n{one.section}\n{_around(texts[one.document_id], checked[one.n])}"
        for one in receipt.citations
    }
    sentences = tuple(_check_sentence(sentence, checked, around) for sentence in receipt.sentences)
    return ReceiptReport(
        receipt.question, receipt.moment, _tampering(receipt, value), tuple(checked.values()), sentences
    )


def _read(value: Mapping[str, Any]) -> _Receipt:
    try:
        return _Receipt.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{_NOT_ONE}: {where[:80]}: {first['msg']}", hint=_HINT) from error


def _tampering(receipt: _Receipt, value: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    if digest(value) != receipt.digest:
        found.append("its digest does not fit: it is not as it was made")
    if content_hash(receipt.answer) != receipt.answer_hash:
        found.append("the answer is not the one it was made for")
    found += [
        f"quote {one.n} is not the one it was made for"
        for one in receipt.citations
        if content_hash(one.quote) != one.hash
    ]
    numbers = [one.n for one in receipt.citations]
    if len(set(numbers)) != len(numbers):
        found.append("two citations have the same number")
    return tuple(found)


def _look_for(one: _Citation, text: str | None) -> CheckedCitation:
    state, start = _place(one, text)
    end = start + len(one.quote) if state == "moved" else one.end
    return CheckedCitation(one.n, state, one.document_id, one.title, one.uri, one.quote, start, end)


def _place(one: _Citation, text: str | None) -> tuple[QuoteState, int]:
    if one.site:
        return "elsewhere", one.start
    if text is None:
        return "gone", one.start
    if text[one.start : one.end] == one.quote:
        return "stands", one.start
    places = (text.rfind(one.quote, 0, one.start + len(one.quote)), text.find(one.quote, one.start))
    found = [place for place in places if place >= 0]
    if not found:
        return "changed", one.start
    return "moved", min(found, key=lambda place: abs(place - one.start))


def _around(text: str | None, checked: CheckedCitation) -> str:
    return (text or "")[max(0, checked.start - REACH) : checked.end + REACH]


_WHY: Mapping[QuoteState, str] = {
    "changed": "its document no longer says so",
    "gone": "its document is gone",
    "elsewhere": "its source is on the internet and cannot be checked here",
}


def _check_sentence(
    sentence: _Sentence, checked: Mapping[int, CheckedCitation], around: Mapping[int, str]
) -> CheckedSentence:
    reason = _why_not(sentence, checked, around)
    return CheckedSentence(sentence.text, not reason, reason)


def _why_not(sentence: _Sentence, checked: Mapping[int, CheckedCitation], around: Mapping[int, str]) -> str:
    if not sentence.citations or any(n not in checked for n in sentence.citations):
        return "it cites nothing that the receipt holds"
    if sentence.support == "unsupported":
        return "its source never said so"
    cited = [checked[n] for n in sentence.citations]
    lost = [one for one in cited if one.state not in ("stands", "moved")]
    if lost:
        return _WHY[lost[0].state]
    quotes = [one.quote for one in cited]
    if sentence.support == "quoted":
        return "" if sentence.text in quotes else "its words are not those of its quote"
    return unsupported(sentence.text, quotes, "\n".join(around[n] for n in sentence.citations))


def _sentence_json(sentence: Sentence) -> dict[str, Json]:
    return {"text": sentence.text, "support": sentence.support, "citations": list(sentence.citations)}


def _citation_json(one: Citation) -> dict[str, Json]:
    return {
        "n": one.n,
        "document_id": one.document_id,
        "chunk_id": one.chunk_id,
        "title": one.title,
        "uri": one.uri,
        "section": one.section,
        "page": one.page,
        "site": one.site,
        "start": one.start,
        "end": one.end,
        "quote": one.quote,
        "hash": content_hash(one.quote),
    }

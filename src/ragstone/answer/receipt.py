"""Receipts of answers: made when the answer is given, checked against the live documents at any time after.

A receipt is a JSON object. Its digest covers every other field, so that a change of any of them shows; and because
quotes and sentences are checked anew, and the answer must be made of these sentences, a receipt that was forged as a
whole still has to be borne out by the documents.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal

from pydantic import Field, ValidationError

from ragstone.answer.receipt_support import Ground, clauses, not_borne_out, said
from ragstone.answer.receipt_wording import is_made_of
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
MOST_SENTENCES = 200
MOST_CITATIONS = 1000
MOST_CITED = 200
"""By one sentence: two quotes of each of a hundred passages."""
MOST_CITED_IN_ALL = 2000
MOST_QUOTED_CHARS = 500_000
MOST_CHARS = REACH
"""Of a sentence or a quote, which are parts of a passage."""
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
    quote: str = Field(min_length=1, max_length=MOST_CHARS)
    hash: str


class _Sentence(Section):
    text: str = Field(max_length=MOST_CHARS)
    support: Support
    citations: tuple[int, ...] = Field(max_length=MOST_CITED)


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
    sentences: tuple[_Sentence, ...] = Field(max_length=MOST_SENTENCES)
    citations: tuple[_Citation, ...] = Field(max_length=MOST_CITATIONS)
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
    here = dict.fromkeys(one.document_id for one in receipt.citations if not one.site)
    texts = {document_id: await text_of(document_id) for document_id in here}
    return await asyncio.to_thread(_report, receipt, value, texts)  # a long one takes a second


def _report(receipt: _Receipt, value: Mapping[str, Any], texts: Mapping[str, str | None]) -> ReceiptReport:
    checked = {one.n: _look_for(one, texts.get(one.document_id)) for one in receipt.citations}
    numbered = {one.n: one for one in receipt.citations}
    said_in = cache(said)

    @cache
    def ground_of(n: int) -> Ground:
        one = numbered[n]
        around = said_in(_around(texts.get(one.document_id), checked[n]))
        return Ground(clauses(one.quote), said(f"{one.title}\n{one.section}"), around)

    @cache
    def why_not(sentence: _Sentence) -> str:
        return _why_not(sentence, checked, ground_of)

    reasons = [(sentence.text, why_not(sentence)) for sentence in receipt.sentences]
    sentences = tuple(CheckedSentence(text, not reason, reason) for text, reason in reasons)
    return ReceiptReport(
        receipt.question, receipt.moment, _tampering(receipt, value), tuple(checked.values()), sentences
    )


def _read(value: Mapping[str, Any]) -> _Receipt:
    try:
        receipt = _Receipt.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{_NOT_ONE}: {where[:80]}: {first['msg']}", hint=_HINT) from error
    cited = sum(len(one.citations) for one in receipt.sentences)
    if cited > MOST_CITED_IN_ALL or sum(len(one.quote) for one in receipt.citations) > MOST_QUOTED_CHARS:
        raise InputError(f"{_NOT_ONE}: citations: it cites more than any answer does", hint=_HINT)
    return receipt


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
    elif not is_made_of(
        receipt.answer,
        [Sentence(one.text, one.support, one.citations) for one in receipt.sentences],
        [Citation(**one.model_dump(exclude={"hash"})) for one in receipt.citations],
        answered=receipt.status == "answered",
    ):
        found.append("the answer is not made of its sentences")
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
    found = [place for place in (_last_before(text, one), text.find(one.quote, one.start)) if place >= 0]
    if not found:
        return "changed", one.start
    return "moved", min(found, key=lambda place: abs(place - one.start))


def _last_before(text: str, one: _Citation) -> int:
    """Where the quote stands last that begins no later than it did; `rfind` may take quadratic time, `find` not."""
    before = text[: one.start + len(one.quote)]
    place = before[::-1].find(one.quote[::-1])
    return -1 if place < 0 else len(before) - place - len(one.quote)


def _around(text: str | None, checked: CheckedCitation) -> str:
    """The text around a quote, in whole steps: quotes near each other have the same."""
    first, last = max(0, checked.start // REACH - 1), checked.end // REACH + 2
    return (text or "")[first * REACH : last * REACH]


_WHY: Mapping[QuoteState, str] = {
    "changed": "its document no longer says so",
    "gone": "its document is gone",
    "elsewhere": "its source is on the internet and cannot be checked here",
}


def _why_not(
    sentence: _Sentence, checked: Mapping[int, CheckedCitation], ground_of: Callable[[int], Ground]
) -> str:
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
    return not_borne_out(sentence.text, [ground_of(n) for n in dict.fromkeys(sentence.citations)])


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

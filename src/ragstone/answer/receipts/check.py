"""Check a receipt against the live documents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ragstone.answer.budget import StepBudget
from ragstone.answer.cache import says_the_same
from ragstone.answer.check import TOO_LONG, check_explicitly, find_grounds, find_near_sentences
from ragstone.answer.extract import find_candidates
from ragstone.answer.receipts.make import AnswerReceipt, read_receipt
from ragstone.answer.reply import CitedSentence
from ragstone.answer.units import is_whole
from ragstone.core.answers import CheckedCitation, CheckedSentence, Citation, QuoteState, ReceiptReport, Sentence
from ragstone.core.documents import page_at, page_starts, table_head
from ragstone.core.errors import InputError
from ragstone.core.types import Hit, LiveChunk
from ragstone.language.questions import split_question

_MOST_SHOWN = 80
"""Characters of a title or heading in a message."""
_NAME = re.compile(r"(?:\S+|[A-Z][\w-]*(?: [A-Z][\w-]*)+)(?: \d[\w.]*)?")
"""One word, or several that are written as a name is, and a number that belongs to it."""


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """A document as it is kept now."""

    text: str
    chunks: Sequence[LiveChunk]


@dataclass(frozen=True, slots=True)
class PlacedQuote:
    """A quote where it stands now, or where it stood when it is no longer there."""

    citation: Citation
    state: QuoteState
    start: int
    passage: Hit | None = None
    """The passage that an answer would get today for this quote; None if the quote is gone."""
    differences: tuple[str, ...] = ()
    """Names that differ between receipt and document."""

    @property
    def end(self) -> int:
        return self.start + len(self.citation.quote) if self.passage else self.citation.end

    @property
    def place(self) -> tuple[str, int, int]:
        return (self.citation.document_id, self.start, self.end)


def place_quote(citation: Citation, stored: LiveDocument | None) -> PlacedQuote:
    """Find a quote of a receipt in its current document."""
    state, start = _find_quote(citation, stored)
    if stored is None or state not in ("stands", "moved"):
        return PlacedQuote(citation, state, citation.start)
    end = start + len(citation.quote)
    holding = [live for live in stored.chunks if live.chunk.start <= start and end <= live.chunk.end]
    touching = holding or [live for live in stored.chunks if live.chunk.start < end and start < live.chunk.end]
    if not touching:
        return PlacedQuote(citation, "changed", citation.start)  # a part that cannot be found is not given
    best = max(touching, key=lambda live: (live.id == citation.chunk_id, -len(_compare_names(citation, live, start))))
    parts = [best] if holding else touching
    first = min(parts, key=lambda live: live.chunk.start)
    passage = _build_passage(best, first, stored.text, max(live.chunk.end for live in parts))
    return PlacedQuote(citation, state, start, passage, _compare_names(citation, best, start))


def _find_quote(citation: Citation, stored: LiveDocument | None) -> tuple[QuoteState, int]:
    if citation.site:
        return "elsewhere", citation.start
    if stored is None:
        return "gone", citation.start
    text, quote = stored.text, citation.quote
    if text[citation.start : citation.end] == quote:
        return "stands", citation.start
    found = [place for place in (_find_last_before(text, citation), text.find(quote, citation.start)) if place >= 0]
    if not found:
        return "changed", citation.start
    return "moved", min(found, key=lambda place: abs(place - citation.start))


def _find_last_before(text: str, citation: Citation) -> int:
    """Return the last place of the quote up to its old one; unlike `find`, `rfind` may take quadratic time."""
    before = text[: citation.start + len(citation.quote)]
    place = before[::-1].find(citation.quote[::-1])
    return -1 if place < 0 else len(before) - place - len(citation.quote)


def _build_passage(chunk: LiveChunk, first: LiveChunk, text: str, end: int) -> Hit:
    start = first.chunk.start
    return Hit(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        uri=chunk.uri,
        section=_section(chunk),
        page=chunk.chunk.page,
        text=text[start:end],
        score=1.0,
        scores={},
        metadata={},
        start=start,
        end=end,
        page_starts=page_starts(chunk.chunk.metadata),
        table_head=table_head(first.chunk.metadata),
    )


def _compare_names(citation: Citation, chunk: LiveChunk, start: int) -> tuple[str, ...]:
    page = page_at(start, chunk.chunk.page, page_starts(chunk.chunk.metadata))
    pairs = (
        ("title", chunk.title, citation.title),
        ("address", chunk.uri, citation.uri),
        ("section", _section(chunk), citation.section),
        ("page", _page(page), _page(citation.page)),
    )
    return tuple(
        f"quote {citation.n}: its {name} is “{_shorten(now)}”, the receipt says “{_shorten(then)}”"
        for name, now, then in pairs
        if now != then
    )


def _section(chunk: LiveChunk) -> str:
    return " > ".join(chunk.chunk.section)


def _page(page: int | None) -> str:
    return "" if page is None else str(page)


def _shorten(words: str) -> str:
    return words if len(words) <= _MOST_SHOWN else words[: _MOST_SHOWN - 1] + "…"


Look = Callable[[str], Awaitable[LiveDocument | None]]
"""Returns the current document of an id, or None."""
MOST_READ_CHARS = 2_000_000
"""Of passages, read once for each sentence that cites them: a hundred times what the settings lead to."""
_WHY: Mapping[QuoteState, str] = {
    "changed": "its document no longer says so",
    "gone": "its document is gone",
    "elsewhere": "its source is on the internet and cannot be checked here",
}


async def check_receipt(value: Mapping[str, Any], look: Look, marks: str = "") -> ReceiptReport:
    """Return what still holds of a receipt; `marks` is the format of marks. Raises `InputError` for other JSON."""
    receipt = read_receipt(value)
    here = dict.fromkeys(citation.document_id for citation in receipt.citations if not citation.site)
    documents = {document_id: await look(document_id) for document_id in here}
    return await asyncio.to_thread(_build_report, receipt, documents, marks)  # a long one takes a while


def _build_report(receipt: AnswerReceipt, documents: Mapping[str, LiveDocument | None], marks: str) -> ReceiptReport:
    places = {citation.n: place_quote(citation, documents.get(citation.document_id)) for citation in receipt.citations}
    _check_size(receipt, places)

    @cache
    def why_not(sentence: Sentence) -> str:
        return _find_objection(sentence, places)

    reasons = [(sentence.text, why_not(sentence)) for sentence in receipt.quoted]
    return ReceiptReport(
        receipt.question,
        receipt.moment,
        _find_tampering(receipt),
        tuple(_build_citation(placed) for placed in places.values()),
        tuple(CheckedSentence(text, not reason, reason) for text, reason in reasons),
        (
            *_find_foreign_marks(receipt, marks),
            *_find_foreign_words(receipt),
            *(note for placed in places.values() for note in placed.differences),
        ),
        receipt.unanswered,
        receipt.answered,
    )


def _check_size(receipt: AnswerReceipt, places: Mapping[int, PlacedQuote]) -> None:
    cited = [places[n].passage for sentence in set(receipt.quoted) for n in sentence.citations if n in places]
    read = sum(len(passage.text) for passage in cited if passage)
    if read > MOST_READ_CHARS:
        raise InputError(
            f"this receipt cites {read:,} characters of passages; at most {MOST_READ_CHARS:,} are read again",
            hint="ask in several questions, and keep a receipt of each answer",
        )


def _find_tampering(receipt: AnswerReceipt) -> tuple[str, ...]:
    if receipt.is_made_of_its_sentences():
        return receipt.misfits
    return (*receipt.misfits, "the answer is not made of its sentences")


def _find_foreign_marks(receipt: AnswerReceipt, marks: str) -> list[str]:
    """Return a note on marks with words that this engine does not write: a forger may speak through them."""
    if not receipt.wording.speaks() or receipt.wording.format == marks:
        return []
    return [f"its marks read “{receipt.wording.format}”, which is not how marks are written here"]


def _find_foreign_words(receipt: AnswerReceipt) -> list[str]:
    """Return notes on open parts and missing names that its question does not have, as with foreign marks."""
    asked = (receipt.question, receipt.whole)
    parts = [part for question in asked for part in split_question(question)]
    texts = [text.casefold() for text in (*asked, *parts)]
    # The question of a cached answer may be in slightly other words.
    foreign = [open_ for open_ in receipt.unanswered if not any(says_the_same(open_, part) for part in parts)]
    unnamed = [
        name
        for name in receipt.missing
        if not _NAME.fullmatch(name) or not any(name.casefold() in text for text in texts)
    ]
    return [
        *(f"its question has no part “{_shorten(part)}”, which it calls open" for part in foreign),
        *(f"its question does not ask for “{_shorten(name)}”, which it calls missing" for name in unnamed),
    ]


def _build_citation(placed: PlacedQuote) -> CheckedCitation:
    cited = placed.citation
    return CheckedCitation(
        cited.n, placed.state, cited.document_id, cited.title, cited.uri, cited.quote, placed.start, placed.end
    )


def _find_objection(sentence: Sentence, places: Mapping[int, PlacedQuote]) -> str:
    """Return why a sentence would not be said today; empty when it would."""
    if not sentence.citations or any(n not in places for n in sentence.citations):
        return "it cites nothing that the receipt holds"
    if sentence.support == "unsupported":
        return "its source never said so"
    cited = [places[n] for n in dict.fromkeys(sentence.citations)]
    passages = [placed.passage for placed in cited if placed.passage is not None]
    if len(passages) < len(cited):
        return next(_WHY[placed.state] for placed in cited if placed.passage is None)
    if sentence.support == "quoted":
        return _find_misquotation(sentence.text, cited, passages)
    return _find_unsupported(sentence.text, cited, passages)


def _find_misquotation(text: str, cited: Sequence[PlacedQuote], passages: Sequence[Hit]) -> str:
    if cited[0].citation.quote != text:
        return "its words are not those of its quote"
    heads = {quote.place: quote.names for quote in find_candidates(passages, addresses=True)}
    if cited[0].place not in heads and not is_whole(cited[0].place, passages):
        return "its quote is not a whole sentence of its source"
    head = heads.get(cited[0].place)
    if [placed.place for placed in cited[1:]] != ([head.place] if head else []):
        return "its words are not those of its quote"
    return ""


def _find_unsupported(text: str, cited: Sequence[PlacedQuote], passages: Sequence[Hit]) -> str:
    """Return the objection of answering to a model's sentence on these passages, or ""."""
    given = {(hit.document_id, hit.start, hit.end): hit for hit in passages}
    hits = dict(enumerate(given.values(), start=1))
    reason, quotes = find_grounds(CitedSentence(text, tuple(hits), text), hits)
    near = find_near_sentences(text, list(hits.values()), quotes)
    if not StepBudget().spend(text, *near):
        return TOO_LONG
    reason = reason or check_explicitly(text, list(hits.values()), near)
    if reason or any(_do_overlap(quote.place, placed.place) for quote in quotes for placed in cited):
        return reason
    return "its quotes are not the words that say it"


def _do_overlap(place: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return place[0] == other[0] and place[1] < other[2] and other[1] < place[2]

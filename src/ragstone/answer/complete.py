"""Whole quotes: what a unit depends on comes with it, and nothing between quoted neighbours is left out.

Of a list all is quoted or one item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.score import ScoredUnit, leans
from ragstone.answer.units import AnswerUnit
from ragstone.language.analyzer import analyze
from ragstone.language.asked import STRICT, TIMED, AskedKind, holds_kind

LONGEST_LEAD = 400
"""Characters of a sentence that is quoted because another depends on it."""
MOST_BETWEEN = 250
"""Characters between two quotes of one paragraph that are quoted with them."""
MOST_OF_ENTRY = 600
"""Characters from the term of an entry to the end of a sentence of it that are quoted as one."""
_HEADED = re.compile(r"[A-Z][^.:\n]{0,40}[.:][ \t]+[A-Z]")
"""An item that begins with its heading, as clauses of a contract do: "3. Rent. The rent is …". Nothing announces it."""
_CLAUSE = re.compile(rf"^[ \t]*\d{{1,3}}[.)][ \t]+{_HEADED.pattern}", re.M)
_STEP = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]", re.M)
"""Items that are numbered are one after the other, and seldom one instead of the other."""
_MARKS = re.compile(r"\s*(?:(?:[-*+•‣◦–]|[0-9]{1,3}[.)]|:)\s+)?")


@dataclass(frozen=True, slots=True)
class _Span:
    quote: Quote
    plain: bool = True
    """A sentence of prose, which is a statement of its own also right beside another."""


def complete_units(
    chosen: Sequence[AnswerUnit], units: Sequence[AnswerUnit], most: int, beside: Sequence[AnswerUnit] = ()
) -> list[Statement]:
    """Return the statements of the chosen units with what they depend on, in the order of reading.

    The first of the chosen is always said; the others, and then those `beside` them, as long as there are no more than
    `most` statements.
    """
    spans: list[_Span] = []
    for unit in (*chosen, *beside):
        added = [span for span in _spread(unit, units) if not _is_said(span.quote, spans)]
        joined = _join([*spans, *added])
        if not spans or len(joined) <= most:
            spans = joined
    return [_build_statement(span.quote) for span in spans[:most]]


def fit_list(
    unit: AnswerUnit,
    units: Sequence[AnswerUnit],
    ranked: Sequence[ScoredUnit],
    kind: AskedKind,
    asked: AbstractSet[str],
) -> AnswerUnit:
    """Return the list of an item where all of it is asked for, and else the one item of a list that is asked for."""
    if kind in ("list", "steps"):
        lists = (other for other in units if other.kind == "list" and _holds(other, unit))
        return next(lists, unit) if unit.kind == "item" else unit
    if unit.kind != "list":
        return replace(unit, lead=None) if unit.kind == "item" and _HEADED.match(unit.text) else unit
    if not (steps := _STEP.findall(unit.text)):
        item = _find_only_item(unit, units, asked)
        return item if item and (kind not in STRICT | TIMED or holds_kind(kind, item.text)) else unit
    if 2 * len(_CLAUSE.findall(unit.text)) < len(steps):
        return unit
    parts = (item.unit for item in ranked if item.unit.kind != "list" and _holds(unit, item.unit))
    return next((replace(part, lead=None) for part in parts), unit)


def _holds(other: AnswerUnit, unit: AnswerUnit) -> bool:
    own, quote = unit.quote, other.quote
    return quote.hit is own.hit and quote.start <= own.start < quote.end


def _find_only_item(unit: AnswerUnit, units: Sequence[AnswerUnit], asked: AbstractSet[str]) -> AnswerUnit | None:
    """Return the item that has more words of the question than the sentence before its list, and all of the others'."""
    items = [other for other in units if other.kind != "list" and other.block >= unit.block and _holds(unit, other)]
    lead = set(analyze(unit.before.text)) if unit.before else set[str]()
    told = [set(analyze(item.text)) & asked - lead for item in items]
    best = max(told, key=len, default=set[str]())
    if any(not found < best for found in told if found is not best):
        return None
    return next((item for item, found in zip(items, told, strict=True) if found is best and item.kind == "item"), None)


def _spread(unit: AnswerUnit, units: Sequence[AnswerUnit]) -> Iterator[_Span]:
    """Yield what a unit depends on, and the unit."""
    quote = unit.quote
    if unit.kind == "row":
        yield _Span(quote)
        return
    if unit.term and _needs_term(unit):
        if quote.end - unit.term.start <= MOST_OF_ENTRY:
            yield _Span(replace(unit.term, end=quote.end), plain=False)
            return
        yield _Span(unit.term, plain=False)
    leaning = leans(unit.text)
    if unit.lead and len(unit.lead.text) <= LONGEST_LEAD:
        yield _Span(unit.lead, plain=False)
    elif leaning and unit.before and len(unit.before.text) <= LONGEST_LEAD:
        yield _Span(unit.before)
    elif leaning and unit.heading and unit.before is None:
        yield _Span(unit.heading, plain=False)
    announced = _find_announced(unit, units) if unit.text.endswith((":", "：")) else None
    yield _Span(quote, plain=unit.kind == "sentence" and announced is None)
    if announced:
        yield _Span(announced, plain=False)


def _needs_term(unit: AnswerUnit) -> bool:
    return unit.term is not None and not set(analyze(unit.term.text)[:3]) <= set(analyze(unit.text))


def _find_announced(unit: AnswerUnit, units: Sequence[AnswerUnit]) -> Quote | None:
    """Return the list or the code that a unit announces."""
    for other in units:
        if other.quote.hit is unit.quote.hit and other.quote.end > unit.quote.end:
            if other.kind == "list" and unit.quote.start <= other.quote.start < unit.quote.end:
                return other.quote
            if other.kind in ("code", "item") and other.lead and other.lead.end == unit.quote.end:
                return other.quote
    return None


def _is_said(quote: Quote, spans: Sequence[_Span]) -> bool:
    document, start, end = quote.place
    return any(
        document == other and first <= start and end <= last
        for other, first, last in (span.quote.place for span in spans)
    )


def _join(spans: Sequence[_Span]) -> list[_Span]:
    """Return spans by document and place, as one where they overlap or little lies between them."""
    documents = list(dict.fromkeys(span.quote.hit.document_id for span in spans))
    ordered = sorted(spans, key=lambda span: (documents.index(span.quote.hit.document_id), span.quote.place))
    joined: list[_Span] = []
    for span in ordered:
        before = joined[-1] if joined else None
        if before is not None and _belong_together(before, span):
            end = max(before.quote.end, span.quote.end)
            joined[-1] = _Span(Quote(span.quote.hit, before.quote.start, end), plain=False)
        else:
            joined.append(span)
    return joined


def _belong_together(before: _Span, after: _Span) -> bool:
    first, second = before.quote, after.quote
    if first.hit is not second.hit or first.head or second.head:
        return False
    between = first.hit.text[first.end : second.start]
    if not between.strip():
        return second.start < first.end or not (before.plain and after.plain)
    return bool(_MARKS.fullmatch(between)) or (len(between) <= MOST_BETWEEN and "\n" not in between)


def _build_statement(quote: Quote) -> Statement:
    """Return the statement of a quote; a row of a table rests on its header, too."""
    return Statement(quote.text, "quoted", (quote, quote.names) if quote.names else (quote,))

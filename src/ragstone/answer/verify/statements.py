"""The parts of a text, and of passages, that state something: headings, questions and code do not."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ragstone.answer.blocks import looks_like_code
from ragstone.answer.budget import MOST_SENTENCES
from ragstone.answer.quotes import Quote, rows
from ragstone.answer.units import AnswerUnit, find_units
from ragstone.answer.verify.defaults import find_stated_terms, group_by_hit, place_in_entry
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.sentences import sentence_spans

Span = tuple[int, int]
_CLOSING = r"[\"'”’»)\]}*_`」』）]*$"
_STOPS = re.compile(rf"[.!…。！｡．।۔]{_CLOSING}")
_ASKS = re.compile(rf"[?？؟]{_CLOSING}")
_MARKS_BEFORE = re.compile(r"[ \t>]*(?:#{1,6}[ \t]|\|)")
"""On the line of a sentence: it is a heading or a row of a table."""
_UNDERLINED = re.compile(r"\n[ \t]*(?:=+|-+|~+|\^+)[ \t]*$")
_FENCE = re.compile(r"^[ \t>]{0,12}(?:```|~~~)", re.M)
_FRONT_MATTER = re.compile(r"---\n.*?\n---[ \t]*(?:\n|$)", re.S)
_LINE_END = re.compile("\n")
_PROMPT = re.compile(r"(?:\$|>>>|#!|C:\\)")
_TOPIC = re.compile(r"(?:how|what|when|where|why|which|who|whether)\b", re.I)
"""Words that a title begins with, and no statement."""
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_FEWEST_WORDS, _FEWEST_WITHOUT_STOP, _FEWEST_LETTERS = 3, 4, 6
_MOST_READ = 400
"""Characters of a sentence that a verb is looked for in."""


@dataclass(frozen=True, slots=True)
class StatedSentence:
    """A sentence that states something: `text[start:end]`, in a line of the text."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class StatedSentences:
    """The statements of a text, and how many other sentences it has."""

    found: tuple[StatedSentence, ...]
    skipped: int


def find_statements(text: str, left_out: Sequence[Span] = ()) -> StatedSentences:
    """Return where a text states something; `left_out` are parts known to be headings, code or tables."""
    lines = [0, *(match.end() for match in _LINE_END.finditer(text))]
    outside = _merge([*left_out, *_find_code(text)])
    starts = [start for start, _ in outside]
    found: list[StatedSentence] = []
    spans = sentence_spans(text)
    for start, end in spans:
        line, part = bisect_right(lines, start), bisect_right(starts, start)
        is_read = part == 0 or start >= outside[part - 1][1]
        if is_read and not _MARKS_BEFORE.match(text, lines[line - 1], start + 1) and _states(text[start:end]):
            found.append(StatedSentence(start, end, line))
    return StatedSentences(tuple(found), len(spans) - len(found))


def _merge(spans: Sequence[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _find_code(text: str) -> Iterator[Span]:
    """Yield where fenced code and the settings above a page stand."""
    if front := _FRONT_MATTER.match(text):
        yield front.span()
    fences = [match.start() for match in _FENCE.finditer(text)]
    for opened, closed in zip(fences[::2], [*fences[1::2], len(text)], strict=False):
        yield opened, closed + 1


def _states(sentence: str) -> bool:
    """Return whether a sentence is neither a question nor a title nor a command."""
    if _ASKS.search(sentence[-20:]) or _UNDERLINED.search(sentence[-200:]) or _PROMPT.match(sentence):
        return False
    if not _LATIN.search(sentence):
        return sum(map(str.isalpha, sentence)) >= _FEWEST_LETTERS  # not all languages put spaces, or stops
    words = len(sentence.split())
    if _STOPS.search(sentence[-20:]):
        return words >= _FEWEST_WORDS
    # Without a stop it may be a title: one that has a verb is a statement, as in a list.
    has_verb = words >= _FEWEST_WITHOUT_STOP and first_verb(tokenize(sentence[:_MOST_READ])) is not None
    return has_verb and not _TOPIC.match(sentence)


MAX_CHARS = 1000
_FEWEST_TERMS = 2
_COLUMNS = re.compile(r"\S(?:\t| {3,}| : )\s*\S")
_CAPITALS = re.compile(r"\W{0,4}[A-Z][A-Z0-9 ,'’/()-]{2,80}:\s+(?=[A-Z\"“'(])")
_LABELLED = re.compile(r"\s*[^\s:*-][^:\n]{0,30}:\s+\S")


def find_evidence(hits: Sequence[Hit]) -> list[AnswerUnit]:
    """Return the parts of the hits that state something, each place once, with what stands over and around them."""
    found = [unit for unit in find_units(hits, addresses=True) if unit.kind not in ("list", "code")]
    units = [part for unit in found for part in split_entry(unit)]
    covered: dict[str, set[int]] = defaultdict(set)
    for document, start, end in (unit.quote.place for unit in found):
        covered[document].update(range(start, end))
    own = group_by_hit(found)
    for quote in islice(_find_sentences(hits), MOST_SENTENCES):
        document, start, end = quote.place
        if covered[document].isdisjoint(range(start, end)) and _states_something(quote):
            covered[document].update(range(start, end))
            units += split_entry(place_in_entry(quote, own.get(id(quote.hit), ())))
    return [*map(_drop_label, units), *find_stated_terms(found)]


def _drop_label(unit: AnswerUnit) -> AnswerUnit:
    """Return a sentence without the label in capitals before it, as what stands before it: "NOTE: the gate …"."""
    quote = unit.quote
    label = _CAPITALS.match(quote.text) if quote.head is None else None
    if label is None:
        return unit
    start = quote.start + label.end()
    return replace(unit, quote=replace(quote, start=start), before=unit.before or replace(quote, end=start))


def split_entry(unit: AnswerUnit) -> Iterator[AnswerUnit]:
    """Yield the sentences of an entry that says several of its term, each by itself, and other units as they are."""
    if unit.quote.head is None and _is_listing(unit.text):
        yield from _split_lines(unit)
        return
    quote, first = unit.quote, unit.text.find("\n")
    body = quote.text[first:] if first > 0 else ""
    spans = sentence_spans(body) if unit.kind == "entry" else []
    if len(spans) < 2:
        yield unit
        return
    term = replace(quote, end=quote.start + len(quote.text[:first].rstrip()))
    parts = [replace(quote, start=quote.start + first + start, end=quote.start + first + end) for start, end in spans]
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else None
        yield replace(unit, quote=part, kind="sentence", term=term, before=before, topic=parts[0] if place else None)


def _is_listing(text: str) -> bool:
    """Return whether the lines of a text are entries of a list or a table without marks."""
    lines = text.split("\n")
    apart = sum(_COLUMNS.search(line) is not None or line.rstrip().endswith(",") for line in lines)
    return len(lines) > 2 and (2 * apart >= len(lines) or all(map(_LABELLED.match, lines)))


def _split_lines(unit: AnswerUnit) -> Iterator[AnswerUnit]:
    """Yield each line of a listing, announced by the first, or by the one before it where the first is a rule."""
    quote, start = unit.quote, unit.quote.start
    lead = unit.lead or (None if _LABELLED.match(quote.text) else _find_header(quote))
    for line in quote.text.split("\n"):
        words = line.strip()
        if any(map(str.isalnum, words)):
            begin = start + line.index(words)
            yield replace(unit, quote=replace(quote, start=begin, end=begin + len(words)), kind="item", lead=lead)
        start += len(line) + 1


def _find_header(quote: Quote) -> Quote:
    first = quote.text.split("\n", 1)[0]
    above = quote.hit.text[: quote.start].rstrip()
    if any(map(str.isalnum, first)) or not above:
        return replace(quote, end=quote.start + len(first))
    return replace(quote, start=above.rfind("\n") + 1, end=len(above))


def _find_sentences(hits: Sequence[Hit]) -> Iterator[Quote]:
    """Yield the sentences of the hits, however short."""
    for hit in hits:
        in_tables = rows(hit)
        for start, end in sentence_spans(hit.text):
            quote = in_tables.get(start, Quote(hit, start, min(end, start + MAX_CHARS)))
            if quote:
                yield quote


def _states_something(quote: Quote) -> bool:
    text = quote.text
    return not text.rstrip(' *_"”').endswith("?") and not looks_like_code(text) and len(analyze(text)) >= _FEWEST_TERMS

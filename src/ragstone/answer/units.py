"""Units of a passage that can answer a question, each with what stands over and around it.

A unit is a sentence, an item of a list, a short entry of a definition list (the term with what is said of it), code, a
row of a table, or a list with the sentence that announces it. A sentence of a longer entry knows its term.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from ragstone.answer.blocks import PassageBlock, find_blocks, measure_word_share
from ragstone.answer.budget import MOST_SENTENCES
from ragstone.answer.quotes import Quote, rows
from ragstone.answer.sanitize import has_image, has_link
from ragstone.core.types import Hit
from ragstone.language.sentences import sentence_spans

UnitKind = Literal["sentence", "item", "entry", "code", "row", "list"]
SHORT = 300
"""Characters up to which an entry or an item is one unit."""
LONGEST_LIST = 1200
LONGEST_CODE = 600
_FEWEST_WORDS, _LONGEST_SENTENCE = 4, 1000
_FEWEST_UNDER_A_TERM = 2
_LEAST_WORD_SHARE = 0.7
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_EMPHASIS = re.compile(r"[*_]+(?=\w)|(?<=\w)[*_]+")
_REPLY = re.compile(r"(?:yes|no|not|sure|unfortunately|sorry|of course|actually|currently)\b[^.!?]{0,30}[.!]", re.I)
_POINTER = re.compile(r"see also\b|[^.!?]{0,80}…$", re.I)
"""A reference to other pages, and a line of a table of contents."""
_COUNTS_WHAT_FOLLOWS = re.compile(
    r"\b(?:there are|has|have|offers?|supports?|provides?)\b[^.!?]{0,40}"
    r"\b(?:two|three|four|five|six|seven|eight|several|[2-9])\b|\bfollowing\b",
    re.I,
)
"""A paragraph that says how many things there are, which the entries behind it tell."""
_CODE = re.compile(r"[{}]|=>|==|\\n|\);|</")


@dataclass(frozen=True, slots=True)
class AnswerUnit:
    """A part of a passage that can be quoted, and what it is about besides its own words."""

    quote: Quote
    kind: UnitKind
    block: int
    """The number of its block in the passage."""
    term: Quote | None = None
    """The term that its entry explains."""
    lead: Quote | None = None
    """The sentence that announces it."""
    heading: Quote | None = None
    """The last heading before it within the passage."""
    before: Quote | None = None
    """The sentence before it in its paragraph, or the end of the paragraph before."""
    after: Quote | None = None
    topic: Quote | None = None
    """The first sentence of its entry or paragraph, where it is another."""

    @property
    def text(self) -> str:
        return self.quote.text

    @property
    def above(self) -> str:
        """Return what stands right over it: heading, term and the sentence that announces it."""
        return "\n".join(quote.text for quote in (self.heading, self.term, self.lead) if quote)


def find_units(hits: Sequence[Hit], *, addresses: bool) -> list[AnswerUnit]:
    """Return the units of the hits that could be quoted, each place once, in order of hit and text."""
    units: dict[tuple[str, int, int], AnswerUnit] = {}
    found = (unit for hit in hits for unit in read_units(hit))
    for unit in islice(found, MOST_SENTENCES):
        if addresses or not has_link(unit.text):
            units.setdefault(unit.quote.place, unit)
    inner = _find_inner(place for place, unit in units.items() if unit.kind not in ("list", "entry"))
    return [unit for place, unit in units.items() if place not in inner]


def is_whole(place: tuple[str, int, int], hits: Sequence[Hit]) -> bool:
    """Return whether a place begins where a unit, a term or a heading begins, ends where one ends, and holds a unit."""
    document, start, end = place
    own = [hit for hit in hits if hit.document_id == document]
    units = [unit.quote.place[1:] for hit in own for unit in read_units(hit)]
    edges = [*units, *(edge for hit in own for edge in _find_edges(hit))]
    says_something = any(start <= first and last <= end for first, last in units)
    return says_something and start in {first for first, _ in edges} and end in {last for _, last in edges}


def _find_edges(hit: Hit) -> Iterator[tuple[int, int]]:
    for block in find_blocks(hit.text, _headings(hit)):
        if block.kind != "row":
            yield hit.start + block.start, hit.start + block.end


def _headings(hit: Hit) -> frozenset[str]:
    return frozenset((hit.title, *hit.section.split(" > ")))


def _find_inner(places: Iterable[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
    """Return places within another: a passage may hold only part of a sentence that another passage holds whole."""
    inner: set[tuple[str, int, int]] = set()
    reached: dict[str, int] = defaultdict(int)
    for place in sorted(places, key=lambda place: (place[0], place[1], -place[2])):
        document, _, end = place
        if end <= reached[document]:
            inner.add(place)
        reached[document] = max(reached[document], end)
    return inner


def read_units(hit: Hit) -> Iterator[AnswerUnit]:
    """Yield the units of one passage."""
    blocks = find_blocks(hit.text, _headings(hit))
    in_tables = rows(hit)
    reader = _UnitReader(hit, blocks)
    for number, block in enumerate(blocks):
        if block.kind == "row":
            reader.leave_paragraph()
            row = in_tables.get(block.start)
            if row is not None and not has_image(row.text):
                yield AnswerUnit(row, "row", number, heading=reader.heading)
        else:
            yield from reader.read(number)


class _UnitReader:
    """Reads the blocks of a passage in order and knows what stands over the next one."""

    def __init__(self, hit: Hit, blocks: Sequence[PassageBlock]) -> None:
        self._hit = hit
        self._blocks = blocks
        self.heading: Quote | None = None
        self._term: Quote | None = None
        self._body_indent = -1
        self._lead: Quote | None = None
        self._last: Quote | None = None
        self._topic: Quote | None = None

    def read(self, number: int) -> Iterator[AnswerUnit]:
        block = self._blocks[number]
        if block.kind == "heading":
            self.heading, self._term, self._lead, self._last = self._quote(block), None, None, None
            return
        if block.kind == "term":
            yield from self._read_announced_entries(number)
            self._term, self._body_indent, self._lead, self._last = self._quote(block), -1, None, None
            return
        self._leave_term(block)
        if block.kind == "item":
            yield from self._read_list(number)
        elif block.kind == "code":
            yield from self._keep(self._read_code(number))
        else:
            self._lead = None
            yield from self._keep(self._read_prose(number))

    def leave_paragraph(self) -> None:
        """Forget the sentences before: nothing that follows leans on them."""
        self._lead = self._last = self._topic = None

    def _leave_term(self, block: PassageBlock) -> None:
        if self._term is None:
            return
        if self._body_indent < 0:
            self._body_indent = block.indent
        elif block.kind == "prose" and block.indent < self._body_indent:
            self._term = None

    def _quote(self, block: PassageBlock) -> Quote:
        return Quote(self._hit, block.start, block.end)

    def _keep(self, units: Iterable[AnswerUnit]) -> Iterator[AnswerUnit]:
        for unit in units:
            self._last = unit.quote
            if _says_something(unit) and not self._is_cut_off(unit.quote):
                yield unit

    def _is_cut_off(self, quote: Quote) -> bool:
        return quote.start == 0 < self._hit.start and self._hit.text[0].islower() and self._term is None

    def _read_prose(self, number: int) -> Iterator[AnswerUnit]:
        block, term = self._blocks[number], self._term
        follows = number and self._blocks[number - 1].kind == "term"
        last = number + 1 == len(self._blocks) or self._blocks[number + 1].kind in ("term", "heading")
        if term and follows and last and block.end - term.start <= SHORT:
            yield AnswerUnit(replace(term, end=block.end), "entry", number, heading=self.heading)
            return
        quotes = self._sentences(block)
        self._topic = self._topic if term and not follows else None
        for place, quote in enumerate(quotes):
            before = quotes[place - 1] if place else self._last
            after = quotes[place + 1] if place + 1 < len(quotes) else None
            yield AnswerUnit(quote, "sentence", number, term, None, self.heading, before, after, self._topic)
            self._topic = self._topic or quote

    def _sentences(self, block: PassageBlock) -> list[Quote]:
        """Return the sentences of a block; a short word of assent or denial belongs to the sentence behind it."""
        text = self._hit.text[block.start : block.end]
        spans = list(sentence_spans(text))
        if len(spans) > 1 and _REPLY.fullmatch(text[slice(*spans[0])]):
            spans[:2] = [(spans[0][0], spans[1][1])]
        return [Quote(self._hit, block.start + start, block.start + end) for start, end in spans]

    def _read_code(self, number: int) -> Iterator[AnswerUnit]:
        block = self._blocks[number]
        ends = [end for _, end, _ in block.lines if end - block.start <= LONGEST_CODE]
        lead = self._last if number and self._blocks[number - 1].kind in ("prose", "item") else None
        if ends:
            quote = Quote(self._hit, block.start, ends[-1])
            yield AnswerUnit(quote, "code", number, self._term, lead, self.heading, self._last)

    def _read_list(self, number: int) -> Iterator[AnswerUnit]:
        first = number == 0 or self._blocks[number - 1].kind not in ("item", "code", "row")
        if first:
            self._lead = self._last if number and self._blocks[number - 1].kind == "prose" else None
            yield from self._read_whole_list(number)
        block = self._blocks[number]
        if block.end - block.start <= SHORT:
            yield from self._keep(
                [AnswerUnit(self._quote(block), "item", number, self._term, self._lead, self.heading)]
            )
            return
        quotes = self._sentences(block)
        units = [
            AnswerUnit(quote, "item" if place == 0 else "sentence", number, self._term, self._lead, self.heading,
                 quotes[place - 1] if place else None)
            for place, quote in enumerate(quotes)
        ]  # fmt: skip
        yield from self._keep(units)

    def _read_announced_entries(self, number: int) -> Iterator[AnswerUnit]:
        """Yield the entries of a definition list with the sentence that announces them, as far as they may be long."""
        lead, first = self._last, self._blocks[number]
        if lead is None or self._blocks[number - 1].kind != "prose":
            return
        before = self._quote(self._blocks[number - 1])
        if not lead.text.endswith((":", "：")):
            if not _COUNTS_WHAT_FOLLOWS.search(before.text) or len(before.text) > SHORT:
                return
            lead = before
        end, terms, told = lead.start, 0, 0
        for block in self._blocks[number:]:
            is_term = block.kind == "term" and block.indent == first.indent
            if block.end - lead.start > LONGEST_LIST or not (is_term or block.indent > first.indent):
                break
            terms += is_term
            if not is_term:  # A term that nothing is said of here does not end the list.
                end, told = block.end, terms
        if told > 1:
            yield AnswerUnit(Quote(self._hit, lead.start, end), "list", number, self._term, None, self.heading, lead)

    def _read_whole_list(self, number: int) -> Iterator[AnswerUnit]:
        """Yield a list of two items or more with the sentence that announces it, as far as it may be long."""
        start = self._lead.start if self._lead else self._blocks[number].start
        end, items = start, 0
        for block in self._blocks[number:]:
            if block.kind != "item" or block.end - start > LONGEST_LIST:
                break
            end, items = block.end, items + 1
        if items > 1:
            unit = AnswerUnit(Quote(self._hit, start, end), "list", number, self._term, None, self.heading, self._last)
            is_contents = unit.text.count("?") > items / 2
            if not is_contents and not has_image(unit.text):
                yield unit


def _says_something(unit: AnswerUnit) -> bool:
    """Return whether a unit states something: no question, no crumb, no image; of prose also no code."""
    if has_image(unit.text):
        return False
    if unit.kind in ("code", "entry"):
        return not unit.text.startswith("|")
    fewest = _FEWEST_UNDER_A_TERM if unit.term or unit.lead else _FEWEST_WORDS
    return is_sentence(unit.text, fewest)


def is_sentence(text: str, fewest: int = _FEWEST_WORDS) -> bool:
    """Return whether a span states something: not a question, a crumb of a table, code or an image."""
    if len(text) > _LONGEST_SENTENCE or text.endswith(("?", "？")) or text.startswith("|") or has_image(text):
        return False
    if _POINTER.match(text):
        return False
    words = len(_WORD.findall(text)) + len(_CJK.findall(text)) // 2
    prose = _EMPHASIS.sub("", _INLINE_CODE.sub("", text))
    is_code = _CODE.search(prose) is not None and not (prose[:1].isupper() and prose.endswith("."))
    return words >= fewest and measure_word_share(prose) >= _LEAST_WORD_SHARE and not is_code

"""An answer without an LLM: the sentences that answer the question, word for word."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from ragstone.answer.budget import MOST_SENTENCES
from ragstone.answer.quotes import Quote, Statement, all_words, rows, select_for_question, select_words
from ragstone.answer.sanitize import has_image, has_link, strip_hidden
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.names import find_inner_names
from ragstone.language.relevance import (
    COVERAGE_WEIGHT,
    UnrelatedVectors,
    asked_terms,
    closeness,
    measure_coverage,
    require_model,
)
from ragstone.language.sentences import sentence_spans

MIN_EVIDENCE = 0.75
"""Closeness and weighted coverage together that the best sentence must have for a question to be answered."""
UNKNOWN_NAME = 0.25
"""Additional strength needed when the question names something that no passage names."""
MIN_COVERAGE = 0.6
"""Coverage needed without a model."""
KEEP = 0.85
"""Share of the best sentence's score that a further one needs to be said too."""
SHORTLIST = 32
"""Most sentences that the model compares; more cost time and find nothing better."""
_HIT_WEIGHT = 0.25
_SAME = 0.8
"""Share of common terms from which two sentences say the same."""
_MIN_WORDS, _MAX_CHARS = 4, 1000
_MIN_WORD_SHARE = 0.75

_WORD = re.compile(r"[^\W_]+")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_CODE = re.compile(r"[{}]|=>|==|\\n|\);|</")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_LEANING = re.compile(
    r"(?:(?:After|Before|Despite|Because of|In|For|With) (?:that|this|these|those|which)"
    r"|They|It|He|She|This|That|These|Those|Then|Otherwise|However|Instead|Therefore|Afterwards|Both|Neither|Such)\b"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A candidate sentence and what speaks for it; `closeness` is None where no model could be asked."""

    quote: Quote
    closeness: float | None
    coverage: float

    @property
    def strength(self) -> float:
        """Return a measure that is comparable across questions and embedding models."""
        if self.closeness is None:
            return self.coverage
        return self.closeness + COVERAGE_WEIGHT * self.coverage

    def enough(self, *, unknown_name: bool = False) -> bool:
        """Return whether it may be given as an answer."""
        least = MIN_COVERAGE if self.closeness is None else MIN_EVIDENCE
        return self.strength >= least + UNKNOWN_NAME * unknown_name


@dataclass(frozen=True, slots=True)
class Extraction:
    """Sentences to say, none when nothing supports an answer, and what could not be done."""

    statements: tuple[Statement, ...]
    degraded: tuple[str, ...] = ()
    nearest: tuple[Statement, ...] = ()
    """The best of what was read where nothing answers; it is no answer."""
    missing: tuple[str, ...] = ()
    """Names asked for that no passage has, as the question spells them."""


class Extractor:
    """Picks sentences by meaning and by words; keeps what its model says of unrelated ones."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._unrelated = UnrelatedVectors()

    async def extract(
        self,
        question: str,
        hits: Sequence[Hit],
        *,
        max_sentences: int,
        addresses: bool = True,
        shared: AbstractSet[str] = frozenset(),
    ) -> Extraction:
        """Quote the sentences that answer the question, or none; `addresses` lets them hold addresses.

        `shared` are terms that other questions asked along with this one have too. A sentence that has these and
        none of the question's own needs more to be an answer to it.
        """
        # Texts may be made to take long: they are not compared on the event loop.
        candidates = await asyncio.to_thread(_find_covered, question, hits, addresses)
        if not candidates.quotes:
            return Extraction(())
        degraded: tuple[str, ...] = ()
        near: Sequence[float | None]
        try:
            near = await self._closeness(question, [candidates.read[place] for place in candidates.short])
        except (ModelError, RemoteError) as error:
            near = [None] * len(candidates.short)
            degraded = (f"answer: sentences chosen by words only: {error}",)
        said = await asyncio.to_thread(_choose_statements, question, candidates, near, max_sentences, shared)
        return Extraction(said, degraded)

    async def _closeness(self, question: str, read: Sequence[str]) -> list[float]:
        asked = await self._embedder.embed([question], "query")
        unrelated = await self._unrelated.load(self._embedder, asked.model)
        sentences = await self._embedder.embed([strip_hidden(words) for words in read])
        require_model(sentences.model, asked.model)
        return closeness(asked.vectors[0], sentences.vectors, unrelated)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Sentences that could be said, how each is read, how much of the question it covers, and the best of them."""

    quotes: Sequence[Quote]
    read: Sequence[str]
    covered: Sequence[float]
    short: Sequence[int]
    unknown_name: bool
    """The question names something that no passage names."""


def _find_covered(question: str, hits: Sequence[Hit], addresses: bool) -> _Candidates:
    unknown = names_unknown(question, hits)
    asked = frozenset(asked_terms(question))
    quotes = select_for_question(find_candidates(hits, addresses=addresses), question, asked)
    if unknown:  # The names of its columns make a row look like an answer, whatever else is asked for.
        quotes = [quote for quote in quotes if quote.head is None]
    read = read_in_context(question, quotes)
    covered = measure_coverage(asked_terms(question), read, [quote.headings for quote in quotes])
    return _Candidates(quotes, read, covered, _shortlist(quotes, covered), unknown)


def _choose_statements(
    question: str, candidates: _Candidates, near: Sequence[float | None], max_sentences: int, shared: AbstractSet[str]
) -> tuple[Statement, ...]:
    quotes, read = candidates.quotes, candidates.read
    evidence = [
        item
        for place, value in zip(candidates.short, near, strict=True)
        if (item := SentenceMatch(quotes[place], value, candidates.covered[place])).enough(
            unknown_name=_is_only_shared(shared, question, read[place])
        )
    ]
    chosen = choose(evidence, max_sentences, unknown_name=candidates.unknown_name)
    said = sort_for_reading(add_items(add_leads(chosen, quotes, max_sentences), quotes, max_sentences))
    return tuple(_build_statement(quote) for quote in said)


def names_unknown(question: str, hits: Iterable[Hit]) -> bool:
    """Return whether the question has a capitalised name of which no part occurs in any hit."""
    known = {term for hit in hits for term in analyze(all_words(hit))}
    return any(known.isdisjoint(analyze(name)) for name in find_inner_names(question))


def _build_statement(quote: Quote) -> Statement:
    """Return the statement of a quote; a row of a table rests on its header, too."""
    return Statement(quote.text, "quoted", (quote, quote.head) if quote.head else (quote,))


def find_candidates(hits: Sequence[Hit], *, addresses: bool) -> list[Quote]:
    """Return the sentences and rows of the hits that could be said, each place once, in order of hit and text."""
    quotes: dict[tuple[str, int, int], Quote] = {}
    sentences = (quote for hit in hits for quote in _find_sentences(hit))
    for quote in islice(sentences, MOST_SENTENCES):
        if addresses or not (has_link(quote.text)):
            quotes.setdefault(quote.place, quote)
    inner = _find_inner(quotes)
    return [quote for place, quote in quotes.items() if place not in inner]


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


def _find_sentences(hit: Hit) -> Iterator[Quote]:
    fences = [match.start() for match in _FENCE.finditer(hit.text)]
    headings = {hit.title, *hit.section.split(" > ")}
    in_tables = rows(hit)
    for start, end in sentence_spans(hit.text):
        fenced = bisect_right(fences, start) % 2 == 1
        quote = in_tables.get(start) or Quote(hit, start, end)
        heading = quote.text in headings or _line_before(quote).lstrip().startswith("#")
        cut_off = start == 0 < hit.start and hit.text[0].islower()
        says = not has_image(quote.text) if quote.head else is_sentence(quote.text)
        if says and not (fenced or heading or cut_off):
            yield quote


def is_sentence(text: str) -> bool:
    """Return whether a span states something: not a question, a crumb of a table, code or an image."""
    if len(text) > _MAX_CHARS or text.endswith(("?", "？")) or text.startswith("|") or has_image(text):
        return False
    words = len(_WORD.findall(text)) + len(_CJK.findall(text)) // 2
    prose = _INLINE_CODE.sub("", text)
    visible = sum(not char.isspace() for char in text)
    share = sum(char.isalnum() for char in text) / visible
    return words >= _MIN_WORDS and share >= _MIN_WORD_SHARE and _CODE.search(prose) is None


def _shortlist(quotes: Sequence[Quote], covered: Sequence[float]) -> list[int]:
    """Return places of the candidates worth a model's time, in order."""
    ranked = sorted(
        range(len(quotes)), key=lambda place: covered[place] + _HIT_WEIGHT * quotes[place].hit.score, reverse=True
    )
    return sorted(ranked[:SHORTLIST])


def choose(evidence: Sequence[SentenceMatch], max_sentences: int, *, unknown_name: bool = False) -> list[Quote]:
    """Return the best sentences that say different things, best first; none without evidence."""
    good = [item for item in evidence if item.enough(unknown_name=unknown_name)]
    ranked = sorted(good, key=_score, reverse=True)
    chosen: list[Quote] = []
    for item in ranked:
        if len(chosen) == max_sentences or _score(item) < KEEP * _score(ranked[0]):
            break
        if not any(_say_the_same(item.quote, other) for other in chosen):
            chosen.append(item.quote)
    return chosen


def _score(item: SentenceMatch) -> float:
    return item.strength + _HIT_WEIGHT * item.quote.hit.score


def _say_the_same(quote: Quote, other: Quote) -> bool:
    if quote.head and other.head and quote.head.place == other.head.place:
        return False  # Rows of one table are alike in all but what they are there for.
    first, second = set(analyze(quote.text)), set(analyze(other.text))
    return len(first & second) >= _SAME * len(first | second)


def read_in_context(question: str, quotes: Sequence[Quote]) -> list[str]:
    """Return the words by which each sentence is judged, with the sentence before it where it depends on that one.

    Of several that lean on each other ("It … It …"), all lean on the one before the first.
    """
    asked = set(asked_terms(question))
    read = [select_words(quote, asked) for quote in quotes]
    lead = read[0] if read else ""
    for place, (before, quote) in enumerate(pairwise(quotes), start=1):
        if not (_LEANING.match(quote.text) and _is_next_to(before, quote)):
            lead = quote.text
        elif asked.intersection(analyze(quote.text)).difference(analyze(lead)):
            read[place] = f"{lead} {quote.text}"
    return read


def _is_only_shared(shared: AbstractSet[str], question: str, words: str) -> bool:
    """Return whether words have of a question only what other questions have too."""
    found, asked = set(analyze(words)), set(asked_terms(question))
    return not found.isdisjoint(shared & asked) and found.isdisjoint(asked - shared) and not asked <= shared


def add_leads(chosen: Sequence[Quote], quotes: Sequence[Quote], max_sentences: int) -> list[Quote]:
    """Return the chosen sentences with those that they depend on ("After that they …")."""
    complete = list(chosen)
    for quote in (quote for quote in chosen if _LEANING.match(quote.text)):
        place = quotes.index(quote)
        before = quotes[place - 1] if place else None
        if before and _is_next_to(before, quote) and before not in complete and len(complete) < max_sentences:
            complete.append(before)
    return complete


def _is_next_to(before: Quote, after: Quote) -> bool:
    """Return whether one sentence follows the other in the same paragraph."""
    between = after.hit.text[before.end : after.start]
    return before.hit is after.hit and not between.strip() and between.count("\n") < 2


def add_items(chosen: Sequence[Quote], quotes: Sequence[Quote], max_sentences: int) -> list[Quote]:
    """Return the chosen sentences with the items of the lists that they announce ("in two ways:")."""
    complete = list(chosen)
    for lead in (quote for quote in chosen if quote.text.endswith(":")):
        following = quotes[quotes.index(lead) + 1 :]
        items = takewhile(_is_item, (quote for quote in following if quote.hit is lead.hit))
        complete.extend([item for item in items if item not in complete][: max_sentences - len(complete)])
    return complete


def _is_item(quote: Quote) -> bool:
    return _ITEM.match(_line_before(quote)) is not None


def _line_before(quote: Quote) -> str:
    text = quote.hit.text
    return text[text.rfind("\n", 0, quote.start) + 1 : quote.start]


def sort_for_reading(quotes: Sequence[Quote]) -> list[Quote]:
    """Return the quotes by document, in order of its best sentence, then by place."""
    documents = list(dict.fromkeys(quote.hit.document_id for quote in quotes))
    return sorted(quotes, key=lambda quote: (documents.index(quote.hit.document_id), quote.place))

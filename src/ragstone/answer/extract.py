"""An answer without an LLM: the parts of the passages that answer the question, word for word."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ragstone.answer.check import is_negated, numbers
from ragstone.answer.complete import complete_units
from ragstone.answer.missing import find_missing_names, find_missing_nouns
from ragstone.answer.quotes import Quote, Statement, select_for_question, select_words
from ragstone.answer.sanitize import named_places
from ragstone.answer.score import ScoredUnit, cover_units, leans, read_in_context
from ragstone.answer.units import AnswerUnit, find_units
from ragstone.answer.verify.language import is_foreign_text
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.asked import MEASURED, STRICT, TIMED, AskedKind, find_asked_kind, holds_kind
from ragstone.language.relevance import UnrelatedVectors, asked_terms, closeness, require_model

MIN_EVIDENCE = 0.7
"""Strength that the best unit must have for a question to be answered."""
ONLY_SHARED = 0.25
"""Additional strength needed by a unit that has of a question only what other questions have too."""
MIN_COVERAGE = 0.6
"""Strength needed without a model."""
MIN_NEAR = 0.4
"""Strength that a unit must have to be shown as the nearest where nothing answers."""
MEASURED_BONUS = 0.05
"""Strength that is not needed where the figure or the name that is asked for is there."""
KEEP = 0.7
"""Share of the best unit's worth that a further one needs to be said too."""
LONGEST_TOGETHER = 500
"""Characters of a sentence and of the one that goes on about the same."""
NEAR_THE_BEST = 0.85
"""Share of the best unit's closeness that a further one needs which has no word of the question."""
MOST_UNITS = 3
SHORTLIST = 32
"""Most units that the model compares; more cost time and find nothing better."""
_MARK = re.compile(r"\[\d{1,3}\]")
_SAME = 0.8
"""Share of common terms from which two units say the same."""


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
    """Picks units by meaning, by words and by kind; keeps what its model says of unrelated ones."""

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
        """Quote what answers the question, or else what is nearest to it; `addresses` lets quotes hold addresses.

        `shared` are terms that other questions asked along with this one have too. A unit that has these and none of
        the question's own needs more to be an answer to it.
        """
        # Texts may be made to take long: they are not compared on the event loop.
        found = await asyncio.to_thread(_find_covered, question, hits, addresses)
        if not found.short:
            return Extraction((), missing=found.missing or found.unknown)
        degraded: tuple[str, ...] = ()
        short = found.short
        try:
            near = await self._closeness(question, [item.unit for item in short])
            short = [replace(item, closeness=value) for item, value in zip(short, near, strict=True)]
        except (ModelError, RemoteError) as error:
            degraded = (f"answer: sentences chosen by words only: {error}",)
        return await asyncio.to_thread(_decide, question, replace(found, short=short), max_sentences, shared, degraded)

    async def _closeness(self, question: str, units: Sequence[AnswerUnit]) -> list[float]:
        terms = frozenset(asked_terms(question))
        asked = await self._embedder.embed([question], "query")
        unrelated = await self._unrelated.load(self._embedder, asked.model)
        read = await self._embedder.embed([read_in_context(unit, terms) for unit in units])
        require_model(read.model, asked.model)
        return closeness(asked.vectors[0], read.vectors, unrelated)


@dataclass(frozen=True, slots=True)
class _Found:
    """Units that could be said, the best of them by words, and names asked for that no passage has."""

    units: Sequence[AnswerUnit]
    short: Sequence[ScoredUnit]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    """Other words asked for that no passage has; one may still answer."""


def _find_covered(question: str, hits: Sequence[Hit], addresses: bool) -> _Found:
    missing = find_missing_names(question, hits)
    units = find_units(hits, addresses=addresses)
    asked = frozenset(asked_terms(question))
    meant = {quote.place for quote in select_for_question([unit.quote for unit in units], question, asked)}
    # The names of its columns make a row look like an answer, whatever else is asked for.
    units = [unit for unit in units if unit.kind != "row" or (unit.quote.place in meant and not missing)]
    ranked = sorted(cover_units(question, units), key=lambda item: item.score, reverse=True)
    unknown = () if is_foreign_text(question) else find_missing_nouns(question, hits)
    return _Found(units, ranked[:SHORTLIST], missing, unknown)


def _decide(
    question: str, found: _Found, max_sentences: int, shared: AbstractSet[str], degraded: tuple[str, ...]
) -> Extraction:
    own = [item for item in found.short if not _lacks_own(item, shared, question)]
    ranked = sorted(own, key=lambda item: item.score, reverse=True)
    kind = find_asked_kind(question)
    asked, english = frozenset(asked_terms(question)), not is_foreign_text(question)
    best = choose(_keep_measured(ranked, kind, question), asked, by_meaning=english)
    chosen = [_widen_to_list(unit, found.units, kind) for unit in best]
    beside = _find_asked(chosen, ranked, kind, question)
    if not (kind in MEASURED | TIMED and any(holds_kind(kind, unit.text, question) for unit in chosen[:1])):
        beside += find_beside(chosen, found.units, question)
    measured = kind in MEASURED
    enough = any(is_enough(item, measured=measured) for item in ranked[:1])
    if enough and not found.missing and _holds_measured(kind, [*chosen, *beside], question):
        said = complete_units(chosen, found.units, max_sentences, beside)
        return Extraction(tuple(said), degraded)
    near = [item.unit for item in ranked[:1] if item.strength >= MIN_NEAR]
    nearest = complete_units(near, found.units, max_sentences)
    return Extraction((), degraded, tuple(nearest), found.missing or found.unknown)


def _lacks_own(item: ScoredUnit, shared: AbstractSet[str], question: str) -> bool:
    """Return whether a unit is about the topic of several questions only, and not surely about this one."""
    only_shared = _is_only_shared(shared, question, item.unit.quote)
    return only_shared and not is_enough(item, only_shared=True)


def _keep_measured(ranked: Sequence[ScoredUnit], kind: AskedKind, question: str) -> Sequence[ScoredUnit]:
    """Return only the units that have the figure, name or time that is asked for, where the best one has it."""
    if kind not in MEASURED | TIMED or not ranked or not holds_kind(kind, ranked[0].unit.text, question):
        return ranked
    return [item for item in ranked if holds_kind(kind, item.unit.text, question)]


def _holds_measured(kind: AskedKind, units: Sequence[AnswerUnit], question: str) -> bool:
    """Return whether some unit has the figure or the name that is asked for, where one is."""
    return kind not in MEASURED or any(holds_kind(kind, unit.text, question) for unit in units)


def is_enough(item: ScoredUnit, *, only_shared: bool = False, measured: bool = False) -> bool:
    """Return whether a unit may be given as an answer; `measured` where a figure or a name is asked for and there."""
    least = MIN_COVERAGE if item.closeness is None else MIN_EVIDENCE
    return item.strength >= least + ONLY_SHARED * only_shared - MEASURED_BONUS * measured


def choose(
    ranked: Sequence[ScoredUnit], asked: AbstractSet[str] = frozenset(), *, by_meaning: bool = True
) -> list[AnswerUnit]:
    """Return the best units that say different things, best first; a model may not know the language of a question."""
    chosen: list[AnswerUnit] = []
    for item in ranked:
        if len(chosen) == MOST_UNITS:
            break
        if item.worth < KEEP * ranked[0].worth or (chosen and not _says_some(item, ranked[0], asked, by_meaning)):
            continue
        same = [other for other in chosen if _say_the_same(item.unit.quote, other.quote)]
        if not same:
            chosen.append(item.unit)
        elif named_places(same[0].text) - named_places(item.unit.text):
            chosen[chosen.index(same[0])] = item.unit  # An address may be planted: the same without one is quoted.
    return chosen


def _says_some(item: ScoredUnit, best: ScoredUnit, asked: AbstractSet[str], by_meaning: bool) -> bool:
    """Return whether a unit itself has something of the question: words, or a meaning not far from the best one's."""
    words = f"{item.unit.term.text} {item.unit.text}" if item.unit.term else item.unit.text
    is_near = by_meaning and item.closeness is not None and item.closeness >= NEAR_THE_BEST * (best.closeness or 0.0)
    return is_near or not asked or not asked.isdisjoint(analyze(words))


def find_beside(chosen: Sequence[AnswerUnit], units: Sequence[AnswerUnit], question: str) -> list[AnswerUnit]:
    """Return the sentences that go on about what a chosen one says: the next one may answer what one repeats."""
    by_place = {unit.quote.place: unit for unit in units}
    asked = set(asked_terms(question))
    beside: list[AnswerUnit] = []
    for unit in chosen:
        after = by_place.get(unit.after.place) if unit.after and unit.kind == "sentence" else None
        if after is not None and len(unit.text) + len(after.text) <= LONGEST_TOGETHER and _goes_on(unit, after, asked):
            beside.append(after)
    return beside


def _find_asked(
    chosen: Sequence[AnswerUnit], ranked: Sequence[ScoredUnit], kind: AskedKind, question: str
) -> list[AnswerUnit]:
    """Return the best unit beside the first one that holds what is asked for, where none of the chosen does."""
    if not chosen or kind not in STRICT or any(holds_kind(kind, unit.text, question) for unit in chosen):
        return []
    first = chosen[0]
    near = (item.unit for item in ranked if _is_of_same_entry(item.unit, first))
    return [unit for unit in near if holds_kind(kind, unit.text, question)][:1]


def _is_of_same_entry(unit: AnswerUnit, other: AnswerUnit) -> bool:
    if unit.quote.hit is not other.quote.hit:
        return False
    return unit.term.place == other.term.place if unit.term and other.term else unit.block == other.block


def _goes_on(unit: AnswerUnit, after: AnswerUnit, asked: AbstractSet[str]) -> bool:
    return leans(after.text) or not set(analyze(after.text)).isdisjoint({*asked, *analyze(unit.text)})


def _widen_to_list(unit: AnswerUnit, units: Sequence[AnswerUnit], kind: AskedKind) -> AnswerUnit:
    """Return the list of an item where all of it is asked for."""
    if unit.kind != "item" or kind not in ("list", "steps"):
        return unit
    own = unit.quote
    return next(
        (
            other
            for other in units
            if other.kind == "list" and other.quote.hit is own.hit and other.quote.start <= own.start < other.quote.end
        ),
        unit,
    )


def _say_the_same(quote: Quote, other: Quote) -> bool:
    if quote.head and other.head and quote.head.place == other.head.place:
        return False  # Rows of one table are alike in all but what they are there for.
    text, said = (_MARK.sub("", each.text) for each in (quote, other))
    if numbers(text) != numbers(said) or is_negated(text) != is_negated(said):
        return False
    first, second = set(analyze(text)), set(analyze(said))
    if named_places(text) != named_places(said):
        return len(first & second) >= _SAME * min(len(first), len(second))
    return len(first & second) >= _SAME * len(first | second)


def _is_only_shared(shared: AbstractSet[str], question: str, quote: Quote) -> bool:
    """Return whether a quote has of a question only what other questions have too."""
    asked = set(asked_terms(question))
    found = set(analyze(select_words(quote, frozenset(asked))))
    return not found.isdisjoint(shared & asked) and found.isdisjoint(asked - shared) and not asked <= shared


def find_candidates(hits: Sequence[Hit], *, addresses: bool) -> list[Quote]:
    """Return the quotes of the units of the hits."""
    return [unit.quote for unit in find_units(hits, addresses=addresses)]

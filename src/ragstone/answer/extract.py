"""An answer without an LLM: the parts of the passages that answer the question, word for word."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate

from ragstone.answer.check import is_negated, numbers
from ragstone.answer.complete import complete_units, fit_list
from ragstone.answer.features import unit_holds
from ragstone.answer.missing import asks_for_unknown, drop_unnamed, find_missing_names, find_missing_nouns
from ragstone.answer.quotes import Quote, Statement, caption, select_for_question
from ragstone.answer.reader import Reader
from ragstone.answer.sanitize import named_places
from ragstone.answer.score import (
    ScoredUnit,
    are_of_one_entry,
    estimate_chance,
    leans,
    read_in_context,
    score_units,
    share_chances,
    weigh_relevance,
)
from ragstone.answer.units import AnswerUnit, find_units
from ragstone.answer.verify.language import is_foreign_text
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder, Reranker
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.asked import (
    MEASURED,
    STRICT,
    TIMED,
    AskedKind,
    asks_for_default,
    find_asked_kind,
    find_comparing,
    holds_kind,
)
from ragstone.language.grammar import is_known_verb
from ragstone.language.relevance import UnrelatedVectors, asked_terms, closeness, require_model
from ragstone.language.synonyms import AlikeWords

MIN_CHANCE = 0.45
"""The least chance of being right with which the best units are given as an answer."""
MIN_NEAR = 0.45
"""Strength that a unit must have to be shown as the nearest where nothing answers."""
MIN_RELEVANCE, LEAST_ELSEWHERE = 0.05, 0.6
"""Relevance that a passage of the best units must have for that, and the least chance where none has it: a passage on
several things is not very relevant to a question about one of them."""
ENOUGH = 0.9
"""Chance that the right unit is among the best ones from which no further one is looked at."""
KEEP, KEEP_OF_OTHERS = 0.5, 0.7
"""Share of the best unit's strength that a further one needs to be said too: of its document, and of another one, which
may be about other things."""
_NEARLY = math.log(0.1)
"""Behind the best score: a further unit with a figure, a name, a time or a default must have a tenth of the best one's
chance."""
LONGEST_TOGETHER = 500
"""Characters of a sentence and of the one that goes on about the same."""
LONGEST_RUN = 400
"""Characters of a sentence with those that follow it in its paragraph and go on."""
NEAR_THE_BEST = 0.85
"""Share of the best unit's closeness that a further one needs which has no word of the question."""
MOST_UNITS = 4
SHORTLIST = 12
"""Most units that models compare with the question: sixteen take a third more time and answer no more right."""
RERANK_SECONDS = 5
_CARRIES_ON = re.compile(r"(?:You|We|I|One|There|If|When|See|Note|To|First|Next|Finally|In (?:an?|the)|With|For)\b")
"""The beginning of an English sentence that is seldom the first about something."""
_LETTERS = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"\[\d{1,3}\]")
_SAME = 0.8
"""Share of common terms from which two units say the same."""
_ALIKE = 0.6
"""Share of the shorter unit's terms from which another document speaks of the same."""


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
    """Picks units by meaning, by words, by kind and, where there are any, by a reader and a reranker."""

    def __init__(self, embedder: Embedder, reranker: Reranker | None = None, reader: Reader | None = None) -> None:
        self._embedder = embedder
        self._reranker = reranker
        self._reader = reader
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

        `shared` are terms that other questions asked along with this one have too; they count little.
        """
        found, degraded = await self.compare(question, hits, addresses=addresses, shared=shared)
        if not found.short:
            return Extraction((), degraded, missing=found.missing or found.unknown)
        return await asyncio.to_thread(_decide, question, found, max_sentences, degraded)

    async def compare(
        self, question: str, hits: Sequence[Hit], *, addresses: bool = True, shared: AbstractSet[str] = frozenset()
    ) -> tuple[FoundUnits, tuple[str, ...]]:
        """Return what could be said, the best of it compared with the question, and what could not be done."""
        # Texts may be made to take long: they are not compared on the event loop.
        found = await asyncio.to_thread(shortlist_units, question, hits, addresses, shared)
        if not found.short:
            return found, ()
        short, notes = found.short, list[str]()
        try:
            short, note = await self._compare_by_meaning(question, short)
            notes += [note] if note else []
        except (ModelError, RemoteError) as error:
            notes.append(f"answer: sentences chosen by words only: {error}")
        try:
            short = await self._rerank(question, short)
        except (ModelError, RemoteError, TimeoutError) as error:
            reason = str(error) or f"no scores within {RERANK_SECONDS} s"
            notes.append(f"answer: sentences chosen without the reranker: {reason}")
        return replace(found, short=short), tuple(notes)

    async def _rerank(self, question: str, units: Sequence[ScoredUnit]) -> Sequence[ScoredUnit]:
        """Return the units with what the reranker says of them."""
        # Where the search did without it (in a hurry, not rolled out, broken), so does the answer.
        if self._reranker is None or not any("rerank" in item.unit.quote.hit.scores for item in units):
            return units
        terms = frozenset(asked_terms(question))
        passages = [read_in_context(item.unit, terms) for item in units]
        async with asyncio.timeout(RERANK_SECONDS):
            scores = await self._reranker.score(question, passages)
        return [replace(item, reranked=weigh_relevance(value)) for item, value in zip(units, scores, strict=True)]

    async def _compare_by_meaning(self, question: str, units: Sequence[ScoredUnit]) -> tuple[Sequence[ScoredUnit], str]:
        """Return the units with their closeness and what the reader says, and what kept the reader from telling."""
        asked = await self._embedder.embed([question], "query")
        reading = asyncio.ensure_future(self._read(question, asked.model, units))
        try:
            near = await self._measure_closeness(question, asked, units)
        except BaseException:
            reading.cancel()
            raise
        odds, note = await reading
        told = zip(units, near, odds, strict=True)
        return [replace(item, closeness=measured, reader_odds=each) for item, measured, each in told], note

    async def _read(self, question: str, model: str, units: Sequence[ScoredUnit]) -> tuple[Sequence[float | None], str]:
        if self._reader is None:
            return [None] * len(units), ""
        return await self._reader.find_odds(question, [item.unit for item in units], model)

    async def _measure_closeness(self, question: str, asked: Embeddings, units: Sequence[ScoredUnit]) -> list[float]:
        terms = frozenset(asked_terms(question))
        unrelated = await self._unrelated.load(self._embedder, asked.model)
        embedded = await self._embedder.embed([read_in_context(item.unit, terms) for item in units])
        require_model(embedded.model, asked.model)
        return closeness(asked.vectors[0], embedded.vectors, unrelated)


@dataclass(frozen=True, slots=True)
class FoundUnits:
    """Units that could be said, the best of them by words, and names asked for that no passage has."""

    units: Sequence[AnswerUnit]
    short: Sequence[ScoredUnit]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    """Other words asked for that no passage has; one may still answer."""
    is_of_another_kind: bool = False
    """A kind of thing is asked for that no passage has a word for."""


def shortlist_units(question: str, hits: Sequence[Hit], addresses: bool, shared: AbstractSet[str]) -> FoundUnits:
    """Return what could be said, and the best of it by words and kind."""
    missing = find_missing_names(question, hits)
    units = find_units(drop_unnamed(question, hits), addresses=addresses)
    asked = frozenset(asked_terms(question))
    meant = {quote.place for quote in select_for_question([unit.quote for unit in units], question, asked)}
    # The names of its columns make a row look like an answer, whatever else is asked for.
    units = [unit for unit in units if unit.kind != "row" or (unit.quote.place in meant and not missing)]
    ranked = sorted(score_units(question, units, shared), key=lambda item: item.score, reverse=True)
    unknown = () if not hits or is_foreign_text(question) else find_missing_nouns(question, hits)
    return FoundUnits(units, ranked[:SHORTLIST], missing, unknown, asks_for_unknown(question, unknown, hits))


def _decide(question: str, found: FoundUnits, max_sentences: int, degraded: tuple[str, ...]) -> Extraction:
    ranked = sorted(found.short, key=lambda item: item.score, reverse=True)
    said = quote_best(question, ranked, found.units, max_sentences)
    may_answer = (
        said
        and not found.missing
        and not found.is_of_another_kind
        and not _leaves_comparing(question, ranked[0], found.units)
    )
    least = MIN_CHANCE if _is_relevant(ranked) else LEAST_ELSEWHERE
    if may_answer and (estimate_chance(ranked) >= least or _is_asked_by_title(question, ranked[0].unit)):
        return Extraction(tuple(said), degraded)
    nearest = complete_units(find_nearest(ranked), found.units, max_sentences)
    return Extraction((), degraded, tuple(nearest), found.missing or found.unknown)


def _leaves_comparing(question: str, best: ScoredUnit, units: Sequence[AnswerUnit]) -> bool:
    """Return whether a row comes first that tells of one thing only, where things are to be compared."""
    word, quote = find_comparing(question), best.unit.quote
    if not word or quote.head is None:
        return False
    around = f"{quote.text}\n{quote.head.text}\n{caption(quote.head)}\n{quote.headings}".lower()
    if AlikeWords(_LETTERS.findall(around)).has(word):
        return False
    # "The longest name" of a table of limits is one row, "the cheapest logger" of a list of goods one of several.
    rivals = (unit for unit in units if unit.quote.head and unit.quote.head.text == quote.head.text)
    return not word.endswith("st") or any(unit.quote.place != quote.place for unit in rivals)


def _is_asked_by_title(question: str, unit: AnswerUnit) -> bool:
    """Return whether a question asks for the section of a unit by its title: "What is your return policy?"."""
    title = unit.heading.text if unit.heading else unit.quote.hit.section.rpartition(" > ")[2]
    terms = set(analyze(title))
    return len(terms) > 1 and terms == set(asked_terms(question))


def find_nearest(ranked: Sequence[ScoredUnit]) -> list[AnswerUnit]:
    """Return the best unit that is near the question at all, or none."""
    return [item.unit for item in ranked if item.strength >= MIN_NEAR][:1]


def _is_relevant(ranked: Sequence[ScoredUnit]) -> bool:
    known = [item.unit.quote.hit.relevance for item in ranked[:MOST_UNITS]]
    return any(relevance is None or relevance >= MIN_RELEVANCE for relevance in known)


def quote_best(
    question: str, ranked: Sequence[ScoredUnit], units: Sequence[AnswerUnit], max_sentences: int
) -> list[Statement]:
    """Return what the best units say; nothing where they lack the figure, the name or the default that is asked for."""
    kind = find_asked_kind(question)
    asked, english = frozenset(asked_terms(question)), not is_foreign_text(question)
    best = choose(_keep_measured(keep_likely(ranked), kind, question), asked, by_meaning=english)
    chosen = [fit_list(unit, units, ranked, kind, asked) for unit in best]
    if kind not in MEASURED and not (kind in TIMED and any(holds_kind(kind, unit.text) for unit in chosen)):
        chosen = [_widen_to_run(unit, units, asked) for unit in chosen]
    beside = _find_asked(chosen, ranked, kind, question)
    if not (kind in MEASURED | TIMED and any(unit_holds(kind, unit, question) for unit in chosen[:1])):
        beside += find_beside(chosen, units, question)
    if kind in MEASURED and not any(unit_holds(kind, unit, question) for unit in [*chosen, *beside]):
        return []
    said = complete_units(chosen, units, max_sentences, beside)
    if not asks_for_default(question) or _speaks_of_default(said, chosen):
        return said
    default = _find_default(ranked)
    return complete_units([*default, *chosen], units, max_sentences, beside) if default else []


def _find_default(ranked: Sequence[ScoredUnit]) -> list[AnswerUnit]:
    """Return the unit of the best one's document that tells a default, if it is nearly as likely."""
    near = (
        item.unit
        for item in ranked
        if item.score >= ranked[0].score + _NEARLY
        and item.unit.quote.hit.document_id == ranked[0].unit.quote.hit.document_id
    )
    return [unit for unit in near if holds_kind("default", unit.text)][:1]


def _speaks_of_default(said: Sequence[Statement], chosen: Sequence[AnswerUnit]) -> bool:
    """Return whether what is said, the header of its table or what stands over it tells that it is a default."""
    quoted = [quote.text for statement in said for quote in statement.quotes]
    over = [f"{unit.above}\n{unit.quote.hit.section}" for unit in chosen]
    return any(holds_kind("default", text) for text in (*quoted, *over))


def keep_likely(ranked: Sequence[ScoredUnit]) -> Sequence[ScoredUnit]:
    """Return the best units, until one of them is very likely the right one, and those that tell the best otherwise.

    The best one may be planted: another document that says nearly the same is heard as well.
    """
    before = [0.0, *accumulate(share_chances(ranked))] if ranked else []
    return [
        item
        for item, chance in zip(ranked, before, strict=False)
        if chance < ENOUGH or _is_told_otherwise(item.unit.quote, ranked[0].unit.quote)
    ]


def _is_told_otherwise(quote: Quote, best: Quote) -> bool:
    """Return whether another document says nearly the same as the best quote."""
    if quote.hit.document_id == best.hit.document_id:
        return False
    own, other = set(analyze(quote.text)), set(analyze(best.text))
    return len(own & other) >= _ALIKE * min(len(own), len(other))


def _keep_measured(ranked: Sequence[ScoredUnit], kind: AskedKind, question: str) -> Sequence[ScoredUnit]:
    """Return only the units that have the figure, name or time that is asked for, where the best one has it."""
    if kind not in MEASURED | TIMED or not ranked or not unit_holds(kind, ranked[0].unit, question):
        return ranked
    best = ranked[0]
    return [
        item
        for item in ranked
        if unit_holds(kind, item.unit, question)
        and (item.score >= best.score + _NEARLY or _is_told_otherwise(item.unit.quote, best.unit.quote))
    ]


def choose(
    ranked: Sequence[ScoredUnit], asked: AbstractSet[str] = frozenset(), *, by_meaning: bool = True
) -> list[AnswerUnit]:
    """Return the best units that say different things, best first; a model may not know the language of a question."""
    chosen: list[AnswerUnit] = []
    for item in ranked:
        if len(chosen) == MOST_UNITS:
            break
        if chosen and not _is_as_good(item, ranked[0], asked, by_meaning):
            continue
        same = [other for other in chosen if _say_the_same(item.unit.quote, other.quote)]
        if not same:
            chosen.append(item.unit)
        elif named_places(same[0].text) - named_places(item.unit.text):
            chosen[chosen.index(same[0])] = item.unit  # An address may be planted: the same without one is quoted.
    return chosen


def _is_as_good(item: ScoredUnit, best: ScoredUnit, asked: AbstractSet[str], by_meaning: bool) -> bool:
    """Return whether a further unit is good enough beside the best one."""
    is_of_best = item.unit.quote.hit.document_id == best.unit.quote.hit.document_id
    least = (KEEP if is_of_best else KEEP_OF_OTHERS) * best.strength
    return item.strength >= least and _says_some(item, best, asked, by_meaning)


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
    if not chosen or kind not in STRICT or any(unit_holds(kind, unit, question) for unit in chosen):
        return []
    first = chosen[0]
    near = (item.unit for item in ranked if are_of_one_entry(item.unit, first))
    return [unit for unit in near if unit_holds(kind, unit, question)][:1]


def _goes_on(unit: AnswerUnit, after: AnswerUnit, asked: AbstractSet[str]) -> bool:
    return leans(after.text) or not set(analyze(after.text)).isdisjoint({*asked, *analyze(unit.text)})


def _widen_to_run(unit: AnswerUnit, units: Sequence[AnswerUnit], asked: AbstractSet[str]) -> AnswerUnit:
    """Return a sentence with those of its paragraph that go on: what is asked for is often told in several."""
    after = {one.quote.place: one.after for one in units} if unit.kind == "sentence" else {}
    quote, following = unit.quote, unit.after
    # What is no unit itself (a question, an address that is kept out) ends the run.
    while following and following.place in after and following.end - quote.start <= LONGEST_RUN:
        if not _carries_on(quote.text, following.text, asked):
            break
        quote, following = replace(quote, end=following.end), after[following.place]
    return unit if quote is unit.quote else replace(unit, quote=quote, after=None)


def _carries_on(said: str, after: str, asked: AbstractSet[str]) -> bool:
    if leans(after) or _CARRIES_ON.match(after) or is_known_verb(after.split(maxsplit=1)[0].lower()):
        return True
    return not set(analyze(after)).isdisjoint({*asked, *analyze(said)})


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


def find_candidates(hits: Sequence[Hit], *, addresses: bool) -> list[Quote]:
    """Return the quotes of the units of the hits."""
    return [unit.quote for unit in find_units(hits, addresses=addresses)]

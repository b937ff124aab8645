"""The sentences of the passages that bear on a claim, each read beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np

from ragstone.answer.budget import MOST_STEPS, StepBudget
from ragstone.answer.quotes import Quote, render_row, select_for_claim, select_words
from ragstone.answer.sanitize import strip_hidden
from ragstone.answer.score import read_in_context
from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.appositions import is_role_of_another
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.conditions import strong_part
from ragstone.answer.verify.defaults import (
    compare_defaults,
    gives_default,
    names_owner,
    speaks_of_default,
    spell_default,
)
from ragstone.answer.verify.fit import find_misfits, find_scattered
from ragstone.answer.verify.frame import Frame, has_changed_places, lay_along
from ragstone.answer.verify.objections import (
    NO_FINDINGS,
    Findings,
    Objection,
    ObjectionKind,
    Rival,
    drop_kinds,
    has_kind,
)
from ragstone.answer.verify.roles import find_other_actor
from ragstone.answer.verify.row import check_row, is_stated_by, render_with_units, row_statement
from ragstone.answer.verify.shares import NOTHING, Context, Shares, is_verbatim, measure_shares
from ragstone.answer.verify.slots import (
    are_exchanged,
    find_contrast,
    find_opposed,
    find_other_figure,
    find_other_sign,
    find_rival,
)
from ragstone.answer.verify.split import split_clauses
from ragstone.answer.verify.statements import MAX_CHARS, find_evidence
from ragstone.answer.verify.subject import drop_topic, name_subject, read_context, read_text
from ragstone.answer.verify.support import find_unsupported, lacks_unit
from ragstone.answer.verify.terms import find_named_terms, find_other_term
from ragstone.answer.verify.verbatim import STATED, find_answer_no, find_verbatim, is_taken_back
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, Matrix, Vector
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.negation import are_opposites, differ_in_denial, drop_emphasis, find_denials, restate
from ragstone.language.relevance import (
    COVERAGE_WEIGHT,
    UnrelatedVectors,
    asked_terms,
    closeness,
    measure_coverage,
    require_model,
)
from ragstone.language.sentences import sentence_spans
from ragstone.language.vocabulary import content_words, read_vocabulary

SHORTLIST = 16
"""Most sentences that the model compares with a claim."""
REMEMBERED = 2000
"""Sentences whose vectors are kept."""
_MOST_STATED = 4
"""Sentences that state a claim word for word of which more are not needed."""
_VERBATIM = 0.6
"""Share of a claim's words in the order of a sentence from which it repeats the sentence."""
_ADDITION = re.compile(r",?\s(?:and|or|but|nor|unless)\s", re.I)
_SAME_SUBJECT, _HALF = 0.8, 0.5
"""Share of what a claim is about from which the default of a sentence is the default of that."""
_WITHOUT = re.compile(r"\bwithout\b", re.I)
_SAME_MATTER = 0.66
"""Share of a claim's own words from which a sentence with another condition, unit or option is about the same."""
_DEFAULT_AHEAD = 0.5
"""Lead of a sentence that gives a default over others when a claim gives one: "Default: 5" has few words."""
_SAME = 0.7
"""Share of a claim's words from which a sentence that has another figure or the opposite word speaks of the same."""


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence read beside a claim."""

    quote: Quote
    closeness: float
    """0 unrelated, 1 the same."""
    coverage: float
    """Weighted share of the claim's terms in the sentence and the headings above it."""
    literal: float
    """Share of the claim's neighbouring terms that stand next to each other here too."""
    findings: Findings
    objections: tuple[Objection, ...] = ()
    """Reasons why the claim does not rest on the sentence and the text above it."""
    shares: Shares = NOTHING
    """Shares of the claim that the sentence has."""
    rival: Rival | None = None
    """Set if the sentence says another thing in the place of something in the claim."""
    is_opposed: bool = False
    """True when of the claim and the clause about the same one denies something, or each has the opposite word."""
    is_turned_round: bool = False
    """True when the claim has the words of the sentence in exchanged places."""

    @property
    def strength(self) -> float:
        """Return how much it bears on the claim, whatever it says about it."""
        return self.closeness + COVERAGE_WEIGHT * self.coverage

    @property
    def premise(self) -> str:
        """Return the sentence as a checker reads it: with its title and the sentence before it, or its columns."""
        hit, before = self.quote.hit, ""
        if self.quote.head is not None:
            row = render_row(self.quote.text, self.quote.head.text)
            return "\n".join(strip_hidden(part) for part in (hit.title, hit.section, row) if part)
        for start, end in sentence_spans(hit.text[: self.quote.start]):
            before = hit.text[start:end]
        parts = (hit.title, before[-MAX_CHARS:], self.quote.text)
        return "\n".join(strip_hidden(part) for part in parts if part)


class SentenceReader:
    """Reads passages beside claims; keeps what its model says of unrelated sentences."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._unrelated = UnrelatedVectors()
        self._known: dict[tuple[str, str], Vector] = {}

    async def read(
        self, claim: str, hits: Sequence[Hit], most: int = SHORTLIST, budget: StepBudget | None = None
    ) -> tuple[list[SentenceReading], list[str]]:
        """Return the `most` sentences that bear most on the claim, strongest first, and what could not be done."""
        budget = budget or StepBudget()
        read = budget.cut(hits)
        # Texts may be made to take long: nothing of this runs on the event loop.
        chosen = await asyncio.to_thread(_shortlist, claim, read)
        notes: list[str] = []
        near = [candidate.coverage for candidate in chosen]
        try:
            terms = frozenset(analyze_query(claim))
            near = await self._closeness(claim, [read_in_context(candidate.unit, terms) for candidate in chosen])
        except (ModelError, RemoteError) as error:
            notes.append(f"verify: sentences compared by words only: {error}")
        return await asyncio.to_thread(_read_strongest, claim, chosen, near, most, budget), notes

    async def _closeness(self, claim: str, read: Sequence[str]) -> list[float]:
        if not read:
            return []
        asked = await self._embedder.embed([claim], "query")
        unrelated = await self._unrelated.load(self._embedder, asked.model)
        vectors = await self._vectors(asked.model, [strip_hidden(words) for words in read])
        return closeness(asked.vectors[0], vectors, unrelated)

    async def _vectors(self, model: str, texts: Sequence[str]) -> Matrix:
        """Return vectors, cached: the claims of one article are read beside the same sentences again and again."""
        known = {text: self._known[model, text] for text in texts if (model, text) in self._known}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            made = await self._embedder.embed(missing)
            require_model(made.model, model)
            known |= dict(zip(missing, made.vectors, strict=True))
        if len(self._known) > REMEMBERED:
            self._known.clear()
        self._known |= {(model, text): vector for text, vector in known.items()}
        return np.stack([known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence that may bear on a claim; `sentences` are all that it was chosen from."""

    unit: AnswerUnit
    words: str
    coverage: float
    place: int
    sentences: tuple[Sequence[str], Sequence[str]]
    """Their words and the text above them."""
    is_stated: bool
    """True when the sentence states the claim word for word."""
    terms: frozenset[str]
    """Options, terms of entries and labels of rows that the claim names and some sentence explains."""

    @property
    def quote(self) -> Quote:
        return self.unit.quote


def _shortlist(claim: str, hits: Sequence[Hit]) -> list[_Candidate]:
    """Return the sentences that cover most of a claim."""
    terms = frozenset(analyze_query(claim))
    found = find_evidence(hits)
    stated = list(islice(find_verbatim(claim, found), _MOST_STATED))
    found = [*stated, *(unit for unit in found if not any(_overlap(unit.quote, one.quote) for one in stated))]
    kept = {id(quote) for quote in select_for_claim([unit.quote for unit in found], claim, terms)}
    units = [unit for unit in found if id(unit.quote) in kept]
    read = [select_words(unit.quote, terms) for unit in units]
    above = [read_context(unit).text for unit in units]
    covered = measure_coverage(asked_terms(claim), read, above)
    is_stated = [any(unit is one for one in stated) for unit in units]
    named = find_named_terms(claim, found)
    covered = [1.0 if known else share for known, share in zip(is_stated, covered, strict=True)]
    ahead = [_DEFAULT_AHEAD * gives_default(claim, unit.text) for unit in units]
    places = sorted(range(len(units)), key=lambda place: -covered[place] - units[place].quote.hit.score - ahead[place])
    return [
        _Candidate(units[place], read[place], covered[place], place, (read, above), is_stated[place], named)
        for place in places[:SHORTLIST]
    ]


def _overlap(one: Quote, other: Quote) -> bool:
    (document, start, end), (another, first, last) = one.place, other.place
    return document == another and start < last and first < end


def _read_strongest(
    claim: str, chosen: Sequence[_Candidate], near: Sequence[float], most: int, budget: StepBudget
) -> list[SentenceReading]:
    """Read the sentences that bear most on a claim, as far as the budget goes."""
    ranked = []
    for candidate, value in zip(chosen, near, strict=True):
        said, share = claim, candidate.coverage
        if budget.spend(claim, candidate.words, reserve=MOST_STEPS // 2):
            said = restate(claim, candidate.words)
        if said != claim and not candidate.is_stated:
            share = measure_coverage(asked_terms(said), *candidate.sentences)[candidate.place]
        ahead = _DEFAULT_AHEAD * gives_default(claim, candidate.unit.text)
        ranked.append((value + COVERAGE_WEIGHT * share + ahead, candidate, said, value, share))
    ranked.sort(key=lambda item: (not item[1].is_stated, -item[0]))
    readings = []
    for _, candidate, said, value, share in ranked[:most]:
        if candidate.is_stated:
            readings.append(SentenceReading(candidate.quote, value, 1.0, 1.0, NO_FINDINGS, shares=STATED))
        elif budget.spend(claim, candidate.unit.text):
            readings.append(_read_unit(claim, said, candidate, value, share))
        else:
            budget.unread += 1
    return readings


def _read_unit(claim: str, said: str, candidate: _Candidate, near: float, covered: float) -> SentenceReading:
    """Read a unit beside a claim; `said` is the claim in the figures of the unit."""
    unit = candidate.unit
    quote, context = unit.quote, read_context(unit)
    if quote.head is None:
        text = name_subject(claim, unit, read_text(unit))
        findings = check(claim, text, context.above, quote.hit.text)
        if is_taken_back(unit):
            findings = replace(findings, voids=(*findings.voids, Objection(ObjectionKind.NOT_A_FACT)))
        objections, shares, rival, *turned = _rest_on(claim, said, text, read_text(unit), context)
        rival = find_answer_no(claim, unit) or rival
        rival = rival or find_other_term(claim, unit, read_text(unit), context.titles, candidate.terms)
        share = literal_share(said, text)
        return SentenceReading(quote, near, covered, share, findings, objections, shares, rival, *turned)
    terms = frozenset(analyze_query(claim))
    findings = check_row(claim, quote, terms, context.titles)
    share = 1.0 if is_stated_by(quote, claim, said) else literal_share(said, row_statement(quote, terms))
    told = name_subject(claim, unit, render_with_units(quote))
    objections, shares, rival, opposed, _ = _rest_on(claim, said, told, quote.text, context, is_row=True)
    # The cells of a row have no order, and its names stand over it.
    ordered = {ObjectionKind.OF_ANOTHER, ObjectionKind.TURNED_ROUND, ObjectionKind.OPPOSITE_WORDS}
    objections = drop_kinds(objections, ordered)
    rival = rival or find_other_term(claim, unit, told, context.titles, candidate.terms)
    return SentenceReading(quote, near, covered, share, findings, objections, shares, rival, opposed)


def _rest_on(
    claim: str, said: str, sentence: str, plain: str, context: Context, *, is_row: bool = False
) -> tuple[tuple[Objection, ...], Shares, Rival | None, bool, bool]:
    """Return the objections to resting a claim on a sentence, shares, rival, and if they are opposed or turned.

    `plain` is the sentence without the names that stand over it.
    """
    shares = measure_shares(claim, said, sentence, lay_along(said, [sentence]), context, is_row=is_row)
    bare, said = (drop_topic(text, plain, context.titles) for text in (claim, said))
    frame = lay_along(said, [sentence])
    if frame is not None and shares.told == 1:
        shares = replace(shares, repeated=frame.share, is_verbatim=is_verbatim(frame))
    objections = _find_objections(claim, bare, sentence, shares, context)
    default = compare_defaults(claim, sentence)
    is_named = names_owner(claim, f"{context.text}\n{sentence}")
    if shares.subject < _SAME_SUBJECT or shares.close < _HALF or not is_named:
        # It may be the default of something else: too little to refute, enough not to rest on it.
        objections = (*objections, Objection(ObjectionKind.OTHER_WORD)) if isinstance(default, Rival) else objections
        default = None
    shares = replace(shares, states_default=default is True, gives_default=default is not None)
    rival = default if isinstance(default, Rival) else _find_rival(said, sentence, frame, shares, context)
    exchanged = are_exchanged(said, sentence)
    if exchanged:
        objections = (*objections, Objection(ObjectionKind.TURNED_ROUND))
    turned = exchanged or (frame is not None and shares.repeated >= _VERBATIM and has_changed_places(frame))
    return objections, shares, rival, _are_opposed(claim, choose_clause(claim, spell_default(claim, sentence))), turned


def _find_objections(claim: str, bare: str, sentence: str, shares: Shares, context: Context) -> tuple[Objection, ...]:
    """Return what speaks against resting a claim on a sentence."""
    around = f"{context.text}\n{sentence}"
    objections = tuple(find_unsupported(claim, [*context.before, sentence], around))
    if bare != claim and Objection(ObjectionKind.OF_ANOTHER) not in find_misfits(bare, [*context.before, sentence]):
        objections = drop_kinds(objections, {ObjectionKind.OF_ANOTHER})
    if differ_in_denial(claim, choose_clause(claim, spell_default(claim, sentence))):
        objections = (*objections, Objection(ObjectionKind.OPPOSITE_WORDS))
    if speaks_of_default(claim) and not speaks_of_default(around) and shares.repeated < _VERBATIM:
        objections = (*objections, Objection(ObjectionKind.WITHOUT_LIMIT))
    if lacks_unit(claim, around):
        objections = (*objections, Objection(ObjectionKind.NUMBER_MISSING))
    if shares.told < 1 or has_kind(objections, {ObjectionKind.OTHER_WORD}):
        return objections
    if shares.repeated >= _VERBATIM and _names_the_topic(claim, sentence, context):
        objections = drop_kinds(objections, {ObjectionKind.OF_SOMETHING_ELSE})
    if shares.repeated == 1:
        # It is the sentence, word for word: what its figures and names belong to cannot have changed.
        kinds = {ObjectionKind.NUMBER_OF_ANOTHER, ObjectionKind.OF_ANOTHER, ObjectionKind.TURNED_ROUND}
        return drop_kinds(objections, kinds)
    named = shares.repeated >= _VERBATIM and _names_what_stands_above(claim, context)
    named = named and not is_role_of_another(claim, [*context.before, sentence])
    return drop_kinds(objections, {ObjectionKind.OF_ANOTHER} if named else ())


def _names_the_topic(claim: str, sentence: str, context: Context) -> bool:
    """Return whether the words of a claim that a sentence leaves out are those of the titles over it."""
    titles = read_vocabulary(context.above)
    return all(titles.has_itself(word) for word in find_scattered(claim, [*context.before, sentence]))


def _are_opposed(claim: str, clause: str) -> bool:
    """Return whether one of the two denies something and the other nothing, or each has the opposite word."""
    # What is done without something is done: that is no denial of it.
    denied = [bool(find_denials(_WITHOUT.sub(" ", drop_emphasis(text)))) for text in (claim, clause)]
    return denied[0] != denied[1] or are_opposites(claim, clause)


def _names_what_stands_above(claim: str, context: Context) -> bool:
    """Return whether a name of a claim is one that stands over the sentence, which therefore leaves it out."""
    above = read_vocabulary(context.above)
    return any(word.is_name and above.has(word) for word in content_words(claim))


def choose_clause(claim: str, sentence: str) -> str:
    """Return the clause of a sentence that has most words of a claim, or all of it where no clause has as many."""
    wanted = set(analyze_query(claim))
    clauses = split_clauses(strong_part(claim, sentence))
    clause = max(clauses[::-1], key=lambda clause: len(wanted.intersection(analyze(clause))))
    return _drop_addition(clause, wanted)


def _drop_addition(clause: str, wanted: AbstractSet[str]) -> str:
    """Return a clause without what it hangs onto the last word of a claim: "and no lift", "unless they are renewed"."""
    end = len(clause)
    for joint in reversed(list(_ADDITION.finditer(clause))):
        if not wanted.isdisjoint(analyze(clause[joint.start() : end])):
            break
        end = joint.start()
    return clause[:end]


def _find_rival(said: str, sentence: str, frame: Frame | None, shares: Shares, context: Context) -> Rival | None:
    """Return what a sentence about the same says in the place of something in a claim, or None."""
    rival, repeated = None, frame.share if frame else 0.0
    if shares.told == 1 and max(shares.own, repeated) >= _SAME:
        rival = find_other_figure(said, sentence)
    if not rival and frame and repeated >= _SAME:
        clause = lay_along(said, [choose_clause(said, sentence)])
        rival = find_opposed(frame) or (find_opposed(clause) if clause and clause.share >= _SAME else None)
    rival = rival or find_other_actor(said, sentence)
    if not rival and repeated >= _SAME:
        rival = find_other_sign(said, sentence)
    if not rival and shares.own >= _SAME_MATTER:
        rival = find_contrast(said, sentence, context.above)
    return rival or find_rival(said, sentence, context.text, verbatim=repeated >= _VERBATIM)


def literal_share(claim: str, sentence: str) -> float:
    """Return the share of the claim's neighbouring terms that are neighbours in the sentence."""
    claimed, said = analyze(claim), analyze(sentence)
    wanted = set(pairwise(claimed)) or {(term, term) for term in claimed}
    found = set(pairwise(said)) | {(term, term) for term in said}
    return len(wanted & found) / len(wanted) if wanted else 0.0

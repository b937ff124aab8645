"""The sentences of the passages that bear on a claim, each read beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from ragstone.answer.budget import MOST_SENTENCES, MOST_STEPS, StepBudget, cut_passages
from ragstone.answer.quotes import Quote, caption, render_row, rows, select_for_claim, select_words
from ragstone.answer.sanitize import strip_hidden
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.frame import lay_along
from ragstone.answer.verify.objections import Findings, Objection
from ragstone.answer.verify.row import check_row, is_stated_by, row_statement
from ragstone.answer.verify.support import find_unsupported
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, Matrix, Vector
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.negation import restate
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
_MAX_CHARS = 1000
_FEWEST_TERMS = 2
_PATH = re.compile(r"[/.:_?=&#-]+")
_LONGEST_LEAD = 200
_BEFORE = 2
"""Sentences before one that are read with it."""


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
    shared: float = 0.0
    """Share of the claim's words that the sentence has in some form."""
    repeated: float = 0.0
    """Share of the claim's words that the sentence has in the same order."""
    told: float = 0.0
    """Share of the claim's words that the sentence and the text above it have in some form."""

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
        parts = (hit.title, before[-_MAX_CHARS:], self.quote.text)
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
        read, lost = cut_passages(hits)
        budget.unread += lost
        # Texts may be made to take long: nothing of this runs on the event loop.
        chosen = await asyncio.to_thread(_shortlist, claim, read)
        notes: list[str] = []
        near = [candidate.coverage for candidate in chosen]
        try:
            near = await self._closeness(claim, [candidate.words for candidate in chosen])
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


def find_sentences(hits: Sequence[Hit]) -> Iterator[Quote]:
    """Yield the sentences of the hits that state something, each place once."""
    seen: set[tuple[str, int, int]] = set()
    for hit in hits:
        in_tables = rows(hit)
        for start, end in sentence_spans(hit.text):
            quote = in_tables.get(start, Quote(hit, start, min(end, start + _MAX_CHARS)))
            if quote is None:
                continue
            stating = not quote.text.endswith("?") and len(analyze(quote.text)) >= _FEWEST_TERMS
            if stating and quote.place not in seen:
                seen.add(quote.place)
                yield quote


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence that may bear on a claim; `sentences` are all that it was chosen from."""

    quote: Quote
    words: str
    coverage: float
    place: int
    sentences: tuple[Sequence[str], Sequence[str]]
    """Their words and the headings above them."""


def _shortlist(claim: str, hits: Sequence[Hit]) -> list[_Candidate]:
    """Return the sentences that cover most of a claim."""
    terms = frozenset(analyze_query(claim))
    quotes = select_for_claim(list(islice(find_sentences(hits), MOST_SENTENCES)), claim, terms)
    read = [select_words(quote, terms) for quote in quotes]
    headings = [f"{quote.headings}\n{_lead(quotes, place)}" for place, quote in enumerate(quotes)]
    covered = measure_coverage(asked_terms(claim), read, headings)
    places = sorted(range(len(quotes)), key=lambda place: -covered[place] - quotes[place].hit.score)
    return [
        _Candidate(quotes[place], read[place], covered[place], place, (read, headings)) for place in places[:SHORTLIST]
    ]


def _lead(quotes: Sequence[Quote], place: int) -> str:
    """Return the sentence before one in the same passage: a term that it defines, or what it goes on with."""
    before = quotes[place - 1] if place else None
    return before.text if before and before.head is None and before.hit is quotes[place].hit else ""


def _read_strongest(
    claim: str, chosen: Sequence[_Candidate], near: Sequence[float], most: int, budget: StepBudget
) -> list[SentenceReading]:
    """Read the sentences that bear most on a claim, as far as the budget goes."""
    ranked = []
    for candidate, value in zip(chosen, near, strict=True):
        said, share = claim, candidate.coverage
        if budget.spend(claim, candidate.words, reserve=MOST_STEPS // 2):
            said = restate(claim, candidate.words)
        if said != claim:
            share = measure_coverage(asked_terms(said), *candidate.sentences)[candidate.place]
        ranked.append((value + COVERAGE_WEIGHT * share, candidate.quote, said, value, share))
    ranked.sort(key=lambda item: -item[0])
    readings = []
    for _, quote, said, value, share in ranked[:most]:
        if budget.spend(claim, quote.text):
            readings.append(_read_quote(claim, said, quote, value, share))
        else:
            budget.unread += 1
    return readings


def _read_quote(claim: str, said: str, quote: Quote, near: float, covered: float) -> SentenceReading:
    """Read a quote beside a claim; `said` is the claim in the figures of the sentence."""
    headings = quote.headings
    if quote.head is None:
        findings = check(claim, quote.text, headings, quote.hit.text)
        before, headings = read_before(quote), read_above(quote)
        return SentenceReading(
            quote,
            near,
            covered,
            literal_share(said, quote.text),
            findings,
            *_rest_on(claim, said, quote.text, before, headings),
        )
    terms = frozenset(analyze_query(claim))
    findings = check_row(claim, quote, terms, headings)
    share = 1.0 if is_stated_by(quote, claim, said) else literal_share(said, row_statement(quote, terms))
    told = render_row(quote.text, quote.head.text)
    return SentenceReading(
        quote,
        near,
        covered,
        share,
        findings,
        *_rest_on(claim, said, told, [], f"{read_above(quote)}\n{caption(quote.head)}"),
    )


def read_above(quote: Quote) -> str:
    """Return what stands above a quote: title, headings, the name of the file, and the first line of the passage."""
    hit = quote.hit
    first = hit.text[:_MAX_CHARS].lstrip().split("\n", 1)[0]
    return "\n".join((quote.headings, _PATH.sub(" ", hit.uri), first[:_LONGEST_LEAD]))


def read_before(quote: Quote) -> list[str]:
    """Return the sentences before a quote that it may point back to, and the first line of its list or definition."""
    text = quote.hit.text[max(0, quote.start - _MAX_CHARS) : quote.start]
    return [text[start:end] for start, end in sentence_spans(text)][-_BEFORE:]


def _rest_on(
    claim: str, said: str, sentence: str, before: Sequence[str], headings: str
) -> tuple[tuple[Objection, ...], float, float, float]:
    """Return the objections to resting a claim on a sentence, and how much of the claim's words it has."""
    above = "\n".join((headings, *before))
    known, words = read_vocabulary(sentence), content_words(claim)
    around, titled = read_vocabulary(f"{above}\n{sentence}"), read_vocabulary(headings)
    frame = lay_along(said, [sentence])
    return (
        tuple(find_unsupported(claim, [*before, sentence], f"{above}\n{sentence}")),
        sum(known.has(word) or (word.is_name and titled.has(word)) for word in words) / len(words) if words else 0.0,
        frame.share if frame else 0.0,
        sum(map(around.has, words)) / len(words) if words else 0.0,
    )


def literal_share(claim: str, sentence: str) -> float:
    """Return the share of the claim's neighbouring terms that are neighbours in the sentence."""
    claimed, said = analyze(claim), analyze(sentence)
    wanted = set(pairwise(claimed)) or {(term, term) for term in claimed}
    found = set(pairwise(said)) | {(term, term) for term in said}
    return len(wanted & found) / len(wanted) if wanted else 0.0

"""Passages that were found too and say otherwise: a denial, an opposite, another number or date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ragstone.answer.budget import MOST_SENTENCES, StepBudget
from ragstone.answer.check import Relate, is_negated, is_opposed, nearest_clauses, numbers
from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.sanitize import has_link
from ragstone.answer.score import leans
from ragstone.core.answers import Contradiction
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.dates import compare_moment, date_spans, find_moments
from ragstone.language.negation import has_denial_conflict, restate
from ragstone.language.sentences import sentence_spans

NEAR = 0.5
"""Share of a sentence's words that another must have to be about the same at all: those are put to the judge."""
SAME_MATTER = 0.7
"""Share from which explicit checks may say that one denies the other."""
SAME_BUT_NUMBERS = 0.8
"""Share, both ways, from which a different number is a different statement about the same thing."""
MOST_JUDGED = 6
MOST_SHOWN = 5
MOST_PARTS = 50
"""Sentences of one statement that are compared; a list as long as an answer quotes has fewer."""
_LABEL = re.compile(
    r"\b(?:[A-Z]\w*|version|step|chapter|section|figure|table|page|number|level|phase|part|item|line)"
    r"[ \t]+#?(\d[\d.,]*)"
)
"""A number that names something, as in "Pump 2": another name is another thing, not another statement."""


@dataclass(frozen=True, slots=True)
class _Other:
    """A sentence of a passage, and how much of the matter it shares."""

    quote: Quote
    words: frozenset[str]

    def share(self, words: frozenset[str]) -> float:
        return len(self.words & words) / len(words) if words else 0.0


async def find_contradictions(
    statements: Sequence[Statement], hits: Sequence[Hit], relate: Relate, budget: StepBudget | None = None
) -> list[Contradiction]:
    """Return the contradictions between hits and statements, in the order of statements, then of hits."""
    budget = budget or StepBudget()
    # Texts may be made to take long: nothing of this runs on the event loop.
    others = await asyncio.to_thread(lambda: list(islice(_find_others(hits), MOST_SENTENCES)))
    found: dict[tuple[str, int, int], Contradiction] = {}
    told: list[tuple[Statement, list[Quote]]] = []
    for statement in statements:
        against_it: list[Quote] = []
        sentences = await asyncio.to_thread(_split, statement)
        budget.unread += len(sentences[MOST_PARTS:])
        for sentence, near in await asyncio.to_thread(_find_near, statement, sentences[:MOST_PARTS], others, told):
            relations = await relate([other.quote.text for other in near], sentence)
            against = (
                await asyncio.to_thread(_find_disagreements, sentence, near, budget)
                if relations is None
                else [
                    (other.quote, "it contradicts the sentence")
                    for other, relation in zip(near, relations, strict=True)
                    if relation == "contradicts"
                ]
            )
            for quote, reason in against:
                against_it.append(quote)
                found.setdefault(quote.place, build_contradiction(sentence, quote, reason))
        told.append((statement, against_it))
    return list(found.values())[:MOST_SHOWN]


def _split(statement: Statement) -> list[str]:
    """Return the sentences of a statement that say by themselves what they are about; a row of a table is one."""
    if _is_in_table(statement):
        return [statement.text]
    first, *rest = [statement.text[start:end] for start, end in sentence_spans(statement.text)] or [statement.text]
    return [first, *(sentence for sentence in rest if not leans(sentence))]


def _find_near(
    statement: Statement,
    sentences: Sequence[str],
    others: Sequence[_Other],
    told: Sequence[tuple[Statement, Sequence[Quote]]],
) -> list[tuple[str, list[_Other]]]:
    """Return the sentences of a statement that others are about the matter of, each with the nearest of those."""
    # Neither its own words, nor those of a statement before it that this one was held against: that is shown once.
    known = [*statement.quotes]
    for before, against in told:
        known += before.quotes if any(_is_among(quote, statement.quotes) for quote in against) else ()
    # Rows of a table are alike and yet of different things: none speaks against another.
    in_table = _is_in_table(statement)
    apart = [
        other
        for other in others
        if not _is_among(other.quote, known) and not (in_table and other.quote.text.startswith("|"))
    ]
    found = [(sentence, _find_nearest(sentence, apart)) for sentence in sentences]
    return [(sentence, near) for sentence, near in found if near]


def _is_in_table(statement: Statement) -> bool:
    return any(quote.head for quote in statement.quotes)


def _find_nearest(sentence: str, others: Sequence[_Other]) -> list[_Other]:
    """Return the other sentences that are most about the matter of one."""
    words = _words(sentence)
    near = [other for other in others if other.share(words) >= NEAR]
    near.sort(key=lambda other: -other.share(words))
    return near[:MOST_JUDGED]


def _find_disagreements(sentence: str, near: Sequence[_Other], budget: StepBudget) -> list[tuple[Quote, str]]:
    """Return the sentences that disagree with one by explicit checks, and how, as far as the budget goes."""
    words, found = _words(sentence), []
    for other in near:
        if not budget.spend(sentence, other.quote.text):
            budget.unread += 1
        elif reason := _find_disagreement(sentence, words, other):
            found.append((other.quote, reason))
    return found


def _find_disagreement(sentence: str, words: frozenset[str], other: _Other) -> str:
    """Return how two sentences about the same matter disagree, or ""."""
    text = other.quote.text
    said = restate(sentence, text)  # 1500 kg are no other number than 1.5 tonnes
    if said != sentence:
        sentence, words = said, _words(said)
    if other.share(words) < SAME_MATTER:
        return ""
    kind = "number" if _numbers_differ(sentence, text) else "date" if _dates_differ(sentence, text) else ""
    if kind and _share_back(other.words, words) >= SAME_BUT_NUMBERS:
        return f"it gives another {kind}" if other.share(words) >= SAME_BUT_NUMBERS else ""
    clauses = nearest_clauses(sentence, [text])
    if all(_share_back(_words(clause), words) < NEAR for clause in clauses):
        return ""
    if all(is_negated(clause) != is_negated(sentence) and has_denial_conflict(sentence, clause) for clause in clauses):
        return "one says that this is so, the other that it is not"
    if all(is_opposed(sentence, clause) for clause in clauses):
        return "it says the opposite"
    return ""


def _numbers_differ(sentence: str, text: str) -> bool:
    """Return whether exactly one number is another one, and neither of them is part of a name."""
    here, there = numbers(sentence), numbers(text)
    only_here, only_there = here - there, there - here
    if len(only_here) != 1 or len(only_there) != 1:
        return False
    return not (only_here & _labels(sentence) or only_there & _labels(text))


def _dates_differ(sentence: str, text: str) -> bool:
    """Return whether both say the same of different times; with other numbers they do not say the same."""
    if numbers(sentence) != numbers(text):
        return False
    told = [compare_moment(moment, text) for moment in find_moments(sentence)]
    return "differs" in told and "same" not in told


def _labels(text: str) -> set[str]:
    return {number for match in _LABEL.finditer(text) for number in numbers(match[1].rstrip(".,"))}


def _share_back(theirs: frozenset[str], ours: frozenset[str]) -> float:
    return len(theirs & ours) / len(theirs) if theirs else 0.0


def _words(text: str) -> frozenset[str]:
    """Return the terms of a text that are neither numbers nor dates."""
    undated, end = "", 0
    for (start, stop), _ in date_spans(text):
        undated, end = undated + text[end:start], stop
    return frozenset(term for term in analyze(undated + text[end:]) if not numbers(term))


def _find_others(hits: Sequence[Hit]) -> Iterator[_Other]:
    seen: set[tuple[str, int, int]] = set()
    for hit in hits:
        for start, end in sentence_spans(hit.text):
            quote = Quote(hit, start, end)
            if quote.place not in seen and not quote.text.endswith(("?", "？")) and not has_link(quote.text):
                seen.add(quote.place)
                yield _Other(quote, _words(quote.text))


def _is_among(quote: Quote, quotes: Sequence[Quote]) -> bool:
    """Return whether it is one of the quotes, or a part of one that another passage has too."""
    document, start, end = quote.place
    return any(
        document == other and start < last and first < end for other, first, last in (quoted.place for quoted in quotes)
    )


def build_contradiction(sentence: str, quote: Quote, reason: str) -> Contradiction:
    """Return that a quote speaks against a sentence, and why."""
    cited = quote.citation(0)
    return Contradiction(
        sentence=sentence,
        quote=cited.quote,
        reason=reason,
        chunk_id=cited.chunk_id,
        document_id=cited.document_id,
        title=cited.title,
        uri=cited.uri,
        page=cited.page,
        section=cited.section,
        start=cited.start,
        end=cited.end,
    )

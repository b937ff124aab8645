"""Claim in, verdict out: split → search → read → judge → weigh."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from ragstone.answer.budget import StepBudget
from ragstone.answer.quotes import render_row
from ragstone.answer.verify.judging import (
    JudgedPart,
    SentenceJudgement,
    build_verdict,
    judge_by_checks,
    judge_by_entailment,
    judge_by_figures,
)
from ragstone.answer.verify.language import differs_in_figures, is_foreign
from ragstone.answer.verify.reading import SentenceReader, SentenceReading
from ragstone.answer.verify.split import MAX_CHARS, name_pronouns, split_claim
from ragstone.core.answers import Verdict
from ragstone.core.errors import InputError, ModelError, RemoteError
from ragstone.core.protocols import Embedder, Entailer
from ragstone.core.search import SearchResult

logger = logging.getLogger(__name__)

Search = Callable[[str], Awaitable[SearchResult]]
CONSIDERED = 6
"""Sentences whose say counts when only explicit checks judge: further ones bear too little on the claim."""
KEEP = 0.6
"""Share of the strongest sentence's strength under which another has no say: the first is what is meant."""
PREMISES = 6
"""Sentences that an entailment model reads."""
CHECKS = "checks"
NOT_ENGLISH = (
    "verify: a claim and its evidence that are not both in English are only compared by their figures, "
    "unless an entailment model or an LLM judges them"
)

TOO_LONG = "verify: {count} sentences were not read: they and the claim have too many words to be compared"


class ClaimVerifier:
    """Checks claims against what a search finds, with the strongest checker at hand."""

    def __init__(self, embedder: Embedder, entailer: Callable[[], Entailer | None] = lambda: None) -> None:
        self._reader = SentenceReader(embedder)
        self._entailer = entailer

    async def verify(self, claim: str, search: Search) -> Verdict:
        """Return a verdict on the claim. Nothing found is a verdict too."""
        if len(claim) > MAX_CHARS:
            raise InputError(
                f"the claim has {len(claim)} characters; at most {MAX_CHARS} can be checked at once",
                hint="check its statements one by one",
            )
        notes: list[str] = []
        entailer = self._entailer()
        checkers: set[str] = set()
        budget = StepBudget()

        async def judge(text: str) -> JudgedPart:
            found = await search(text)
            readings, missed = await self._reader.read(text, found.hits, PREMISES if entailer else CONSIDERED, budget)
            judgements, checker = await _judge(text, readings, entailer, notes)
            notes.extend((*found.degraded, *missed))
            checkers.add(checker)
            return JudgedPart(text, judgements)

        texts = name_pronouns(split_claim(claim))
        whole = [await judge(claim)] if len(texts) > 1 else []
        # What one sentence says as a whole, or otherwise, need not be said by others part by part.
        is_whole = bool(whole) and (whole[0].is_stated_whole or whole[0].is_denied_whole)
        parts = whole if is_whole else [await judge(text) for text in texts]
        if budget.unread:
            notes.append(TOO_LONG.format(count=budget.unread))
        # Where the model failed on one part only, the verdict is no better than the weaker checker.
        return build_verdict(claim, parts, CHECKS if CHECKS in checkers else checkers.pop(), notes)


async def _judge(
    claim: str, readings: Sequence[SentenceReading], entailer: Entailer | None, notes: list[str]
) -> tuple[tuple[SentenceJudgement, ...], str]:
    """Judge the strongest sentences; return the judgements and the name of the checker that made them."""
    if entailer is not None:
        chosen = readings[:PREMISES]
        try:
            premises = await asyncio.to_thread(lambda: [reading.premise for reading in chosen])
            labels = await entailer.label(premises, claim)
            made = (judge_by_entailment(reading, label) for reading, label in zip(chosen, labels, strict=True))
            return tuple(made), entailer.name
        except (ModelError, RemoteError) as error:
            logger.warning("checking a claim without %s: %s", entailer.name, error)
            notes.append(f"entailment: {error}")
    judgements, is_english = await asyncio.to_thread(_judge_by_words, claim, select_readings(readings))
    notes.extend([] if is_english else [NOT_ENGLISH])
    return judgements, CHECKS


def _judge_by_words(claim: str, readings: Sequence[SentenceReading]) -> tuple[tuple[SentenceJudgement, ...], bool]:
    """Judge sentences without a model; return the judgements, and whether all that was compared is in English."""
    judgements, is_english = [], True
    for reading in readings:
        quote = reading.quote
        said = render_row(quote.text, quote.head.text) if quote.head else quote.text
        if is_foreign(claim, said, quote.hit.text):
            is_english = False
            judgements.append(judge_by_figures(reading, differs=differs_in_figures(claim, quote.text)))
        else:
            judgements.append(judge_by_checks(reading))
    return tuple(judgements), is_english


def select_readings(readings: Sequence[SentenceReading]) -> list[SentenceReading]:
    """Return the sentences whose say counts, strongest first."""
    strongest = max((reading.strength for reading in readings), default=0.0)
    return [
        reading
        for reading in readings[:CONSIDERED]
        if reading.strength >= KEEP * strongest or reading.shares.gives_default
    ]

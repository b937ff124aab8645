"""The reader, a small model of our own: it reads a question and a unit together, and tells whether the unit answers."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ragstone.answer.quotes import select_words
from ragstone.answer.sanitize import strip_hidden
from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.language import is_foreign_text
from ragstone.core.errors import ModelError
from ragstone.core.protocols import Reranker
from ragstone.language.relevance import asked_terms

logger = logging.getLogger(__name__)

_LONGEST_UNIT, _LONGEST_LEAD, _LONGEST_PLACE = 300, 120, 100
_LEAST_SURE = 0.0005
"""Chances nearer to 0 or 1 than this count like this: how sure a model sounds beyond it tells nothing."""


@dataclass(frozen=True)
class Reader:
    """A model that tells the chance that a unit answers, and the id of the embedding model it may be used beside."""

    model: Reranker
    beside: str

    async def load(self, embedding_model: str) -> None:
        """Load the model now if it will be used beside this embedding model."""
        if embedding_model != self.beside:
            return
        try:
            await self.model.score("warm", ["warm"])
        except ModelError as error:
            logger.warning("sentences will be chosen without the reader: %s", error)

    async def find_odds(
        self, question: str, units: Sequence[AnswerUnit], embedding_model: str
    ) -> tuple[Sequence[float | None], str]:
        """Return the log odds that each unit answers, and what kept it from telling them.

        They are None, and nothing is noted, beside another embedding model, and where the question or the passages are
        not in English.
        """
        unknown = [None] * len(units)
        if embedding_model != self.beside:
            return unknown, ""
        texts = await asyncio.to_thread(_describe_all, question, units)
        if is_foreign_text(question) or is_foreign_text(f"{question} {' '.join(texts)}"):
            return unknown, ""
        try:
            return [_odds_of(chance) for chance in await self.model.score(question, texts)], ""
        except ModelError as error:
            return unknown, f"answer: sentences chosen without the reader: {error}"


def _odds_of(chance: float) -> float:
    sure = min(max(chance, _LEAST_SURE), 1 - _LEAST_SURE)
    return math.log(sure / (1 - sure))


def _describe_all(question: str, units: Sequence[AnswerUnit]) -> list[str]:
    terms = frozenset(asked_terms(question))
    return [describe_for_reader(unit, terms) for unit in units]


def describe_for_reader(unit: AnswerUnit, asked: AbstractSet[str]) -> str:
    """Return the words of a unit, then what it depends on or what stands before it, then where it stands.

    The reader was trained on texts made like this, so a change here needs another training.
    """
    own = _one_line(select_words(unit.quote, asked))
    return strip_hidden(f"{own[:_LONGEST_UNIT]} | {_find_lead(unit, own)} | {_describe_place(unit)[:_LONGEST_PLACE]}")


def _find_lead(unit: AnswerUnit, own: str) -> str:
    if unit.term:
        term = _one_line(unit.term.text)
        return "" if own.startswith(term) else term[:_LONGEST_LEAD]
    before = unit.lead or unit.before
    return _one_line(before.text)[-_LONGEST_LEAD:] if before else ""


def _describe_place(unit: AnswerUnit) -> str:
    hit = unit.quote.hit
    heading = unit.heading.text if unit.heading else ""
    path = (hit.title, *hit.section.split(" > ")[-2:], heading)
    return " > ".join(dict.fromkeys(_one_line(part) for part in path if part))


def _one_line(text: str) -> str:
    return " ".join(text.split())

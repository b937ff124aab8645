"""Budgets of invocations, and the results that the agents of one run share."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from ragstone.answer.research.relevance import ABOUT
from ragstone.core.errors import RagstoneError
from ragstone.core.types import Json

MOST_CALLS = 5
MOST_RESULTS = 256


class CallRefused(RagstoneError):
    """A tool call that is not made; agents get it as data."""

    code = "call_refused"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one invocation. An instruction in a passage cannot lift them: they are counted here."""

    calls: int = MOST_CALLS
    low_confidence: float = ABOUT
    """A retrieval whose best passage is less about its query than this is the last one."""


@dataclass(slots=True)
class Invocation:
    """The calls that one invocation of an agent has made."""

    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    asked: set[str] = field(default_factory=set)
    unsure: str = ""
    """The query that found nothing to rely on; empty while there is none."""

    def admit(self, key: str, query: str, *, retrieves: bool) -> bool:
        """Count a call, or refuse it; False for one that was made before, whose result is to be given again."""
        if self.calls >= self.budget.calls:
            raise CallRefused(
                f"all {self.budget.calls} tool calls of this invocation are used up",
                hint="answer with what was found, and say what is missing",
            )
        self.calls += 1
        if key in self.asked:
            return False
        if retrieves and self.unsure:
            raise CallRefused(
                f"'{self.unsure[:80]}' found nothing that is surely about it, so searching has stopped",
                hint="answer without the knowledge base, and say so",
            )
        self.asked.add(key)
        return True

    def forget(self, key: str) -> None:
        """Let a call be made again that got no answer; it is spent all the same."""
        self.asked.discard(key)

    def learn(self, query: str, confidence: float | None) -> None:
        """Note how sure a retrieval was."""
        if confidence is not None and confidence < self.budget.low_confidence:
            self.unsure = query


@dataclass(slots=True)
class Run:
    """Results that the agents of one run share, so that none is fetched twice."""

    results: OrderedDict[tuple[str, str], tuple[str, float | None]] = field(default_factory=OrderedDict)
    """JSON text and how sure it is, by what it depends on and what was called; the oldest go first."""

    def find(self, standing: str, call: str) -> tuple[Json, float | None] | None:
        """Return the result of an equal call on an equal knowledge base; None when there is none."""
        kept = self.results.get((standing, call))
        return (json.loads(kept[0]), kept[1]) if kept else None

    def keep(self, standing: str, call: str, value: Json, confidence: float | None) -> None:
        """Remember what a call gave, as text: nobody can change that for the next one."""
        self.results[standing, call] = json.dumps(value), confidence
        while len(self.results) > MOST_RESULTS:
            self.results.popitem(last=False)

    @property
    def queries(self) -> list[str]:
        """Which calls are remembered, in order."""
        return [call for _, call in self.results]

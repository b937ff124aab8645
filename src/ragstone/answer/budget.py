"""Limits on reading: texts may be made to take long, so reading them is counted in characters and in steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ragstone.core.types import Hit
from ragstone.language.dates import MOST as MOST_DATES
from ragstone.language.measurements import MOST as MOST_QUANTITIES

MOST_STEPS = 200_000
"""Comparisons of words for a whole claim or answer: about a second on a slow machine."""
MOST_CHARS = 60_000
"""Characters of passages that are read for an answer; six passages have some ten thousand."""
MOST_CLAIM_CHARS = 90_000
"""Characters that are read for all parts of a claim, each of which may read half of what is left."""
MOST_SENTENCES = 2_000
FIGURE_STEPS = 14
"""Steps of comparing two figures: as values in any unit, with the words that each is bound to."""
_WORD = re.compile(r"\w{1,40}|[;:–—]")
"""Stops count as well: what stands between two of them is compared by itself."""
_FIGURE = re.compile(
    r"\d{1,40}|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,6}teen|\w{3,5}ty|hundred|thousand"
    r"|million)\b",
    re.I,
)


class StepBudget:
    """Counts what comparing sentences costs: all words and figures of one with all of the other."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._left = steps
        self._unread_chars = MOST_CLAIM_CHARS
        self.unread = 0
        """Sentences and passages that were left out, or read in part, because the budget was used up."""

    def cut(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return as much of passages as may be read for one part of a claim: half of what is left for all parts."""
        kept, lost = cut_passages(hits, self._unread_chars // 2)
        self._unread_chars -= sum(len(hit.text) for hit in kept)
        self.unread += lost
        return kept

    def spend(self, claim: str, *sentences: str, reserve: int = 0) -> bool:
        """Take the steps of comparing; False, taking nothing, when no more than the reserve would be left."""
        return self._take(sum(count_steps(claim, sentence) for sentence in sentences), reserve)

    def spend_reading(self, text: str) -> bool:
        """Take the steps of reading a text once, one a character; False, taking nothing, when too few are left."""
        return self._take(len(text), 0)

    def _take(self, steps: int, reserve: int) -> bool:
        if steps > self._left - reserve:
            return False
        self._left -= steps
        return True


def count_steps(claim: str, sentence: str) -> int:
    """Return the steps of comparing each word of one text with each of the other, and each figure."""
    figures = _count_figures(claim) * _count_figures(sentence)
    return count_words(claim) * count_words(sentence) + FIGURE_STEPS * figures


def _count_figures(text: str) -> int:
    return min(len(_FIGURE.findall(text)), MOST_DATES + MOST_QUANTITIES)


def count_words(text: str) -> int:
    """Return the number of words and stops; a word that is very long counts for several."""
    return len(_WORD.findall(text))


def cut_passages(hits: Sequence[Hit], most: int = MOST_CHARS) -> tuple[list[Hit], int]:
    """Return the passages up to a number of characters in all, and how many of them lost some."""
    kept: list[Hit] = []
    lost = 0
    for hit in hits:
        lost += len(hit.text) > most
        if most > 0:
            kept.append(hit if len(hit.text) <= most else replace(hit, text=hit.text[:most]))
        most = max(0, most - len(hit.text))
    return kept, lost

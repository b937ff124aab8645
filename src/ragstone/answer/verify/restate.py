"""A claim in the figures of a sentence: "1500 kg" read beside "1.5 tonnes" are the same words."""

from __future__ import annotations

from ragstone.answer.verify.dates import Moment, date_spans, moments
from ragstone.answer.verify.quantities import quantity_spans
from ragstone.answer.verify.quantity import Quantity

_EXACT = ("is", "about")
Figure = tuple[int, int, Quantity | Moment]
"""Where it begins and ends, and what it tells."""


def restated(claim: str, sentence: str) -> str:
    """The claim with the sentence's own words for each figure that says the same."""
    stated = [one for one in figures(sentence) if _is_meant(sentence, one)]
    said = claim
    for start, end, figure in reversed(figures(claim)):
        same = next((one for one in stated if _same(figure, one[2])), None)
        if same is not None:
            said = said[:start] + sentence[same[0] : same[1]] + said[end:]
    return said


def figures(text: str) -> list[Figure]:
    """The figures of a text in order; one within another, such as a number with a date behind it, is left out."""
    figures: list[Figure] = [(start, start + len(one.words), one) for (start, _), one in quantity_spans(text)]
    figures += [(start, end, one) for (start, end), one in date_spans(text)]
    found: list[Figure] = []
    for figure in sorted(figures, key=lambda one: one[:2]):
        if not found or figure[0] >= found[-1][1]:
            found.append(figure)
    return found


def _is_meant(sentence: str, figure: Figure) -> bool:
    """Whether its own words tell it, unlike those of "except Sunday", which tells all other days."""
    start, end, told = figure
    return not isinstance(told, Moment) or not told.weekdays or moments(sentence[start:end]) == [told]


def _same(figure: Quantity | Moment, other: Quantity | Moment) -> bool:
    if isinstance(figure, Quantity) and isinstance(other, Quantity):
        return figure.bound in _EXACT and other.bound in _EXACT and figure.fits(other)
    return isinstance(figure, Moment) and isinstance(other, Moment) and figure.fits(other)

"""Numbers that belong together: the parts of one quantity, and the two ends of a range."""

from __future__ import annotations

import re
from dataclasses import replace

from ragstone.answer.verify.changes import moves
from ragstone.answer.verify.numerals import scale_of
from ragstone.answer.verify.quantity import Quantity

Span = tuple[tuple[int, int], Quantity]
Spans = tuple[Span, ...]
_SCALED_WORDS = re.compile(r"(?:hundred|thousand|million)$", re.I)
_THOUSANDS = re.compile(r"\b(?:thousand|million|billion|trillion)\b", re.I)
_RANGE = re.compile(r"\s?[-–—‐‑]\s?| to | and ")


def joined(text: str, found: list[Span]) -> Spans:
    """One quantity of the two in "1 hour 30 minutes" and "two hundred and fifty"; two bounds of "5–10 days"."""
    whole: list[Span] = []
    for span, one in found:
        if whole:
            (start, end), before = whole[-1]
            between = text[start + len(before.words) : span[0]]
            if _goes_on(before, one, between):
                words = text[start : span[0] + len(one.words)]
                whole[-1] = (start, span[1]), replace(_sum(before, one), words=words)
                continue
            low = before if before.dimension else _in_measure_of(one, before)
            if _is_range(low, one, between, text[:start]):
                whole[-1] = (start, end), replace(low, bound="at least")
                one = replace(one, bound="at most")
        whole.append((span, one))
    return tuple(whole)


def _goes_on(before: Quantity, one: Quantity, between: str) -> bool:
    """Whether a number is the rest of the one before it."""
    if between not in (" ", " and ") or before.per or one.bound not in ("is", before.bound):
        return False
    if not before.dimension and _SCALED_WORDS.search(before.words):
        return 0 < one.written < scale_of(before.words.split()[-1]) * _scale(before, one)
    smaller = one.dimension == before.dimension and 0 <= one.value < before.size
    return smaller and one.dimension in ("time in s", "length in m") and one.bound == before.bound != "about"


def _sum(before: Quantity, one: Quantity) -> Quantity:
    if before.dimension:
        whole = replace(before, value=before.value + one.value, size=one.size, step=one.step, per=one.per)
        return replace(whole, written=whole.value / one.size)
    more = before.written * _scale(before, one)
    written = more + one.written
    return replace(
        one,
        written=written,
        value=one.value + more * one.size,
        lead=before.lead,
        bound=before.bound,
    )


def _scale(before: Quantity, one: Quantity) -> int:
    """What is counted in "two hundred and fifty thousand" are the thousands."""
    scaled = _THOUSANDS.search(one.words) if before.words.lower().endswith("hundred") else None
    return scale_of(scaled[0]) if scaled else 1


def _in_measure_of(one: Quantity, bare: Quantity) -> Quantity:
    """A number without a unit in that of the number behind it."""
    value = one.value - (one.written - bare.written) * one.size
    return replace(bare, value=value, dimension=one.dimension, size=one.size, per=one.per)


def _is_range(low: Quantity, high: Quantity, between: str, before: str) -> bool:
    """Whether two numbers are the ends of what something may be, not where it came from and went."""
    if (
        _RANGE.fullmatch(between) is None
        or high.bound != "is"
        or low.bound not in ("is", "about", "at least")
    ):
        return False
    if low.dimension != high.dimension or low.value >= high.value:
        return False
    lead = before[-9:].rstrip().lower()
    if between == " and ":
        return lead.endswith("between")
    return between != " to " or not (lead.endswith("from") and moves(before, len(before)))

"""Words on a page → lines in reading order: columns found by their gutter, rows by their height."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import median

SOFT_HYPHEN = "\u00ad"
GUTTER = 7.0
"""The narrowest strip of white, in points, that keeps two columns apart."""
WIDEST = 20_000
"""No page is wider, in points; words that say they stand further apart have no columns between them."""
COLUMN_CHARS = 15
"""Lines shorter than this on average make a table, not a column of prose."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Words that stand together; y grows upwards, as in PDF."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    size: float
    bold: bool = False
    is_table: bool = False
    """A whole table in one piece: its text is Markdown."""

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(frozen=True, slots=True)
class LaidOutPage:
    """The lines of a page in reading order, and where the page itself begins and ends."""

    lines: list[TextSpan]
    bottom: float
    top: float
    scanned: bool = False


def scanned_page(lines: Sequence[TextSpan], height: float) -> LaidOutPage:
    """Return a page that was read from a picture, in one size: its lines are only roughly as high as their print."""
    size = median(line.height for line in lines) if lines else 0.0
    return LaidOutPage(lines_of([replace(line, size=size) for line in lines]), 0.0, height, scanned=True)


def with_tables(lines: Sequence[TextSpan], tables: Sequence[TextSpan]) -> list[TextSpan]:
    """Put each table behind the last line that stands above it in its column.

    Where nothing is beside the table, that may be a line with nothing beside it either.
    """
    placed, alone = list(lines), _alone(lines) if tables else set()
    for table in sorted(tables, key=lambda span: -span.top):
        beside = any(line.bottom < table.top and line.top > table.bottom for line in lines)
        above = [
            place
            for place, line in enumerate(placed, start=1)
            if line.bottom >= table.top - line.height / 2
            and ((line.left < table.right and line.right > table.left) or (id(line) in alone and not beside))
        ]
        placed.insert(above[-1] if above else 0, table)
    return placed


def _alone(lines: Sequence[TextSpan]) -> set[int]:
    """Return the lines that have the width of the page to themselves, as a short heading over a centred table has."""
    ordered = sorted(lines, key=lambda line: line.bottom)
    found, highest = set(), float("-inf")
    for line, following in zip_longest(ordered, ordered[1:]):
        slack = line.height / 4  # neighbouring lines may touch
        if highest <= line.bottom + slack and (following is None or following.bottom >= line.top - slack):
            found.add(id(line))
        highest = max(highest, line.top)
    return found


def lines_of(words: Sequence[TextSpan]) -> list[TextSpan]:
    """Return the lines of a page in the order a person reads them."""
    return _order(_segments(words), depth=0)


def _segments(words: Sequence[TextSpan]) -> list[TextSpan]:
    """Return the words of a line in segments, split where the white between them is wider than any space."""
    segments: list[list[TextSpan]] = []
    for word in words:
        last = segments[-1][-1] if segments else None
        if last is not None and _same_row(last, word):
            gap = word.left - last.right
            if -last.size < gap <= max(last.size, word.size):
                segments[-1].append(word)
                continue
        segments.append([word])
    return [_join(segment) for segment in segments]


def _order(segments: list[TextSpan], depth: int) -> list[TextSpan]:
    """Return bands from top to bottom and, inside a band, columns from left to right."""
    return [line for band in _bands(segments) for line in _ordered_band(band, depth)]


def _bands(segments: list[TextSpan]) -> list[list[TextSpan]]:
    """Split where white runs over the whole width and is two lines high: titles, footers, figures."""
    bands: list[list[TextSpan]] = []
    white = 2 * median(segment.height for segment in segments) if segments else 0.0
    lowest = math.inf
    for segment in sorted(segments, key=lambda span: -span.top):
        if not bands or lowest - segment.top > white:
            bands.append([])
            lowest = math.inf
        bands[-1].append(segment)
        lowest = min(lowest, segment.bottom)
    return bands


def _ordered_band(segments: list[TextSpan], depth: int) -> list[TextSpan]:
    gutter = _gutter(segments) if depth < 3 else None
    if gutter is None:
        return _rows(segments)
    lines: list[TextSpan] = []
    band: list[TextSpan] = []
    for segment in sorted(segments, key=lambda span: -span.top):
        if segment.left < gutter < segment.right:
            lines += _columns(band, gutter, depth)
            lines.append(segment)
            band = []
        else:
            band.append(segment)
    return lines + _columns(band, gutter, depth)


def _columns(band: list[TextSpan], gutter: float, depth: int) -> list[TextSpan]:
    left = [segment for segment in band if segment.right <= gutter]
    right = [segment for segment in band if segment.right > gutter]
    return _order(left, depth + 1) + _order(right, depth + 1)


def _gutter(segments: list[TextSpan]) -> float | None:
    """Return the middle of a strip that few segments cross and that has prose on both sides."""
    if len(segments) < 6:
        return None
    left_edge = min(segment.left for segment in segments)
    right_edge = max(segment.right for segment in segments)
    if not right_edge - left_edge <= WIDEST:  # nor when either is no number
        return None
    start = math.floor(left_edge)
    width = math.ceil(right_edge) - start
    crossings = [0] * (width + 2)
    for segment in segments:
        crossings[max(0, math.ceil(segment.left) - start)] += 1
        crossings[min(width, math.floor(segment.right) - start) + 1] -= 1
    for position in range(1, len(crossings)):
        crossings[position] += crossings[position - 1]
    strip = _widest_strip(crossings, width // 5, width - width // 5, allowed=len(segments) // 5)
    if strip is None:
        return None
    middle = start + sum(strip) / 2
    left = [segment for segment in segments if segment.right <= middle]
    right = [segment for segment in segments if segment.left >= middle]
    return middle if _is_prose(left) and _is_prose(right) and _side_by_side(left, right) else None


def _widest_strip(crossings: Sequence[int], first: int, last: int, *, allowed: int) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    lowest = min(crossings[first:last], default=allowed + 1)
    begin = None
    for position in range(first, last + 1):
        if position < last and crossings[position] <= lowest <= allowed:
            begin = position if begin is None else begin
        elif begin is not None:
            if best is None or position - begin > best[1] - best[0]:
                best = (begin, position)
            begin = None
    return best if best is not None and best[1] - best[0] >= GUTTER else None


def _is_prose(column: list[TextSpan]) -> bool:
    if len(column) < 3:
        return False
    width = max(span.right for span in column) - min(span.left for span in column)
    return (
        sum(len(span.text) for span in column) >= COLUMN_CHARS * len(column)
        and median(span.right - span.left for span in column) >= 0.4 * width
    )


def _side_by_side(left: list[TextSpan], right: list[TextSpan]) -> bool:
    top = min(max(span.top for span in left), max(span.top for span in right))
    bottom = max(min(span.bottom for span in left), min(span.bottom for span in right))
    return top - bottom > 2 * median(span.height for span in left)


def _rows(segments: Iterable[TextSpan]) -> list[TextSpan]:
    rows: list[list[TextSpan]] = []
    for segment in sorted(segments, key=lambda span: (-(span.top + span.bottom) / 2, span.left)):
        if rows and _same_row(rows[-1][0], segment):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return [_join(sorted(row, key=lambda span: span.left)) for row in rows]


def _same_row(span: TextSpan, other: TextSpan) -> bool:
    shared = min(span.top, other.top) - max(span.bottom, other.bottom)
    return shared > min(span.height, other.height) / 2


def _join(spans: Sequence[TextSpan]) -> TextSpan:
    longest = max(spans, key=lambda span: len(span.text))
    return TextSpan(
        text=" ".join(span.text for span in spans).replace(f"{SOFT_HYPHEN} ", ""),
        left=min(span.left for span in spans),
        right=max(span.right for span in spans),
        bottom=min(span.bottom for span in spans),
        top=max(span.top for span in spans),
        size=longest.size,
        bold=all(span.bold for span in spans),
    )

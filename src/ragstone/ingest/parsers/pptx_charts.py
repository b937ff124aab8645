"""Charts of slides: the numbers behind them, as a table with a row for each category."""

from __future__ import annotations

from typing import Any

from ragstone.ingest.parsers.tables import markdown_table

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_WORDS = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"


def chart_table(chart: Any) -> str:
    """A Markdown table under the chart's title; empty when it keeps no numbers."""
    space = chart.part._element
    series = list(space.iter(f"{_C}ser"))
    names = [_joined(one.find(f"{_C}tx")) for one in series]
    rows: dict[tuple[int, int], list[str]] = {}
    for column, one in enumerate(series, start=1):
        # Series share their categories; points of a scatter plot have places of their own.
        own = column if one.find(f"{_C}xVal") is not None else 0
        labels = _points(one, "cat", "xVal")
        for number, value in _points(one, "val", "yVal").items():
            row = rows.setdefault((own, number), [labels.get(number, ""), *[""] * len(series)])
            row[column] = value
    if not rows:
        return ""
    title = " ".join(word.text or "" for one in space.iter(f"{_C}title") for word in one.iter(_WORDS))
    return "\n".join(
        (
            *([title] if title.strip() else []),
            markdown_table([["", *names], *(rows[place] for place in sorted(rows))]),
        )
    )


def _points(series: Any, *tags: str) -> dict[int, str]:
    """What a series keeps of its cells, by their place; of nested categories the innermost."""
    found: dict[int, str] = {}
    for tag in tags:
        part = series.find(f"{_C}{tag}")
        for point in part.iter(f"{_C}pt") if part is not None else ():
            place = point.get("idx", "")
            if place.isdecimal() and len(place) < 9:
                found.setdefault(int(place), point.findtext(f"{_C}v") or "")
    return found


def _joined(part: Any) -> str:
    return " ".join(value.text or "" for value in part.iter(f"{_C}v")) if part is not None else ""

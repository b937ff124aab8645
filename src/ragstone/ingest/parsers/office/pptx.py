"""Charts of slides: the numbers behind them, as a table with a row for each category."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions
from ragstone.ingest.parsers.office.archive import office_properties, open_archive
from ragstone.ingest.parsers.tables import markdown_table

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_WORDS = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_NO_TEXT = "its slides may hold nothing but pictures; save it as PDF to have them read by OCR"


def chart_table(chart: Any) -> str:
    """Return a Markdown table under the chart's title; empty when it keeps no numbers."""
    space = chart.part._element
    series = list(space.iter(f"{_C}ser"))
    names = [_join_values(line.find(f"{_C}tx")) for line in series]
    rows: dict[tuple[int, int], list[str]] = {}
    for column, line in enumerate(series, start=1):
        # Series share their categories; points of a scatter plot have places of their own.
        own = column if line.find(f"{_C}xVal") is not None else 0
        labels = _points(line, "cat", "xVal")
        for number, value in _points(line, "val", "yVal").items():
            row = rows.setdefault((own, number), [labels.get(number, ""), *[""] * len(series)])
            row[column] = value
    if not rows:
        return ""
    title = " ".join(word.text or "" for heading in space.iter(f"{_C}title") for word in heading.iter(_WORDS))
    return "\n".join(
        (*([title] if title.strip() else []), markdown_table([["", *names], *(rows[place] for place in sorted(rows))]))
    )


def _points(series: Any, *tags: str) -> dict[int, str]:
    """Return the cells of a series by their place; of nested categories the innermost."""
    found: dict[int, str] = {}
    for tag in tags:
        part = series.find(f"{_C}{tag}")
        for point in part.iter(f"{_C}pt") if part is not None else ():
            place = point.get("idx", "")
            if place.isdecimal() and len(place) < 9:
                found.setdefault(int(place), point.findtext(f"{_C}v") or "")
    return found


def _join_values(part: Any) -> str:
    return " ".join(value.text or "" for value in part.iter(f"{_C}v")) if part is not None else ""


def parse_pptx(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a presentation."""
    import pptx

    with open_archive(content, name, "PPTX", options) as archive:
        properties = office_properties(archive, name, "PPTX")
    slides = pptx.Presentation(io.BytesIO(content)).slides
    options.check_pages(len(slides), name, "slides")
    draft = Draft(name)
    for number, slide in enumerate(slides, start=1):
        if slide.element.get("show") in ("0", "false"):
            draft.warnings.append(f"hidden slide {number} was left out")
        else:
            _add_slide(draft, slide, number)
    title = properties.pop("title", "")
    return draft.finish(MEDIA_TYPE, title=title, metadata={**properties, "pages": len(slides)}, unseen_hint=_NO_TEXT)


def _add_slide(draft: Draft, slide: Any, number: int) -> None:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        words = " ".join(title.text_frame.text.split())
        draft.add("heading", words, level=1, label=words, page=number)
    for shape in _shapes(slide.shapes):
        if title is not None and shape.element is title.element:
            continue
        if getattr(shape, "has_table", False):
            rows = ([cell.text for cell in row.cells] for row in shape.table.rows)
            draft.add("table", markdown_table(rows), page=number)
        elif getattr(shape, "has_chart", False):
            draft.add("table", chart_table(shape.chart), page=number)
        elif shape.has_text_frame:
            _add_text(draft, shape, number)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        draft.add("paragraph", f"Notes: {notes.text}" if notes.text.strip() else "", page=number)


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield every shape in the order of the slide, those inside groups in their group's place."""
    from pptx.enum.shapes import MSO_SHAPE_TYPE

    waiting = [iter(shapes)]
    while waiting:
        shape = next(waiting[-1], None)
        if shape is None:
            waiting.pop()
        elif shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            waiting.append(iter(shape.shapes))
        else:
            yield shape


def _add_text(draft: Draft, shape: Any, number: int) -> None:
    """Add a text box as it stands; several paragraphs of a content placeholder are its bullets."""
    paragraphs = [(paragraph.level, " ".join(paragraph.text.split())) for paragraph in shape.text_frame.paragraphs]
    written = [(level, text) for level, text in paragraphs if text]
    if shape.is_placeholder and len(written) > 1:
        draft.add("list", "\n".join(f"{'  ' * level}- {text}" for level, text in written), page=number)
    else:
        draft.add("paragraph", "\n".join(text for _, text in written), page=number)

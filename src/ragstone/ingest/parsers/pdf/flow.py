"""Lines of all pages → headings, paragraphs and lists: what only the whole document can tell."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from ragstone.core.types import BlockKind
from ragstone.ingest.parsers.draft import Draft, join_ideographs
from ragstone.ingest.parsers.pdf.layout import COLUMN_CHARS, LaidOutPage, TextSpan
from ragstone.ingest.parsers.tables import continue_table

Pages = Mapping[int, Sequence[TextSpan]]

MARGIN = 0.1
"""Running heads and feet stand in this part of the page's height, at either end."""
LARGER = 1.12
"""A line this much larger than the body is a heading."""
MAX_HEADING = 200
_SAME_EDGE = 3.0
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"\W*#\W*|[ivxl]{1,6}")
_LEADERS = re.compile(r"(?:\s?[.·]){4,}\s*")
_BULLET = re.compile(r"(?:[•◦▪●○■‣⁃∙·*–-]|\(?\d{1,2}[.)]|[a-z]\))(?:\s+|$)")
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
_BROKEN_WORD = re.compile(r"(\w+)[-\u00ad\u2010]\n(\w+)")
_WORDS = re.compile(r"\w+(?:-\w+)*")


@dataclass(frozen=True, slots=True)
class _Style:
    """The sizes and distances that tell a page's headings and paragraphs apart."""

    body: float
    """The size most characters are set in."""
    levels: Mapping[float, int]
    """The heading level of each larger size."""
    pitch: float
    """The distance between lines of a paragraph, as a multiple of their size."""


def add_pages(draft: Draft, pages: Mapping[int, LaidOutPage]) -> None:
    """Write the document's blocks, each with its page."""
    body = _body_size(_prose({number: page.lines for number, page in pages.items() if not page.scanned}))
    kept = _with_headers(_without_running_lines(pages, body), pages, body)
    prose = _prose(kept)
    printed = {number: lines for number, lines in prose.items() if not pages[number].scanned}
    print_style = _Style(body, _heading_levels(printed, body), _line_pitch(printed))
    all_lines = (line for lines in prose.values() for line in lines)
    vocabulary = Counter(word.casefold() for line in all_lines for word in _WORDS.findall(line.text))
    for page, lines in kept.items():
        # Sizes that OCR guessed make no headings, and its pages have a pitch of their own.
        scan_style = _Style(math.inf, {}, _line_pitch({page: prose[page]}))
        style = scan_style if pages[page].scanned else print_style
        for group in _groups(lines, style):
            _add_group(draft, group, page, _level(group[0], style), vocabulary)


def _with_headers(kept: Pages, pages: Mapping[int, LaidOutPage], body: float) -> Pages:
    """Give tables that go on over the end of a page their header there, too: by it their figures are read."""
    complete = {number: list(lines) for number, lines in kept.items()}
    for number, lines in complete.items():
        before = complete.get(number - 1)
        if not before:
            continue
        # With few pages their running lines are still there.
        edges = [{_running_key(line) for line in _edge_lines(pages[page], body)} for page in (number - 1, number)]
        running = edges[0] & edges[1]
        upper = next((line for line in reversed(before) if _running_key(line) not in running), None)
        place = next((place for place, line in enumerate(lines) if _running_key(line) not in running), None)
        if upper and place is not None and _goes_on(upper, lines[place]):
            lines[place] = replace(lines[place], text=continue_table(upper.text, lines[place].text))
    return complete


def _goes_on(upper: TextSpan, lower: TextSpan) -> bool:
    """Return whether two tables stand between the same margins."""
    apart = max(abs(upper.left - lower.left), abs(upper.right - lower.right))
    return upper.is_table and lower.is_table and apart <= _SAME_EDGE


def _prose(pages: Pages) -> Pages:
    return {number: [line for line in lines if not line.is_table] for number, lines in pages.items()}


def _add_group(draft: Draft, group: list[TextSpan], page: int, level: int, vocabulary: Counter[str]) -> None:
    if group[0].is_table:
        draft.add("table", group[0].text.translate(_LIGATURES), page=page)
        return
    text = _whole_words(_join_lines(group).translate(_LIGATURES), vocabulary)
    text, contents = _LEADERS.subn(" … ", text)
    if level and len(text) <= MAX_HEADING and not contents:
        text = text.replace("\n", " ")
        draft.add("heading", text, level=level, label=text, page=page)
        return
    kind: BlockKind = "list" if _BULLET.match(text) and not level else "paragraph"
    draft.add(kind, _reflow(text, kind), page=page)


def _join_lines(group: Sequence[TextSpan]) -> str:
    """Return the lines of a paragraph; Chinese and Japanese go on without a break behind a line that is full."""
    edge = max(line.right for line in group)
    text = group[0].text
    for upper, line in pairwise(group):
        is_full = len(upper.text) >= COLUMN_CHARS and edge - upper.right < 2 * upper.size
        text += join_ideographs(f"{upper.text[-1:]}\n{line.text}")[1:] if is_full else f"\n{line.text}"
    return text


def _without_running_lines(pages: Mapping[int, LaidOutPage], body: float) -> Pages:
    """Drop what stands at the top or the foot of most pages, page numbers included; never all of a page."""
    edges = {number: _edge_lines(page, body) for number, page in pages.items()}
    counts = Counter(key for lines in edges.values() for key in {_running_key(line) for line in lines})
    # With fewer pages a repeated line may be a title.
    often = {key for key, count in counts.items() if len(pages) >= 3 and _is_running(key, count, len(pages))}
    kept: dict[int, Sequence[TextSpan]] = {}
    for number, page in pages.items():
        running = {line for line in edges[number] if _running_key(line) in often}
        kept[number] = [line for line in page.lines if line not in running] or page.lines
    return kept


def _is_running(key: str, count: int, pages: int) -> bool:
    """Return whether a line is a page number, or stands on most pages, or on some with a number as chapter heads do."""
    return count * 2 > pages or (count >= 3 and "#" in key) or _PAGE_NUMBER.fullmatch(key) is not None


def _edge_lines(page: LaidOutPage, body: float) -> list[TextSpan]:
    margin = (page.top - page.bottom) * MARGIN
    return [
        line
        for line in page.lines
        if not line.is_table
        and (page.scanned or line.size < body * LARGER)
        and (line.bottom > page.top - margin or line.top < page.bottom + margin)
    ]


def _running_key(line: TextSpan) -> str:
    return _DIGITS.sub("#", line.text).casefold()


def _body_size(pages: Pages) -> float:
    sizes: Counter[float] = Counter()
    for lines in pages.values():
        for line in lines:
            sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _heading_levels(pages: Pages, body: float) -> dict[float, int]:
    larger = sorted(
        {line.size for lines in pages.values() for line in lines if line.size >= body * LARGER}, reverse=True
    )
    levels: dict[float, int] = {}
    level = 0
    previous = 0.0
    for size in larger:
        # Half a point is the same style, set by another tool or rounded.
        if previous - size > 0.5 or not level:
            level = min(level + 1, 5)
        levels[size] = level
        previous = size
    return levels


def _level(line: TextSpan, style: _Style) -> int:
    """Return a line's heading level; bold lines in the body's size stand below all larger ones."""
    if line.is_table:
        return 0
    if line.size in style.levels:
        return style.levels[line.size]
    short = len(line.text) <= 80 and not line.text.endswith((".", ",", ";", ":"))
    if line.bold and short and line.size >= style.body and any(mark.isalpha() for mark in line.text):
        return max(style.levels.values(), default=0) + 1
    return 0


def _line_pitch(pages: Pages) -> float:
    distances = [
        (upper.bottom - lower.bottom) / lower.size
        for lines in pages.values()
        for upper, lower in pairwise(lines)
        if upper.size == lower.size > 0 and 0 < upper.bottom - lower.bottom < 3 * lower.size
    ]
    return median(distances) if distances else 1.2


def _groups(lines: Sequence[TextSpan], style: _Style) -> list[list[TextSpan]]:
    groups: list[list[TextSpan]] = []
    for line in lines:
        if groups and _continues(groups[-1], line, style):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _continues(group: list[TextSpan], line: TextSpan, style: _Style) -> bool:
    last = group[-1]
    if last.is_table or line.is_table:
        return False
    if _level(group[0], style) != _level(line, style) or abs(last.size - line.size) > 1:
        return False
    if line.bottom >= last.bottom:
        # The next column: the paragraph goes on when its sentence does.
        return not last.text.endswith((".", "!", "?", ":")) and line.text[:1].islower()
    if last.bottom - line.bottom > 1.3 * style.pitch * max(line.size, last.size):
        return False
    if _BULLET.match(line.text):
        return bool(_BULLET.match(group[0].text))
    indented = line.left - last.left > 0.8 * line.size
    return not indented or bool(_BULLET.match(last.text)) or len(group) == 1


def _whole_words(text: str, vocabulary: Mapping[str, int]) -> str:
    """Join words broken at a line's end; a hyphen that belongs to the word stays."""

    def join(found: re.Match[str]) -> str:
        whole, hyphened = f"{found[1]}{found[2]}", f"{found[1]}-{found[2]}"
        named = not found[2][0].islower()
        known = vocabulary.get(whole.casefold(), 0) < vocabulary.get(hyphened.casefold(), 0)
        return hyphened if named or known else whole

    return _BROKEN_WORD.sub(join, text)


def _reflow(text: str, kind: BlockKind) -> str:
    if kind != "list":
        return text.replace("\n", " ")
    items: list[str] = []
    for line in text.split("\n"):
        if items and not _BULLET.match(line):
            items[-1] += " " + line
        else:
            items.append(line)
    return "\n".join(items)

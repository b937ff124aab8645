"""Blocks of a passage: paragraphs, list items, code, rows of tables, headings, and terms that an entry explains.

Passages come from many formats as plain text, and chunks may begin anywhere, so blocks are told by how lines look:
their indentation, marks, length and how they end. Every step looks at a line and its neighbours only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

from ragstone.language.sentences import FENCE, ITEM, LINE, ROW, RULE

Line = tuple[int, int, int]
"""The start and end of the words of a line, and the column they begin in."""
BlockKind = Literal["prose", "item", "code", "row", "heading", "term"]
_LONGEST_TERM, _MOST_TERM_WORDS, _MOST_FIRST_WORDS = 120, 10, 2
_LONGEST_SIGNATURE = 400
"""Characters of a term that stands out by what is indented under it: a command with all of its options."""
_HEADING = re.compile(r"#{1,6}[ \t]")
_STATES = re.compile(r"[.!。！;,:：…]['\")\]*_`]*$")
_ENDS = re.compile(r"[.!?。！？:：)\]]['\")\]*_`]*$")
_DESCRIBES = re.compile(r":[ \t]+")
_MARK = re.compile(r"(?:[-*+•‣◦–o]|[0-9]{1,3}[.)]|\(?[a-zA-Z0-9]\))[ \t]+|[0-9]{1,2}\.(?=[A-Z][a-z])")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_CODE = re.compile(r"[{}]|=>|==|\\n|\);|</|^[ \t]{0,20}(?:\$|#|>>>|//|/\*|;)[ \t]|;[ \t]{0,4}$", re.M)
_COMMAND = re.compile(r"[:/.%$<\\-]\S")
"""The beginning of a command behind a sentence that announces it."""
_TAIL = 8
_FEWEST_COMMENTS = 3
_LEAST_WORD_SHARE = 0.72
_NO_WORD = re.compile(r"[\W_]+")
_SPEAKS = re.compile(r"[^\W\d_]")
_IDENTIFIER = re.compile(r"--?\w|`[^`]+`|\S*(?:\w[_=]\w|\w\(\)|\w<)")
"""The beginning of a line that names an option, a setting or a function."""
_NAME = re.compile(r"`[^`\n]{1,80}`|--?\w[\w-]*|[\w.]*[a-zA-Z]_\w[\w.]*|[a-z]+(?:-[a-z0-9]+)+")
"""A heading that is one word of code: in backticks, an option, or with a dash or an underscore in it."""
_NOT_HEADING = re.compile(r"A[:.][ \t]|[>$%][ \t]|\w+: (?:[a-z]+ \w|[`\"\d])")
"""The beginning of an answer among questions, of a command behind a prompt, and of what is told of a name."""


@dataclass(frozen=True, slots=True)
class PassageBlock:
    """A span of a passage, free of white space around it."""

    start: int
    end: int
    kind: BlockKind
    indent: int
    lines: tuple[Line, ...] = ()
    after_gap: bool = True
    """A blank line or another kind of block stands before it."""


def find_blocks(text: str, headings: AbstractSet[str] = frozenset()) -> list[PassageBlock]:
    """Return the blocks of a text in order; lines that equal one of the `headings` are headings.

    A heading that is the name of an option, a setting or a command is the term of what stands under it.
    """
    rough = [part for block in _drop_comment_marks(_find_rough(text)) for part in _split_at_terms(text, block)]
    blocks = [_settle(text, rough, number, headings) for number in range(len(rough))]
    return [
        replace(block, kind="term")
        if block.kind == "heading" and _NAME.fullmatch(text, block.start, block.end)
        else block
        for block in blocks
    ]


def _find_rough(text: str) -> Iterator[PassageBlock]:
    """Yield blocks as blank lines, marks and fences part them."""
    builder = _Builder()
    for match in LINE.finditer(text):
        line = match.group().rstrip("\n")
        start = match.start() + len(line) - len(line.lstrip())
        if match.group():
            yield from builder.add(line, start)
    yield from builder.close()


def _drop_comment_marks(blocks: Iterable[PassageBlock]) -> Iterator[PassageBlock]:
    """Yield headings that stand line upon line as prose: they are comments in a file of settings."""
    run: list[PassageBlock] = []
    for block in (*blocks, None):
        if block is None or block.kind != "heading" or (run and block.after_gap):
            yield from (
                replace(one, kind="prose", after_gap=True) if len(run) >= _FEWEST_COMMENTS else one for one in run
            )
            run = []
        if block is not None and block.kind == "heading":
            run.append(block)
        elif block is not None:
            yield block


class _Builder:
    """Gathers lines into blocks."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._kind: BlockKind = "prose"
        self._after_gap = self._gap = True
        self._fenced = False

    def add(self, line: str, start: int) -> Iterator[PassageBlock]:
        """Take the next line, whose words begin at `start`, and yield the block that it ends."""
        words = line.strip()
        place = (start, start + len(words), measure_indent(line))
        if FENCE.match(line):
            yield from self.close()
            self._fenced = not self._fenced
            self._kind = "code" if self._fenced else "prose"
        elif self._fenced:
            self._lines += [place] if words else []
        elif not words:
            self._gap = True
        elif RULE.match(line) and not ROW.match(line):
            if len(self._lines) == 1 and not self._gap and self._kind == "prose":
                self._kind = "heading"
            yield from self.close()
        elif self._lines and not self._gap and not _opens(line, words) and self._kind in ("prose", "item"):
            self._lines.append(place)
        else:
            yield from self.close(gap=self._gap)
            self._open(line, words, place)

    def close(self, *, gap: bool = True) -> Iterator[PassageBlock]:
        """Yield the block that is open; `gap` says whether the next one stands apart from it."""
        if self._lines:
            (start, _, indent), (_, end, _) = self._lines[0], self._lines[-1]
            yield PassageBlock(start, end, self._kind, indent, tuple(self._lines), self._after_gap)
        self._lines, self._kind = [], "prose"
        self._after_gap, self._gap = gap, gap

    def _open(self, line: str, words: str, place: Line) -> None:
        start, end, indent = place
        self._gap = False
        if _HEADING.match(words):
            self._kind, start = "heading", end - len(words.lstrip("# \t"))
        elif ROW.match(line):
            self._kind = "row"
        elif mark := _MARK.match(words):
            self._kind, start = "item", start + mark.end()
        elif described := _DESCRIBES.match(words):
            start, indent = start + described.end(), indent + 2
        self._lines = [(start, end, indent)]


def measure_indent(line: str) -> int:
    """Return the number of columns before the words of a line."""
    spread = line.expandtabs(4)
    return len(spread) - len(spread.lstrip())


def _opens(line: str, words: str) -> bool:
    return bool(ROW.match(line) or ITEM.match(line) or _HEADING.match(words) or _DESCRIBES.match(words))


def _split_at_terms(text: str, block: PassageBlock) -> Iterator[PassageBlock]:
    """Yield a paragraph as terms and what is said of each, where its lines look like entries."""
    if block.kind != "prose" or len(block.lines) < 2:
        yield block
        return
    body: list[Line] = []
    for number, line in enumerate(block.lines):
        following = block.lines[number + 1] if number + 1 < len(block.lines) else None
        above = block.lines[number - 1] if number else None
        if following and _is_term_line(text, above, line, following):
            yield from _join_lines(body, block)
            body = []
            yield PassageBlock(line[0], line[1], "term", line[2], (line,), block.after_gap)
        else:
            body.append(line)
    yield from _join_lines(body, block)


def _join_lines(lines: Sequence[Line], block: PassageBlock) -> Iterator[PassageBlock]:
    if lines:
        yield PassageBlock(lines[0][0], lines[-1][1], "prose", lines[0][2], tuple(lines), lines[0] == block.lines[0])


def _is_term_line(text: str, above: Line | None, line: Line, following: Line) -> bool:
    words, below = text[line[0] : line[1]], text[following[0] : following[1]]
    if above is None and following[2] > line[2]:
        # A passage may begin within an item, whose lines below are indented.
        most = _MOST_TERM_WORDS if line[0] else _MOST_FIRST_WORDS
        goes_on = words[:1].isupper() and below[:1].islower() and len(words.split()) > most
        return len(words) <= _LONGEST_SIGNATURE and not _states(words) and not goes_on
    if not _is_label(words) or (above and not _ENDS.search(text[above[0] : above[1]][-_TAIL:])):
        return False
    if above and text[above[0] : above[1]].endswith(":"):
        return False
    if following[2] > line[2]:
        return True
    return line[2] >= 2 and following[2] == line[2] and below[:1].isupper() and _states(below)


def _is_label(words: str) -> bool:
    """Return whether a line names something rather than to say something."""
    return (
        len(words) <= _LONGEST_TERM
        and len(words.split()) <= _MOST_TERM_WORDS
        and not _states(words)
        and _SPEAKS.search(words) is not None
    )


def _settle(text: str, blocks: Sequence[PassageBlock], number: int, headings: AbstractSet[str]) -> PassageBlock:
    """Return a block of prose as what it is between its neighbours: a heading, a term, code or prose."""
    block = blocks[number]
    words = text[block.start : block.end]
    below = blocks[number + 1] if number + 1 < len(blocks) else None
    if block.kind in ("prose", "item") and below is not None and _names_what_follows(words, block, below):
        return replace(block, kind="term")
    if block.kind == "item" and _is_labelled_item(text, blocks, number):
        return replace(block, kind="term")
    if block.kind != "prose":
        return block
    if words in headings:
        return replace(block, kind="heading")
    above = blocks[number - 1] if number else None
    announced = above is not None and text[above.start : above.end].endswith((":", "::"))
    if looks_like_code(words, announced=announced):
        return replace(block, kind="code")
    alone = len(block.lines) == 1 and block.after_gap and below is not None and below.after_gap
    is_label = _is_label(words) and not _NOT_HEADING.match(words)
    if alone and not announced and (is_label or (words.endswith("?") and len(words) <= _LONGEST_TERM)):
        deeper = below is not None and below.kind in ("prose", "code") and below.indent > block.indent
        return replace(block, kind="term" if deeper else "heading")
    return block


def _names_what_follows(words: str, block: PassageBlock, below: PassageBlock) -> bool:
    """Return whether a line of its own is the name of an option or a setting that the next paragraph explains."""
    is_alone = len(block.lines) == 1 and below.after_gap and below.kind == "prose" and below.indent >= block.indent
    return is_alone and _is_label(words) and _IDENTIFIER.match(words) is not None


def _is_labelled_item(text: str, blocks: Sequence[PassageBlock], number: int) -> bool:
    """Return whether an item is the name of what the paragraph under it tells, as another item close by is."""
    return any(
        _is_label_over_prose(text, blocks, number) and _is_label_over_prose(text, blocks, other)
        for other in (number - 2, number + 2)
    )


def _is_label_over_prose(text: str, blocks: Sequence[PassageBlock], number: int) -> bool:
    if not 0 <= number < len(blocks) - 1:
        return False
    label, below = blocks[number], blocks[number + 1]
    is_alone = label.kind == "item" and len(label.lines) == 1 and below.kind == "prose" and below.after_gap
    words, told = text[label.start : label.end], text[below.start : below.end]
    return is_alone and below.indent >= label.indent and _is_label(words) and told[:1].isupper() and _states(told)


def _states(words: str) -> bool:
    """Return whether words end as a sentence or a part of one does."""
    return _STATES.search(words[-_TAIL:]) is not None


def measure_word_share(text: str) -> float:
    """Return the share of letters and digits in what is visible of a text; 1 where nothing is."""
    visible = len("".join(text.split()))
    return len(_NO_WORD.sub("", text)) / visible if visible else 1.0


def looks_like_code(words: str, *, announced: bool = False) -> bool:
    """Return whether a paragraph is code; one that a colon announces need not look much like it."""
    prose = _INLINE_CODE.sub("", words)
    share = measure_word_share(prose)
    if _states(words) and words[:1].isupper() and share >= _LEAST_WORD_SHARE:
        return False
    if share < _LEAST_WORD_SHARE or _CODE.search(prose) is not None:
        return True
    return announced and not words[:1].isupper() and (not _states(words) or _COMMAND.match(words) is not None)

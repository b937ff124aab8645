"""Chunk papers by section, and find sections by a name that papers use, a number in sequence, or capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragstone.core.types import Block, Chunk, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits, trim
from ragstone.ingest.chunkers.packing import MarkdownChunker

_NAMES = """
abstract, summary, executive summary, keywords, key words, index terms, introduction, background, motivation,
preliminaries, related work, literature review, problem statement, theory, theoretical background, methods, method,
methodology, materials and methods, methods and materials, materials, data, data and methods, approach, model,
proposed method, implementation, study design, experimental setup, experiments, experimental results, evaluation,
analysis, statistical analysis, results, findings, results and discussion, discussion, discussion and conclusion,
discussion and conclusions, limitations, threats to validity, implications, conclusion, conclusions,
concluding remarks, conclusion and future work, conclusions and future work, future work, acknowledgment,
acknowledgments, acknowledgement, acknowledgements, funding, author contributions, conflict of interest,
conflicts of interest, competing interests, data availability, ethics statement, references, bibliography,
literature cited, works cited, appendix, appendices, supplementary material, supplementary materials,
supporting information
"""
NAMES = frozenset(name.strip() for name in _NAMES.split(","))
LISTS = frozenset(("references", "bibliography", "literature cited", "works cited"))
"""Numbered lines and capitals behind these are entries, not sections."""
LONGEST = 100
MOST_WORDS = 12
_NUMBER = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,2}){0,3}|[IVX]{1,5}(?=\.)|[A-H](?=\.))\.?[ \t]+(?=[^\W\d_])")
_RUN_IN = re.compile(r"(Abstract|ABSTRACT|Keywords|KEYWORDS|Key words|Index Terms)[ \t]*(?:[.:—–]|-(?=[ \t]))(?=.*\S)")
_SENTENCE_ENDS = '.!?:;)]"”’'
_APPENDIX = re.compile(r"appendix [a-h0-9]\b.*")
ENOUGH = 2
"""So many known names make a text a paper, in which other headings are believed too."""


@dataclass(frozen=True, slots=True)
class SectionLine:
    """A line that names a section, with the name as it is cited and the depth of its number."""

    start: int
    end: int
    name: str
    depth: int
    known: bool
    """True if papers use this name; another name may be a coincidence."""


class SectionReader:
    """Goes through the blocks of one document in order and remembers which number must come next."""

    def __init__(self) -> None:
        self._last: tuple[int, ...] = (0,)
        self._in_list = False

    def pass_heading(self, label: str) -> None:
        """Note the number and name of an existing heading."""
        number, name = split_number(label)
        self._note(number, name)

    def lines(self, text: str, block: Block) -> Iterator[SectionLine]:
        """Yield the lines of a block that name a section."""
        before = ""
        start = block.start
        while start < block.end:
            found = text.find("\n", start, block.end)
            end = block.end if found < 0 else found
            following = text[end + 1 : min(block.end, end + LONGEST)]
            section = self._section(start, text[start : min(end, start + LONGEST + 1)], before, following)
            if section:
                yield section
            # Under a line that names a section the next one may stand at once.
            before = text[section.end if section else max(start, end - LONGEST) : end].rstrip()
            start = end + 1

    def _section(self, start: int, line: str, before: str, following: str) -> SectionLine | None:
        if not before and (run_in := _RUN_IN.match(line)):
            return SectionLine(start, start + run_in.end(), format_name(run_in[1]), 1, known=True)
        number, name = split_number(line.strip())
        if len(line) > LONGEST or not name[:1].isupper() or len(line.split()) > MOST_WORDS:
            return None
        known = is_known(name)
        stands_alone = not before or before[-1] in _SENTENCE_ENDS
        if not (known and stands_alone) and not self._looks_like_one(number, name, before, following):
            return None
        self._note(number, name)
        return SectionLine(start, start + len(line.rstrip()), format_name(name), depth_of(number), known)

    def _looks_like_one(self, number: str, name: str, before: str, following: str) -> bool:
        if before or self._in_list or name[-1] in ".,;:!?" or len(name) < 4:
            return False
        if name.isupper():
            return True
        listed = _NUMBER.match(following)
        return self._follows(number) and (listed is None or listed[1].startswith(f"{number}."))

    def _follows(self, number: str) -> bool:
        new, last = _parts(number), self._last
        if not new or len(new) > len(last) + 1:
            return False
        expected = last[len(new) - 1] + 1 if len(new) <= len(last) else 1
        return new[:-1] == last[: len(new) - 1] and new[-1] == expected

    def _note(self, number: str, name: str) -> None:
        self._last = _parts(number) or self._last
        if is_known(name):
            self._in_list = normalize_name(name) in LISTS


def split_number(line: str) -> tuple[str, str]:
    """Return the number before a heading, empty if there is none, and its words."""
    found = _NUMBER.match(line)
    return (found[1], line[found.end() :].strip()) if found else ("", line.strip())


def is_known(name: str) -> bool:
    """Return whether papers use this name for a section."""
    words = normalize_name(name)
    return words in NAMES or bool(_APPENDIX.fullmatch(words))


def normalize_name(name: str) -> str:
    """Return a name as it stands in the list of names."""
    return " ".join(name.rstrip(".:— ").lower().replace("&", "and").split())


def format_name(name: str) -> str:
    """Return a name as a citation shows it: not in capitals, without a colon."""
    bare = " ".join(name.rstrip(".:— ").split())
    return bare.capitalize() if bare.isupper() else bare


def depth_of(number: str) -> int:
    """Return the depth of a section by its number: that of `2.1` and of IEEE's `A` is two."""
    return 2 if number.isalpha() and number in "ABCDEFGH" else max(1, len(_parts(number)))


def _parts(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split(".")) if number[:1].isdigit() else ()


@dataclass(frozen=True, slots=True)
class PaperChunker:
    """Packs the blocks of one section, from Abstract to References, and never mixes two.

    Sections are the document's headings and, where a text has lost them, lines that name one.
    """

    limits: ChunkLimits
    context: bool = True

    @property
    def fingerprint(self) -> str:
        return f"paper {self.limits.fingerprint} context={self.context}"

    def chunk(self, document: Parsed) -> list[Chunk]:
        return MarkdownChunker(self.limits, 0, self.context).chunk(add_section_headings(document))


def add_section_headings(document: Parsed) -> Parsed:
    """Return the document with a heading block for every section that is found; its text stays the same."""
    reader = SectionReader()
    found: list[list[SectionLine]] = []
    known = 0
    for block in document.blocks:
        lines: list[SectionLine] = []
        if block.kind == "heading":
            reader.pass_heading(block.label)
            known += is_known(split_number(block.label)[1])
        elif block.kind == "paragraph" or _is_one_line_list(document.text, block):
            lines = list(reader.lines(document.text, block))
            known += sum(line.known for line in lines)
        found.append(lines)
    base = _base_level(document.blocks)
    blocks: list[Block] = []
    for block, lines in zip(document.blocks, found, strict=True):
        sure = [line for line in lines if line.known or known >= ENOUGH]
        blocks += _split(document.text, block, sure, base)
    return replace(document, blocks=tuple(blocks))


def _split(text: str, block: Block, lines: Sequence[SectionLine], base: int) -> Iterator[Block]:
    if block.kind == "heading":
        name = split_number(block.label)[1]
        yield replace(block, label=format_name(name)) if is_known(name) else block
        return
    if not lines:
        yield block
        return
    start = block.start
    for line in lines:
        yield from _rest(text, block, start, line.start)
        level = min(6, base + line.depth - 1)
        begin, end = trim(text, line.start, line.end)
        yield Block("heading", begin, end, level, line.name, block.page)
        start = line.end
    yield from _rest(text, block, start, block.end)


def _rest(text: str, block: Block, start: int, end: int) -> Iterator[Block]:
    start, end = trim(text, start, end)
    if start < end:
        yield replace(block, start=start, end=end)


def _is_one_line_list(text: str, block: Block) -> bool:
    """Return whether a block may be a heading that Markdown takes for a list, such as `1. Introduction`."""
    return block.kind == "list" and text.find("\n", block.start, block.end) < 0


def _base_level(blocks: Sequence[Block]) -> int:
    """Return the depth of a section among the existing headings."""
    headings = [block for block in blocks if block.kind == "heading"]
    sections = [block.level for block in headings if is_known(split_number(block.label)[1])]
    if sections:
        return min(sections)
    return 1 + min((block.level for block in headings), default=0)

"""Citations: what a sentence quotes, and marks read back from a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ragstone.core.answers import SITE, Citation, Support
from ragstone.core.documents import page_at
from ragstone.core.errors import SettingsError
from ragstone.core.types import Hit

DEFAULT_FORMAT = "[{index}]"
INDEX = "{index}"


@dataclass(frozen=True, slots=True)
class Quote:
    """A part of a passage: `hit.text[start:end]`."""

    hit: Hit
    start: int
    end: int
    head: Quote | None = None
    """The header of its table, if it is a row of one."""

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]

    @property
    def place(self) -> tuple[str, int, int]:
        """Return its place in its document, the same for overlapping passages."""
        return (self.hit.document_id, self.hit.start + self.start, self.hit.start + self.end)

    @property
    def page(self) -> int | None:
        """Return the page that it begins on, which need not be the first of its passage."""
        return page_at(self.hit.start + self.start, self.hit.page, self.hit.page_starts)

    @property
    def headings(self) -> str:
        """Return the title and the headings above it."""
        return f"{self.hit.title}\n{self.hit.section}"

    def citation(self, n: int) -> Citation:
        """Return the citation of the quote under a number."""
        hit = self.hit
        document_id, start, end = self.place
        return Citation(
            n=n,
            quote=self.text,
            chunk_id=hit.chunk_id,
            document_id=document_id,
            title=hit.title,
            uri=hit.uri,
            page=self.page,
            section=hit.section,
            start=start,
            end=end,
            site=str(hit.metadata.get(SITE) or ""),
        )


def all_words(hit: Hit) -> str:
    """Return a passage with the headings over it."""
    return "\n".join((hit.title, hit.section, hit.table_head.text if hit.table_head else "", hit.text))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence before its citations have numbers."""

    text: str
    support: Support
    quotes: tuple[Quote, ...]


def check_format(citation_format: str) -> str:
    """Return the format, or a `SettingsError` when marks made with it would carry no number."""
    if INDEX not in citation_format:
        raise SettingsError(
            f"answer.citation_format {citation_format!r} has no {INDEX}",
            hint=f'set answer.citation_format to something like "{DEFAULT_FORMAT}"',
        )
    return citation_format


@lru_cache(maxsize=16)
def mark_pattern(citation_format: str) -> re.Pattern[str]:
    """Matches marks that stand apart: `items[1]` is code."""
    before, after = (re.escape(part) for part in check_format(citation_format).split(INDEX, 1))
    return re.compile(rf"(?<!\w){before}\s*(\d{{1,6}})\s*{after}")


def extract_marks(text: str, citation_format: str = DEFAULT_FORMAT) -> list[int]:
    """Return the numbers of the citation marks in a text, in order, repeats kept."""
    return [int(number) for number in mark_pattern(citation_format).findall(text)]


def cited_sources(
    text: str, citations: Iterable[Citation], citation_format: str = DEFAULT_FORMAT
) -> Mapping[int, Citation]:
    """Return the source behind each mark of an answer, by number; marks without one are left out."""
    by_number = {citation.n: citation for citation in citations}
    marks = dict.fromkeys(extract_marks(text, citation_format))
    return {n: by_number[n] for n in marks if n in by_number}


def dangling_marks(text: str, citations: Iterable[Citation], citation_format: str = DEFAULT_FORMAT) -> list[int]:
    """Return the marks of an answer that point to no citation."""
    known = {citation.n for citation in citations}
    return [n for n in dict.fromkeys(extract_marks(text, citation_format)) if n not in known]

"""Citations: numbered by first use, rendered as marks, read back from marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragstone.answer.plain import plain
from ragstone.core.answers import Answer, Citation, Sentence, Support
from ragstone.core.errors import SettingsError
from ragstone.core.types import Hit

DEFAULT_FORMAT = "[{index}]"
_INDEX = "{index}"
_SPACE_BEFORE_STOP = re.compile(r" (?=[.,;:!?](?:\s|$))")
NO_EVIDENCE = "Nothing in the knowledge base answers this question."


@dataclass(frozen=True, slots=True)
class Quote:
    """A part of a passage: `hit.text[start:end]`."""

    hit: Hit
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it stands in its document: passages that overlap give one place."""
        return (self.hit.document_id, self.hit.start + self.start, self.hit.start + self.end)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence before its citations have numbers."""

    text: str
    support: Support
    quotes: tuple[Quote, ...]


def check_format(citation_format: str) -> str:
    """The format, or a `SettingsError` when marks made with it would carry no number."""
    if _INDEX not in citation_format:
        raise SettingsError(
            f"answer.citation_format {citation_format!r} has no {_INDEX}",
            hint=f'set answer.citation_format to something like "{DEFAULT_FORMAT}"',
        )
    return citation_format


def assemble(
    question: str,
    statements: Sequence[Statement],
    *,
    citation_format: str = DEFAULT_FORMAT,
    degraded: Sequence[str] = (),
) -> Answer:
    """Number the quotes in the order they are used and write the text with its marks."""
    if not statements:
        return Answer(question, NO_EVIDENCE, (), (), "no_evidence", tuple(degraded))
    citations: dict[tuple[str, int, int], Citation] = {}
    sentences = []
    for statement in statements:
        numbers = []
        for quote in statement.quotes:
            citation = citations.setdefault(quote.place, _citation(len(citations) + 1, quote))
            numbers.append(citation.n)
        sentences.append(Sentence(statement.text, statement.support, tuple(dict.fromkeys(numbers))))
    text = " ".join(_marked(sentence, citation_format) for sentence in sentences)
    return Answer(question, text, tuple(sentences), tuple(citations.values()), "answered", tuple(degraded))


def _citation(n: int, quote: Quote) -> Citation:
    hit = quote.hit
    _, start, end = quote.place
    return Citation(
        n, quote.text, hit.chunk_id, hit.document_id, hit.title, hit.uri, hit.page, hit.section, start, end
    )


def _marked(sentence: Sentence, citation_format: str) -> str:
    # A source's own marks ("as shown in [12]") would read as marks of this answer.
    text = plain(_mark_pattern(citation_format).sub("", sentence.text))
    marks = "".join(citation_format.replace(_INDEX, str(n)) for n in sentence.citations)
    return f"{_SPACE_BEFORE_STOP.sub('', text)} {marks}"


@lru_cache(maxsize=16)
def _mark_pattern(citation_format: str) -> re.Pattern[str]:
    """Matches marks that stand apart: `items[1]` is code."""
    before, after = (re.escape(part) for part in check_format(citation_format).split(_INDEX, 1))
    return re.compile(rf"(?<!\w){before}\s*(\d{{1,6}})\s*{after}")


def extract_marks(text: str, citation_format: str = DEFAULT_FORMAT) -> list[int]:
    """The numbers of the citation marks in a text, in order, repeats kept."""
    return [int(number) for number in _mark_pattern(citation_format).findall(text)]


def cited_sources(
    text: str, citations: Iterable[Citation], citation_format: str = DEFAULT_FORMAT
) -> Mapping[int, Citation]:
    """The source behind each mark of an answer, by number; marks without one are left out."""
    by_number = {citation.n: citation for citation in citations}
    marks = dict.fromkeys(extract_marks(text, citation_format))
    return {n: by_number[n] for n in marks if n in by_number}


def dangling_marks(
    text: str, citations: Iterable[Citation], citation_format: str = DEFAULT_FORMAT
) -> list[int]:
    """The marks of an answer that point to no citation."""
    known = {citation.n for citation in citations}
    return [n for n in dict.fromkeys(extract_marks(text, citation_format)) if n not in known]

"""Name the sources of an answer: marks in its text, a list below it, both or neither; and read marks back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ragstone.answer.quotes import Quote, Statement, render_row
from ragstone.answer.sanitize import has_link, sanitize
from ragstone.core.answers import (
    Answer,
    AnswerEvent,
    AnswerReady,
    Citation,
    CitationsReady,
    Contradiction,
    Sentence,
    SentenceReady,
    Support,
)
from ragstone.core.errors import SettingsError
from ragstone.settings.answers import CitationStyle

DEFAULT_FORMAT = "[{index}]"
INDEX = "{index}"
MOST_CHARS = 120
"""Of a title or heading: it names a source, it does not speak."""
_ROW = re.compile(r"\| [^\n]* \|")
_BULLET = re.compile(r"(\n[ \t]*)[*+][ \t]+(?=\S)")
_EMPHASIS = re.compile(r"(?<![\w*`])\*(?=\w)([^*\n]{1,500})(?<=[\w.,;:!?)])\*(?![\w*`])")
_STOP = re.compile(r"[.!?。！？]+[\"'”’»)]*$")
_SPACE_BEFORE_STOP = re.compile(r" (?=[.,;:!?](?:\s|$))")
_SOURCE_MARK = re.compile(r"\[Source:[^\[\]]{0,300}\]", re.I)
_BRACKETS = str.maketrans("[]", "()")


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


def strip_marks(text: str, citation_format: str = DEFAULT_FORMAT) -> str:
    """Return one plain line without marks: a source's own ("as shown in [12]") would look like the answer's."""
    without = _SOURCE_MARK.sub("", mark_pattern(citation_format).sub("", text))
    return _SPACE_BEFORE_STOP.sub("", sanitize(without))


def add_marks(
    text: str, citations: Sequence[Citation], style: CitationStyle, citation_format: str = DEFAULT_FORMAT
) -> str:
    """Return a sentence as the answer shows it, with whatever marks the style puts there."""
    bare = strip_marks(text, citation_format)
    if style in ("index", "footnote"):
        marks = dict.fromkeys(_mark(citation.n, citation_format) for citation in citations)
        return f"{bare} {''.join(marks)}"
    if style == "inline":
        sources = dict.fromkeys(f"[Source: {_inline_name(citation)}]" for citation in citations)
        stop = _STOP.search(bare)
        end = stop.start() if stop else len(bare)
        return f"{bare[:end]} {' '.join(sources)}{bare[end:]}"
    return bare


def word_sentence(text: str, support: Support, citations: Sequence[Citation], *, plain: bool = True) -> str:
    """Return a sentence as the answer says it: a row of a table with the names of its columns, prose without asterisks.

    Receipts of earlier versions have the asterisks too: `plain=False`.
    """
    if support == "quoted" and (len(citations) > 1 or _ROW.fullmatch(text)):
        return render_row(text, citations[1].quote if len(citations) > 1 else "")
    return _EMPHASIS.sub(r"\1", _BULLET.sub(r"\1- ", text)) if support == "quoted" and plain else text


def list_sources(citations: Sequence[Citation], style: CitationStyle, citation_format: str = DEFAULT_FORMAT) -> str:
    """Return the text below the sentences: the list of sources, if the style has one."""
    if style == "footnote":
        lines = [f"{_mark(citation.n, citation_format)} {source_line(citation)}" for citation in citations]
        return "\n\n" + "\n".join(dict.fromkeys(lines))
    if style == "endnote":
        sources = dict.fromkeys(source_line(citation) for citation in citations)
        lines = [f"{number}. {source}" for number, source in enumerate(sources, start=1)]
        return "\n\nSources:\n" + "\n".join(lines)
    return ""


def source_line(citation: Citation) -> str:
    """Return a source in a list: `Product Catalog - Oriental Spice`, `Internet (FragranceNet) - Composition`."""
    if citation.site:
        name, details = f"Internet ({_name(citation.site)})", citation.title
    else:
        name, details = _name(citation.title), _details(citation)
    words = _clean(details)
    return f"{name} - {words}" if words else name


def _inline_name(citation: Citation) -> str:
    return f"Internet - {_name(citation.site)}" if citation.site else _name(citation.title)


def _details(citation: Citation) -> str:
    first, _, rest = citation.section.partition(" > ")
    section = rest if first and citation.title.startswith(first) else citation.section
    return section or (f"page {citation.page}" if citation.page else "")


def _mark(n: int, citation_format: str) -> str:
    return citation_format.replace(INDEX, str(n))


def _name(title: str) -> str:
    return _clean(title) or "untitled"


def _clean(words: str) -> str:
    """Return words of a document that may stand in an answer: one line, no link, no bracket that could end a mark."""
    line = sanitize(words)
    if len(line) > MOST_CHARS:
        line = line[: MOST_CHARS - 1].rstrip() + "…"
    return "" if has_link(line) else line.translate(_BRACKETS)


NO_EVIDENCE = "Nothing in the knowledge base answers this question."
NOT_ALL_DONE = "No answer was found, but not everything could be searched or read."
FLAG = "(unsupported)"
"""Follows a sentence that its source does not bear out, where such sentences are kept."""


def word_no_answer(nearest: str, missing: Sequence[str], waiting: int, *, all_done: bool) -> str:
    """Return the text of a reply that is no answer; `nearest` are the quotes that come near, with their marks."""
    if waiting:
        documents = "1 document is" if waiting == 1 else f"{waiting} documents are"
        found = "No passage states this yet" if nearest else "No answer was found yet"
        first = f"{found}: {documents} still being read."
    elif nearest:
        first = f"No passage states this{'' if all_done else ', but not everything could be searched or read'}."
    else:
        first = NO_EVIDENCE if all_done else NOT_ALL_DONE
    told = " ".join([first, *_word_missing(missing)])
    return f"{told} The nearest say:\n{nearest}" if nearest else told


def word_open_parts(unanswered: Sequence[str], missing: Sequence[str]) -> str:
    """Return what follows an answer that leaves parts of the question open, each on a line; "" for a whole answer."""
    if not unanswered:
        return ""
    lines = [f"Still open: {sanitize(part)}?" for part in unanswered]
    return "\n" + "\n".join([*lines, *_word_missing(missing)])


def _word_missing(names: Sequence[str]) -> list[str]:
    shown = [shown for name in names if (shown := _clean(name))]
    listed = " or ".join([", ".join(shown[:-1]), *shown[-1:]] if len(shown) > 1 else shown)
    return [f"No passage mentions {listed}."] if listed else []


class Writer:
    """Writes one answer, a statement at a time, so that each sentence can be shown as soon as it is checked.

    Each quote has its number. With `by_source` footnotes are numbered by source: one for all quotes of a section.
    """

    def __init__(
        self, style: CitationStyle = "index", citation_format: str = DEFAULT_FORMAT, *, by_source: bool = False
    ) -> None:
        self._style = style
        self._format = citation_format
        self._by_source = by_source and style == "footnote"
        self._sources: dict[tuple[str, str], int] = {}
        self._citations: dict[tuple[str, int, int], Citation] = {}
        self._written: list[SentenceReady] = []
        self._nearest: list[SentenceReady] = []

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self._citations.values())

    def add(self, statement: Statement) -> SentenceReady:
        """Return the next sentence, with its marks."""
        self._written.append(self._mark(statement))
        return self._written[-1]

    def add_nearest(self, statement: Statement) -> None:
        """Quote a statement that is no answer, for a reply that has none."""
        self._nearest.append(self._mark(statement))

    def finish(
        self,
        question: str,
        degraded: Sequence[str] = (),
        contradictions: Iterable[Contradiction] = (),
        *,
        unanswered: Sequence[str] = (),
        missing: Sequence[str] = (),
        waiting: int = 0,
    ) -> Answer:
        """Return the answer of all that was added; without a sentence it says that there is none."""
        said = _join(self._written) + word_open_parts(unanswered, missing) if self._written else ""
        text = said or word_no_answer(_join(self._nearest), missing, waiting, all_done=not degraded)
        return Answer(
            question,
            text + list_sources(self.citations, self._style, self._format) if self.citations else text,
            tuple(ready.sentence for ready in self._written),
            self.citations,
            "answered" if said else "no_evidence",
            tuple(degraded),
            tuple(contradictions),
            tuple(unanswered),
            tuple(ready.sentence for ready in self._nearest),
            tuple(missing),
            waiting,
        )

    def _mark(self, statement: Statement) -> SentenceReady:
        cited = {self._number(quote): None for quote in statement.quotes}
        numbers = dict.fromkeys(citation.n for citation in cited)
        sentence = Sentence(statement.text, statement.support, tuple(numbers))
        return _mark_sentence(sentence, list(cited), self._style, self._format)

    def _number(self, quote: Quote) -> Citation:
        if quote.place not in self._citations:
            self._citations[quote.place] = self._cite(quote)
        return self._citations[quote.place]

    def _cite(self, quote: Quote) -> Citation:
        made = quote.citation(len(self._citations) + 1)
        if not self._by_source:
            return made
        source = (made.document_id, source_line(made))
        return quote.citation(self._sources.setdefault(source, len(self._sources) + 1))


def _join(ready: Iterable[SentenceReady]) -> str:
    return " ".join(sentence.text for sentence in ready)


def replay(answer: Answer, style: CitationStyle, citation_format: str) -> Iterator[AnswerEvent]:
    """Yield the events of an answer that was given before, as they came while it was written."""
    by_number = {citation.n: citation for citation in answer.citations}
    for sentence in answer.sentences:
        cited = [by_number[n] for n in sentence.citations]
        if cited:
            yield _mark_sentence(sentence, cited, style, citation_format)
        else:
            yield SentenceReady(sentence, f"{sentence.text} {FLAG}")
    yield CitationsReady(answer.citations)
    yield AnswerReady(answer)


def _mark_sentence(
    sentence: Sentence, cited: Sequence[Citation], style: CitationStyle, citation_format: str
) -> SentenceReady:
    said = word_sentence(sentence.text, sentence.support, cited)
    text = add_marks(said, cited, style, citation_format)
    return SentenceReady(sentence, f"{text} {FLAG}" if sentence.support == "unsupported" else text)

"""Statements become an answer: quotes are numbered by first use, sentences get their marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragstone.answer.cite import DEFAULT_FORMAT, Quote, Statement
from ragstone.answer.styles import below, marked, worded
from ragstone.core.answers import Answer, Citation, Contradiction, Sentence, SentenceReady
from ragstone.settings.answers import CitationStyle

NO_EVIDENCE = "Nothing in the knowledge base answers this question."
FLAG = "(unsupported)"
"""Follows a sentence that its source does not bear out, where such sentences are kept."""


class Writer:
    """Writes one answer, a statement at a time, so that each sentence can be shown as soon as it is checked."""

    def __init__(self, style: CitationStyle = "index", citation_format: str = DEFAULT_FORMAT) -> None:
        self._style = style
        self._format = citation_format
        self._citations: dict[tuple[str, int, int], Citation] = {}
        self._written: list[SentenceReady] = []

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self._citations.values())

    @property
    def written(self) -> int:
        """How many sentences there are so far."""
        return len(self._written)

    def add(self, statement: Statement) -> SentenceReady:
        """The next sentence, with its marks."""
        cited = {self._numbered(quote): None for quote in statement.quotes}
        said = worded(statement.text, statement.support, list(cited))
        text = marked(said, list(cited), self._style, self._format)
        if statement.support == "unsupported":
            text = f"{text} {FLAG}"
        sentence = Sentence(statement.text, statement.support, tuple(citation.n for citation in cited))
        self._written.append(SentenceReady(sentence, text))
        return self._written[-1]

    def finish(
        self, question: str, degraded: Sequence[str] = (), contradictions: Iterable[Contradiction] = ()
    ) -> Answer:
        """The answer of all that was added; without a sentence it says that there is no evidence."""
        if not self._written:
            return Answer(question, NO_EVIDENCE, (), (), "no_evidence", tuple(degraded))
        text = " ".join(one.text for one in self._written)
        return Answer(
            question,
            text + below(self.citations, self._style, self._format),
            tuple(one.sentence for one in self._written),
            self.citations,
            "answered",
            tuple(degraded),
            tuple(contradictions),
        )

    def _numbered(self, quote: Quote) -> Citation:
        return self._citations.setdefault(quote.place, quote.citation(len(self._citations) + 1))

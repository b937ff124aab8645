"""An answer, what each of its sentences stands on, and what it sends while it is being made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Support = Literal["quoted", "supported", "unsupported"]
"""Word for word from its source; said by its source in other words; not said by it, and kept only as flagged."""

AnswerStatus = Literal["answered", "no_evidence", "without_sources"]
"""From passages; not at all; or from what a language model knows by itself, where the settings allow that."""

SITE = "internet_site"
"""Metadata of a hit that was found on the internet: the name of the site. A document of a kb has none."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and exactly where it stands: `document.text[start:end] == quote`."""

    n: int
    quote: str
    chunk_id: str
    document_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int
    site: str = ""
    """Where on the internet it was found; empty for what is in the knowledge base."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with the citations it stands on."""

    text: str
    support: Support
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A passage that was found too and says otherwise: `document.text[start:end] == quote`."""

    sentence: str
    """The sentence of the answer that it speaks against."""
    quote: str
    reason: str
    chunk_id: str
    document_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences, each with its sources; none has any where the status is `without_sources`."""

    question: str
    answer: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    status: AnswerStatus
    degraded: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    unanswered: tuple[str, ...] = ()
    """The parts of a compound question for which nothing was found, where others were answered."""


@dataclass(frozen=True, slots=True)
class SentenceReady:
    """A sentence whose support has been checked; `text` is as the answer shows it, with its marks."""

    sentence: Sentence
    text: str


@dataclass(frozen=True, slots=True)
class CitationsReady:
    """What the marks of the sentences stand for, once the last sentence is out."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The whole answer: the last event."""

    answer: Answer


AnswerEvent = SentenceReady | CitationsReady | AnswerReady

"""An answer and what each of its sentences stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Support = Literal["quoted", "supported", "unsupported"]


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


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with the citations it stands on."""

    text: str
    support: Support
    citations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences, each with its sources; no sentence without one."""

    question: str
    answer: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    status: Literal["answered", "no_evidence"]
    degraded: tuple[str, ...] = ()

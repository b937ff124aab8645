"""What is left of an answer's proof when its receipt is checked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

QuoteState = Literal["stands", "moved", "changed", "gone", "elsewhere"]
"""Word for word where it was; elsewhere in its document; no longer in it; the document is gone; never kept here."""


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A quote of a receipt, and where it stands in the live document now."""

    n: int
    state: QuoteState
    document_id: str
    title: str
    uri: str
    quote: str
    start: int
    """Where it is now, or where it was when it is no longer there."""
    end: int


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of a receipt; `reason` says why it does not hold, and is empty when it does."""

    text: str
    holds: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ReceiptReport:
    """What of an answer still holds."""

    question: str
    moment: str
    """When the answer was given."""
    tampering: tuple[str, ...]
    """What shows that the receipt is not as it was made; empty when it is."""
    citations: tuple[CheckedCitation, ...]
    sentences: tuple[CheckedSentence, ...]
    differences: tuple[str, ...] = ()
    """What the receipt calls otherwise than it is called here now: titles, addresses, sections, pages, marks."""
    unanswered: tuple[str, ...] = ()
    """The parts of the question that the answer left open when it was given."""

    @property
    def intact(self) -> bool:
        """Whether the receipt is as it was made."""
        return not self.tampering

    @property
    def holds(self) -> bool:
        """Whether the same answer would be given today: it is intact, every sentence stands, nothing is renamed."""
        return self.intact and not self.differences and all(sentence.holds for sentence in self.sentences)

"""Results of asking: answers with citations, verdicts on claims, research, checked receipts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Hit

Support = Literal["quoted", "supported", "unsupported"]
"""Word for word from its source; said by its source in other words; not said by it, and kept only as flagged."""

AnswerStatus = Literal["answered", "no_evidence", "without_sources"]
"""From passages; not at all; or from what a language model knows by itself, where the settings allow that."""

Outcome = Literal["answered", "nearest", "nothing"]
"""Answered; not answered, but passages that come near are quoted; nothing was found that has to do with it."""

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
    """The web site that it was found on; empty for a passage of the knowledge base."""


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
    nearest: tuple[Sentence, ...] = ()
    """Quotes that come nearest to a question that no passage answers. They are no answer."""
    missing: tuple[str, ...] = ()
    """Names asked for that no passage has."""
    waiting: int = 0
    """Documents that were still to be read or embedded when no answer was found."""
    whole: str = ""
    """The question of a follow-up with what it leaves to those before it; empty where none came before."""

    @property
    def outcome(self) -> Outcome:
        if self.status != "no_evidence":
            return "answered"
        return "nearest" if self.nearest else "nothing"


@dataclass(frozen=True, slots=True)
class SentenceReady:
    """A sentence whose support has been checked; `text` is as the answer shows it, with its marks."""

    sentence: Sentence
    text: str


@dataclass(frozen=True, slots=True)
class CitationsReady:
    """The citations of a streamed answer, sent after its last sentence."""

    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The whole answer: the last event."""

    answer: Answer


AnswerEvent = SentenceReady | CitationsReady | AnswerReady


Status = Literal["VERIFIED", "LIKELY", "UNVERIFIED"]
Confidence = Literal["high", "medium", "low"]
Stance = Literal["supported", "refuted", "mixed", "unknown"]

CONFIDENCE: dict[Status, Confidence] = {"VERIFIED": "high", "LIKELY": "medium", "UNVERIFIED": "low"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that bears on a claim, and exactly where it stands: `document.text[start:end] == text`."""

    text: str
    source: str
    """The origin that the document names, or its address where it names none."""
    relevance: float
    """Score of the search that found its passage."""
    stance: Stance
    support: float
    """The checker's probability that it says the claim, from 0 to 1."""
    refutation: float
    """The checker's probability that it says the opposite, from 0 to 1."""
    failed: tuple[str, ...]
    """Objections of the explicit checks."""
    document_id: str
    chunk_id: str
    title: str
    uri: str
    page: int | None
    section: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """One of the statements that a compound claim makes, with a verdict of its own."""

    text: str
    status: Status
    stance: Stance
    support: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim; a compound claim gets the verdict of its weakest part."""

    claim: str
    status: Status
    stance: Stance
    support: float
    evidence: tuple[Evidence, ...]
    parts: tuple[ClaimPart, ...]
    sources: int
    """The number of independent sources that support it: copies of one text count once."""
    checker: str
    """The judge of the sentences: `checks`, or the name of the entailment model or LLM."""
    degraded: tuple[str, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return CONFIDENCE[self.status]


ClaimOutcome = Literal["confirmed", "refuted", "open"]
"""The sources support it; a source says otherwise; they disagree, or do not settle it."""
CLAIM_OUTCOMES: tuple[ClaimOutcome, ...] = ("confirmed", "refuted", "open")


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A sentence of a text, where it stands in it, and the verdict on it."""

    start: int
    end: int
    line: int
    """The line that it begins in, from 1."""
    page: int | None
    """The page that it begins on, where the text has pages."""
    verdict: Verdict

    @property
    def outcome(self) -> ClaimOutcome:
        """Return in one word what the sources make of it."""
        if self.verdict.stance == "refuted":
            return "refuted"
        is_confirmed = self.verdict.stance == "supported" and self.verdict.status != "UNVERIFIED"
        return "confirmed" if is_confirmed else "open"


@dataclass(frozen=True, slots=True)
class CheckedText:
    """The verdicts on the sentences of a text, in its order."""

    claims: tuple[CheckedClaim, ...]
    skipped: int
    """The number of sentences that claim nothing: questions, headings, code."""
    unchecked: int
    """The number of sentences that claim something and were left: more than were asked for, or too long."""

    @property
    def outcomes(self) -> dict[ClaimOutcome, int]:
        """Return how many sentences have each outcome."""
        found = [claim.outcome for claim in self.claims]
        return {outcome: found.count(outcome) for outcome in CLAIM_OUTCOMES}

    @property
    def degraded(self) -> tuple[str, ...]:
        """Return what could not be done for some of the sentences, each once."""
        return tuple(dict.fromkeys(note for claim in self.claims for note in claim.verdict.degraded))


Depth = Literal["quick", "medium", "deep"]
DEPTHS: Mapping[Depth, int] = {"quick": 5, "medium": 15, "deep": 30}
"""The number of passages that each depth keeps, and asks of every search."""
MOST_ITERATIONS = 5
Stopped = Literal["sufficient", "nothing_new", "iterations", "out_of_time"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A passage about the topic, how near it is to it, and the queries that found it."""

    hit: Hit
    relevance: float
    """Against the topic itself, from 0 to 1, whichever query found it."""
    queries: tuple[str, ...]
    about: bool
    """True when it is surely about the topic; the others only fill up the number that was asked for."""

    @property
    def source(self) -> str:
        """Return the origin that its document names, or else its address."""
        return source_of(self.hit)


@dataclass(frozen=True, slots=True)
class Round:
    """One wave of sub-queries that ran side by side, and what it added."""

    queries: tuple[str, ...]
    found: int
    new: int
    """Passages about the topic that no earlier query had found."""


@dataclass(frozen=True, slots=True)
class Research:
    """Findings, best first, and why the search for more ended."""

    topic: str
    findings: tuple[Finding, ...]
    queries: tuple[str, ...]
    """Every search that was made, the topic itself first."""
    rounds: tuple[Round, ...]
    uncovered: tuple[str, ...]
    """Sub-queries for which nothing about the topic was found."""
    stopped: Stopped
    took_ms: float
    degraded: tuple[str, ...] = ()

    @property
    def by_source(self) -> Mapping[str, tuple[Finding, ...]]:
        """The findings under their sources; the source of the best finding comes first."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.source, []).append(finding)
        return {source: tuple(found) for source, found in groups.items()}


def source_of(hit: Hit) -> str:
    """Return the origin that a passage's document names, or else its address."""
    return str(hit.metadata.get("source") or hit.uri)


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
    """Its place now, or its last place when it is no longer there."""
    end: int


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of a receipt; `reason` says why it does not hold, and is empty when it does."""

    text: str
    holds: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ReceiptReport:
    """The state of each part of an answer's receipt today."""

    question: str
    moment: str
    """When the answer was given."""
    tampering: tuple[str, ...]
    """Signs that the receipt is not as it was made; empty when it is."""
    citations: tuple[CheckedCitation, ...]
    sentences: tuple[CheckedSentence, ...]
    differences: tuple[str, ...] = ()
    """Facts that the receipt names differently than they are now: titles, addresses, sections, pages, marks;
    and open parts and missing names that its question does not have."""
    unanswered: tuple[str, ...] = ()
    """The parts of the question that the answer left open when it was given."""
    answered: bool = True
    """False when its quotes came near the question and were no answer, or when there was none."""

    @property
    def intact(self) -> bool:
        """Return whether the receipt is unchanged."""
        return not self.tampering

    @property
    def holds(self) -> bool:
        """Return whether the answer still holds: the receipt is intact, every sentence stands, nothing is renamed."""
        return self.intact and not self.differences and all(sentence.holds for sentence in self.sentences)

"""Objections of the checks to a sentence as evidence: each a kind with its detail, and the words for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto


class ObjectionKind(Enum):
    """The reasons why a sentence may not bear out a claim."""

    OTHER_NUMBER = auto()
    OTHER_DATE = auto()
    NUMBER_OF_ANOTHER = auto()
    DENIED = auto()
    EXCEPTION_DENIED = auto()
    OPPOSITE = auto()
    TURNED_ROUND = auto()

    NOT_OF_ALL = auto()
    HEDGED = auto()
    LIMITED = auto()
    NAME_MISSING = auto()
    OPPOSITE_WORDS = auto()
    NUMBER_MISSING = auto()
    DATE_MISSING = auto()

    NOT_A_FACT = auto()
    UNREAL = auto()
    CONDITIONAL = auto()
    TAKEN_BACK = auto()
    WITHOUT_LIMIT = auto()
    ONLY_OF_ANOTHER = auto()
    OTHER_TIME = auto()
    TOO_MANY_DATES = auto()
    OF_ANOTHER = auto()
    OF_SOMETHING_ELSE = auto()
    LEFT_OUT = auto()
    NO_CHANGE = auto()
    ADDED_WORDS = auto()
    ADDED_CLAUSE = auto()
    OTHER_WORD = auto()
    OTHER_CAUSE = auto()
    OTHER_ORDER = auto()


_TEXTS = {
    ObjectionKind.OTHER_NUMBER: "it says another number",
    ObjectionKind.OTHER_DATE: "it says another date",
    ObjectionKind.NUMBER_OF_ANOTHER: "the source gives this number for something else",
    ObjectionKind.DENIED: "one says that this is so, the other that it is not",
    ObjectionKind.EXCEPTION_DENIED: "the source says that this is an exception",
    ObjectionKind.OPPOSITE: "it says the opposite",
    ObjectionKind.TURNED_ROUND: "it names the same things the other way round",
    ObjectionKind.NOT_OF_ALL: "the source does not say this about all of them",
    ObjectionKind.HEDGED: "it says only that it may be so",
    ObjectionKind.LIMITED: "the source says this only within a limit",
    ObjectionKind.NAME_MISSING: "it does not name {detail}",
    ObjectionKind.OPPOSITE_WORDS: "the source says this in opposite words",
    ObjectionKind.NUMBER_MISSING: "it does not give that number",
    ObjectionKind.DATE_MISSING: "it does not give that date",
    ObjectionKind.NOT_A_FACT: "it does not state this as a fact",
    ObjectionKind.UNREAL: "it says what would have been",
    ObjectionKind.CONDITIONAL: "the source says this only under a condition",
    ObjectionKind.TAKEN_BACK: "the source says this only with “{detail}”",
    ObjectionKind.WITHOUT_LIMIT: "the source says this without such a limit",
    ObjectionKind.ONLY_OF_ANOTHER: "the source says this only about something else",
    ObjectionKind.OTHER_TIME: "the source does not say this about that time",
    ObjectionKind.TOO_MANY_DATES: "it has more dates than are read",
    ObjectionKind.OF_ANOTHER: "the source says this about another person or thing",
    ObjectionKind.OF_SOMETHING_ELSE: "the source says this about something else",
    ObjectionKind.LEFT_OUT: "the source makes an exception here",
    ObjectionKind.NO_CHANGE: "the source does not say that anything rose, fell or changed",
    ObjectionKind.ADDED_WORDS: "the source does not say all of this",
    ObjectionKind.ADDED_CLAUSE: "the source does not say one part of this",
    ObjectionKind.OTHER_WORD: "it has another word in one place",
    ObjectionKind.OTHER_CAUSE: "it does not give this cause",
    ObjectionKind.OTHER_ORDER: "it gives another order of events",
}


OTHER_FIGURE = frozenset((ObjectionKind.OTHER_NUMBER, ObjectionKind.OTHER_DATE))


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason why a sentence may not bear out a claim, with the word that it is about where there is one."""

    kind: ObjectionKind
    detail: str = ""

    @property
    def text(self) -> str:
        """Return the objection in words. Logic looks at `kind`: the detail is the user's own text."""
        return _TEXTS[self.kind].replace("{detail}", self.detail)


@dataclass(frozen=True, slots=True)
class Rival:
    """The words of a claim, and those that a sentence has in their place."""

    claimed: str
    stated: str
    is_term: bool = False
    """True when the sentence says it of another term, which the one of the claim may share."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The objections of the checks to one sentence, read beside one claim."""

    conflicts: tuple[Objection, ...]
    """Points on which the two cannot both be true if they speak of the same thing."""
    gaps: tuple[Objection, ...]
    """Things that the claim says and the sentence does not."""
    voids: tuple[Objection, ...]
    """Reasons why the sentence does not state the claim at all, despite common words."""
    turned: bool
    """One speaks of more where the other speaks of less."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return all objections in words."""
        return tuple(objection.text for objection in (*self.conflicts, *self.voids, *self.gaps))


NO_FINDINGS = Findings((), (), (), turned=False)


def has_kind(objections: Iterable[Objection], kinds: Collection[ObjectionKind]) -> bool:
    """Return whether one of the objections is of one of the kinds."""
    return any(objection.kind in kinds for objection in objections)


def keep_kinds(objections: Iterable[Objection], kinds: Collection[ObjectionKind]) -> tuple[Objection, ...]:
    """Return the objections of these kinds."""
    return tuple(objection for objection in objections if objection.kind in kinds)


def drop_kind(objections: Iterable[Objection], kind: ObjectionKind) -> tuple[Objection, ...]:
    """Return the objections of all other kinds."""
    return drop_kinds(objections, {kind})


def drop_kinds(objections: Iterable[Objection], kinds: Collection[ObjectionKind]) -> tuple[Objection, ...]:
    """Return the objections that are of none of the kinds."""
    return tuple(objection for objection in objections if objection.kind not in kinds)

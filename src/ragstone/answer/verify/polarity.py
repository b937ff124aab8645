"""What a text affirms and denies: negations with their scope, comparisons, quantifiers and hedges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.answer.verify.opposites import with_opposites
from ragstone.answer.verify.restate import figures
from ragstone.core.analyzer import analyze

Extent = Literal["all", "most", "some", "none"]

_CUE = re.compile(
    r"\b(?:no(?= longer)|not(?! only)|no(?! (?:more|less|fewer|later|earlier|\d|\.))|never|none|neither|nor|nothing"
    r"|nobody|nowhere|refuse[sd]?(?= to)|decline[sd]?(?= to)|without|unless|cannot|unable|lack(?:s|ed|ing)?"
    r"|fail(?:s|ed|ure)?(?= to\b)|absence|absent|devoid|independent(?:ly)?"
    r"|\w{1,20}n['’]t)\b",
    re.I,
)
_BREAK = re.compile(r"[.,;:!?]\s|\b(?:but|while|whereas|because|although|though|if|when)\b", re.I)
_SCOPE = 3
_ADJACENT = 14
"""Characters between two cues that cancel each other: "never fails"."""
_HEDGE = re.compile(
    r"\b(?:may|might|could|possibly|perhaps|probably|maybe|likely|unlikely|suggest(?:s|ed|ing)?|appear(?:s|ed)? to"
    r"|seem(?:s|ed)? to|hypothesi[sz]e[sd]?|unclear|uncertain|unknown|controversial|whether|is thought to"
    r"|are thought to|expected to|is said to|it is believed|rumou?r(?:s|ed)?|alleged(?:ly)?|reportedly)\b",
    re.I,
)
_EXTENTS: tuple[tuple[Extent, re.Pattern[str]], ...] = (
    ("none", re.compile(r"\b(?:no|none|never|nobody|neither)\b", re.I)),
    (
        "all",
        re.compile(r"\b(?:all|every|each|always|everyone|everything|any|only|entirely|exclusively)\b", re.I),
    ),
    ("most", re.compile(r"\b(?:most|mostly|majority|usually|generally|often)\b", re.I)),
    ("some", re.compile(r"\b(?:some|sometimes|several|few|many|occasionally|partly|rarely|seldom)\b", re.I)),
)
_WEAKER: dict[Extent, frozenset[Extent]] = {
    "all": frozenset({"most", "some"}),
    "most": frozenset({"some"}),
    "some": frozenset(),
    "none": frozenset({"some", "most"}),
}
_THAN = re.compile(
    r"(?P<more>.{1,300})\b(?P<word>\w{2,20}er|(?:more|less) \w{1,20})\s(?:\w{1,20}\s){0,3}than\b"
    r"(?P<less>.{1,300})",
    re.I | re.S,
)


@dataclass(frozen=True, slots=True)
class Denial:
    """A negation and the terms it denies, nearest first."""

    scope: tuple[str, ...]


def denials(text: str) -> list[Denial]:
    """The negations of a text; two that cancel each other are none."""
    cues = list(_CUE.finditer(text))
    plain = _without_figures(text) if cues else text
    found: list[Denial] = []
    place = 0
    while place < len(cues):
        cue = cues[place]
        following = cues[place + 1] if place + 1 < len(cues) else None
        if following and 0 <= following.start() - cue.end() <= _ADJACENT and _cancels(text, cue, following):
            place += 2
            continue
        found.append(Denial(_scope(plain, cue) or _scope(text, cue)))
        place += 1
    return found


def _without_figures(text: str) -> str:
    """The text with blanks for figures and units: who denies a weight denies it in any unit."""
    for start, end, _ in figures(text):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _cancels(text: str, cue: re.Match[str], following: re.Match[str]) -> bool:
    between = text[cue.end() : following.start()]
    return not _BREAK.search(between) and cue.group().lower() not in ("no", "neither", "nor")


def _scope(text: str, cue: re.Match[str]) -> tuple[str, ...]:
    rest = text[cue.end() : cue.end() + 200]
    stop = _BREAK.search(rest)
    terms = analyze(rest[: stop.start()] if stop else rest)[:_SCOPE] if rest.strip(" .,;:!?") else []
    return tuple(terms) or tuple(reversed(analyze(text[max(0, cue.start() - 100) : cue.start()])[-2:]))


def denial_conflicts(claim: str, source: str) -> bool:
    """Whether one of the two denies what the other says without denying it."""
    mine, theirs = denials(claim), denials(source)
    there, here = with_opposites(set(analyze(source))), with_opposites(set(analyze(claim)))
    return _unmatched(mine, theirs, there) or _unmatched(theirs, mine, here)


def _unmatched(one: Iterable[Denial], other: Sequence[Denial], terms: set[str]) -> bool:
    """Whether a denial concerns terms that the other text has, and finds no denial of its own there."""
    free = list(other)
    for denial in one:
        partner = next((theirs for theirs in free if set(denial.scope) & set(theirs.scope)), None)
        if partner is not None:
            free.remove(partner)
        elif 2 * len(terms.intersection(denial.scope)) >= max(len(denial.scope), 1):
            return True
    return False


def swapped(claim: str, source: str) -> bool:
    """Whether two comparisons by the same word name their sides the other way round."""
    mine, theirs = _THAN.match(claim), _THAN.match(source)
    if not mine or not theirs or mine["word"].lower() != theirs["word"].lower():
        return False
    more, less = set(analyze(mine["more"])), set(analyze(mine["less"]))
    above, below = set(analyze(theirs["more"])), set(analyze(theirs["less"]))
    straight = len((more - less) & (above - below)) + len((less - more) & (below - above))
    crossed = len((more - less) & (below - above)) + len((less - more) & (above - below))
    return crossed > straight


def extent(text: str) -> Extent | None:
    """How much of its subject a text speaks of, where it says so."""
    return next((name for name, pattern in _EXTENTS if pattern.search(text)), None)


def overreaches(claim: str, source: str) -> bool:
    """Whether the claim says all where the source says some or does not say how many."""
    claimed, stated = extent(claim), extent(source)
    if claimed is None or claimed in ("none", "some"):
        return False
    return stated is None or stated in _WEAKER[claimed]


def hedged(text: str) -> bool:
    """Whether a text says that something may be so rather than that it is."""
    return _HEDGE.search(text) is not None

"""Words of a sentence that belong together: a figure and its subject, a claim and one clause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from ragstone.answer.verify.fit import HANGS, SETTING
from ragstone.answer.verify.split import split_claim
from ragstone.language.analyzer import STOP_WORDS, analyze
from ragstone.language.dates import Moment, date_spans
from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.measurements import quantity_spans
from ragstone.language.quantities import Quantity

Figure = Quantity | Moment
_JOINT = re.compile(
    r"[.,;:]\s|\s(?:and|but|while|whereas|after|before|when|then|or|although|though|against|versus)\s", re.I
)
_PRONOUN = re.compile(r"\b(?:it|they|he|she|this|these|its|their|them|that|which|who)\b", re.I)


@dataclass(frozen=True, slots=True)
class FigureSegment:
    """A piece of a sentence around its figures, with the words it leaves out because they were said before."""

    figures: tuple[tuple[Figure, frozenset[str]], ...]
    """Each with its own digits and words."""
    terms: frozenset[str]
    said: frozenset[str]
    """Terms it takes over from the segment before it."""


def split_segments(text: str) -> list[FigureSegment]:
    """Return the pieces of a text that have figures; words without one belong to the next figure."""
    spans: list[tuple[tuple[int, int], Figure]] = sorted(
        [*date_spans(text), *quantity_spans(text)], key=lambda item: item[0]
    )
    cuts = [joint.end() for joint in _JOINT.finditer(text)]
    found: list[FigureSegment] = []
    before: tuple[str, str] | None = None
    start = 0
    for end in [*cuts, len(text)]:
        inside = [(span, figure) for span, figure in spans if start <= span[0] < end]
        if not inside or (end != len(text) and not any(span[0] >= end for span, _ in spans)):
            continue
        head, tail = text[start : inside[-1][0][0]], text[inside[-1][0][1] : end]
        # "at 5:30 on working days and at 7:00 on Sundays": a day behind a time is what stands behind it.
        said = _take_over(head, text[inside[0][0][1] : end], before)
        figures = tuple((figure, frozenset(analyze(text[slice(*span)]))) for span, figure in inside)
        found.append(FigureSegment(figures, frozenset(analyze(text[start:end])), said))
        before = (head, tail) if head.strip() else ((before or ("", ""))[0], tail)
        start = end
    return found


def _take_over(head: str, tail: str, before: tuple[str, str] | None) -> frozenset[str]:
    if before is None:
        return frozenset()
    verb = first_verb(tokenize(before[0]))
    verbs = set(analyze(verb.token.word)) if verb else set()
    # A verb that is not known stands last before its figure: "staff get 25".
    verbs = verbs or set(analyze(before[0])[-1:])
    subject = {term for term in analyze(before[0]) if not term[0].isdigit()} - verbs
    said: set[str] = set()
    words = tokenize(head + tail)
    first = first_verb(words, shared=True)
    begins = first is not None and first.sure
    if not begins and not first_verb(words):
        said |= verbs
    if not head.strip() or _PRONOUN.search(head) or begins or HANGS.match(head):
        said |= subject | verbs if not head.strip() else subject
    elif setting := SETTING.match(before[0]):
        said |= set(analyze(setting.group()))
    if len(tail.split()) <= 1:
        said |= set(analyze(before[1]))
    return frozenset(said)


def is_misbound(claim: str, sentence: str) -> bool:
    """Return whether the sentence states a figure of the claim of something else, and another figure of this."""
    stated = split_segments(sentence)
    if len(stated) < 2:
        return False
    return any(
        _is_bound_elsewhere(figure, (piece.terms | piece.said) - digits, stated)
        for piece in split_segments(claim)
        for figure, digits in piece.figures
    )


def _is_bound_elsewhere(figure: Figure, terms: frozenset[str], stated: Sequence[FigureSegment]) -> bool:
    fitting = [piece for piece in stated if any(_is_related(figure, other, "fits") for other, _ in piece.figures)]
    rivals = [
        piece
        for piece in stated
        if piece not in fitting and any(_is_related(figure, other, "rivals") for other, _ in piece.figures)
    ]
    if not fitting or not rivals:
        return False
    return all(any(_is_closer(terms, rival, piece) for rival in rivals) for piece in fitting)


def _is_closer(terms: frozenset[str], rival: FigureSegment, piece: FigureSegment) -> bool:
    """Return whether at least as many words of the claim stand only with the rival figure as only with its own."""
    own = terms & (piece.terms - rival.terms - rival.said)
    others = terms & (rival.terms - piece.terms - piece.said)
    return len(others) > 0 and len(others) >= len(own)


def _is_related(figure: Figure, other: Figure, how: str) -> bool:
    if isinstance(figure, Quantity) and isinstance(other, Quantity):
        if how == "fits":
            return figure.fits(other)
        alike = figure.dimension == other.dimension or not other.dimension or figure.rivals(other)
        return alike and figure.is_period == other.is_period and not figure.fits(other)
    if isinstance(figure, Moment) and isinstance(other, Moment):
        return figure.fits(other) if how == "fits" else figure.rivals(other)
    return False


def is_scattered(claim: str, sentence: str, names: Sequence[str], known: Set[str]) -> bool:
    """Return whether a claim takes its subject, its verb or a name from another clause than most of its words."""
    parts = split_claim(sentence)
    wanted = set(analyze(claim)) & set(analyze(sentence))
    shared = [len(wanted.intersection(analyze(part))) for part in parts]
    best = [part for part, count in zip(parts, shared, strict=True) if count == max(shared)]
    if len(parts) < 2 or not all(wanted.difference(analyze(part), known) for part in best):
        return False
    head = _head(claim)
    named = {term for name in names for term in analyze(name)}
    return all(
        bool(missing & (named | head)) and not _leaves_out_subject(part)
        for part in best
        if (missing := wanted.difference(analyze(part), known))
    )


def _leaves_out_subject(part: str) -> bool:
    """Return whether a clause speaks of what was named before: by a pronoun, or by beginning with its verb."""
    verb = first_verb(tokenize(part), shared=True)
    return _PRONOUN.search(part) is not None or (verb is not None and verb.place == 0)


def _head(claim: str) -> set[str]:
    """Return the terms of a claim's subject and verb; what is said with "is" belongs to them."""
    verb = first_verb(tokenize(claim))
    if verb is None:
        return set()
    rest = analyze(claim[verb.token.end :])[:1] if verb.token.word in STOP_WORDS else []
    return {*analyze(claim[: verb.token.end]), *rest}


_WORD = re.compile(r"[^\W_][\w'’.-]{0,60}")
_PIVOTS = frozenset(("to", "than", "before", "after", "when", "because", "if", "by"))
"""Function words whose two sides are not the same."""
_MUTUAL = frozenset(
    analyze("meet met marry married border equal resemble differ adjoin neighbour share connect join link")
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s(?:[\w-]{1,20}\s){1,6}by\b", re.I)
_FULL_NAME = re.compile(r"\b[A-Z][\w'’-]{1,30}(?: [A-Z][\w'’-]{1,30}){1,4}")
MOST_WORDS = 60
"""Words of a text whose order is looked at."""


def has_reversed_roles(claim: str, source: str) -> bool:
    """Return whether two words that stand on either side of a third have changed sides."""
    mine, theirs = _places(claim), _places(source)
    if bool(_PASSIVE.search(claim)) != bool(_PASSIVE.search(source)):
        return False
    shared = [word for word in mine if word in theirs]
    movable = [word for word in shared if word not in _PIVOTS and not word[0].isdigit()]
    for pivot in shared:
        if pivot in _MUTUAL or pivot[0].isdigit():
            continue
        moved_back = any(mine[word] > mine[pivot] and theirs[word] < theirs[pivot] for word in movable)
        moved_on = any(mine[word] < mine[pivot] and theirs[word] > theirs[pivot] for word in movable)
        if moved_back and moved_on:
            return True
    return False


def _places(text: str) -> dict[str, int]:
    """Return where each term stands that a text has once."""
    terms: list[str] = []
    for word in _WORD.findall(text)[:MOST_WORDS]:
        folded = word.lower().strip(".")
        if folded in _PIVOTS:
            terms.append(folded)
        elif folded not in STOP_WORDS:
            terms += analyze(word)[:1]
    counts = Counter(terms)
    return {term: place for place, term in enumerate(terms) if counts[term] == 1}


def has_mixed_names(claim: str, source: str) -> bool:
    """Return whether the claim gives a name of the source another partner: Maria Holt where it says Maria Lind."""
    known = [frozenset(run.split()) for run in _FULL_NAME.findall(source)]
    everything = frozenset[str]().union(*known)
    words = set(_WORD.findall(source))
    return any(
        first in everything
        and (second in everything or second not in words)
        and not any({first, second} <= run for run in known)
        for run in _FULL_NAME.findall(claim)
        for first, second in pairwise(run.split())
        if first.lower() not in STOP_WORDS
    )

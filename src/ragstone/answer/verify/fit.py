"""Names and figures of a statement that stand with other words in its sources.

All words of "Reyes declared an emergency" may be in a passage that says that Mendes did and that Reyes made a call. So
each name and each figure is looked up with the words around it: where another of its kind stands with them in the
sources, the statement speaks of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.answer.verify.split import split_claim
from ragstone.language.dates import Moment
from ragstone.language.grammar import (
    BE,
    HAVE,
    LINKS,
    MODALS,
    OWNING,
    PREPOSITIONS,
    QUANTIFYING,
    SUBJECTS,
    is_past_form,
    is_verb_form,
)
from ragstone.language.negation import find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.synonyms import AlikeWords, are_alike
from ragstone.language.vocabulary import Word, content_words, is_measured, read_vocabulary

Figure = Quantity | Moment
_POINTS_BACK = re.compile(
    r"\b(?:i|my|we|our|he|she|it|they|his|her|its|their|him|them|who|which|whose|this|these|those|both|(?:the"
    r"|that) (?:company|firm"
    r"|group|team|man|woman|couple|pair|agency|author|artist|writer|president|captain|king|queen|city|town|ship|project"
    r"|study|trial|court|church|school|university|party|band|club|team|former|latter))\b",
    re.I,
)
_BEGINS_ANEW = re.compile(r"\W*(?:it|its|they|their|he|his|she|her)\b", re.I)
_INSIDE_NAME = re.compile(r"\s(?:(?:&|de|van|von|der|la|le|du|al|bin)\s){0,2}|-")
_PIECE_END = re.compile(
    r"[.,;:()](?=\s|$)|\s(?:and|but|while|whereas|or|against|versus|than|compared with|compared to|after|before)\s"
)
HANGS = re.compile(r"\s*(?:with|in|at|by|on)\s", re.I)
SETTING = re.compile(r"\W{0,3}(?:for|in|on|with|by|at)\s[^,.;:]{1,60},", re.I)
"""Words before a sentence that hold for all of it: "For RSA keys, the minimum is 1024 and the default is 3072"."""
_NEXT = re.compile(r"(?P<mark>[^\w\s+-])|(?P<word>[^\W\d_][\w'’-]{0,40})")
_LEADS = re.compile(
    r"\b(?P<word>[a-z]{4,30})\s(?:(?:up\s)?(?:in|on|to|until|since|by|at|of|from)\s)(?:[a-z]{2,10}\s){0,1}$"
)
_NOT_COUNTED = PREPOSITIONS | BE | HAVE | MODALS | LINKS | OWNING | QUANTIFYING | SUBJECTS
_MOST_APART = 3
_MOST_OWN, _MOST_BOUND = 12, 120
"""Figures of a statement and of its sources that are looked at with the words they are bound to."""
_SUBJECT_WITHIN = 20
"""Characters at the start of a clause within which its subject begins."""
_LIMITS = frozenset(("at most", "at least", "over", "under"))
_EXACT = frozenset(("is", "about"))
_RANGE = ("at least", "at most")
_SAME_LIMITS = {("over", "at least"), ("at least", "over"), ("under", "at most"), ("at most", "under")}
_ENOUGH = 0.5
"""Share of the words around a name that must stand with another for the statement to be about that one."""

_NEAR = 0.75
"""Share of what the nearest sentence has of a clause from which another is near as well."""
_MOST_BACK = 4
"""Sentences that one may point back over."""


@dataclass(frozen=True, slots=True)
class Name:
    """Neighbouring words of one name."""

    words: frozenset[str]
    start: int
    end: int

    def meets(self, other: Name) -> bool:
        """Return whether both may be names of the same: Pell is Edwin Pell."""
        return not self.words.isdisjoint(other.words)


@dataclass(frozen=True)
class Clause:
    """A clause, the words that tell what it says, its names and its figures."""

    text: str
    plain: tuple[str, ...]
    names: tuple[Name, ...]
    figures: tuple[Figure, ...]
    points_back: bool

    @cached_property
    def words(self) -> AlikeWords:
        return AlikeWords(self.plain)


@lru_cache(512)
def read_clauses(sentence: str) -> tuple[Clause, ...]:
    """Return the clauses of a sentence, each with what it leaves out because it was said before."""
    return tuple(read_sentence(part) for part in split_claim(sentence))


@lru_cache(512)
def _read_statements(sentence: str) -> tuple[Clause, ...]:
    """Return the clauses of a sentence where each has a subject of its own by name, else the sentence as one."""
    clauses = read_clauses(sentence)
    begin = [clause.names[0] for clause in clauses if clause.names and clause.names[0].start <= _SUBJECT_WITHIN]
    own = len(begin) == len(clauses) and not any(one.meets(other) for one, other in pairwise(begin))
    return clauses if own else (read_sentence(sentence),)


@lru_cache(512)
def read_sentence(text: str) -> Clause:
    """Return a sentence, or a part of one, as a single clause."""
    words = content_words(text)
    plain = tuple(word.folded for word in words if not word.is_name)
    figures = tuple(figure for _, _, figure in find_figures(text))
    return Clause(text, plain, tuple(join_names(text, words)), figures, _POINTS_BACK.search(text) is not None)


def join_names(text: str, words: Sequence[Word]) -> list[Name]:
    """Return the names of a text, each with all of its words."""
    found: list[Name] = []
    for word in words:
        if not word.is_name:
            continue
        before = found[-1] if found else None
        if before and _INSIDE_NAME.fullmatch(text, before.end, word.start):
            found[-1] = Name(before.words | {word.folded}, before.start, word.end)
        else:
            found.append(Name(frozenset({word.folded}), word.start, word.end))
    return found


def find_misfits(statement: str, sentences: Sequence[str]) -> list[Objection]:
    """Return the names and figures of a statement that its sources state of something else."""
    sources = [clause for sentence in sentences for clause in _read_statements(sentence)]
    found = []
    for clause in read_clauses(statement):
        # Counted once for a clause: a sentence may have a hundred figures, and so may its sources.
        counts = [_count_told(clause, source) for source in sources]
        if any(_is_of_another(name, clause, sources, counts) for name in clause.names):
            found.append(Objection(ObjectionKind.OF_ANOTHER))
        counts = [count + _count_names(clause, source) for source, count in zip(sources, counts, strict=True)]
        misplaced = any(_is_misplaced(figure, clause, sources, counts) for figure in _drop_lower_ends(clause.figures))
        if misplaced or _is_bound_otherwise(clause.text, sentences) or _is_of_another_time(clause, sentences):
            found.append(Objection(ObjectionKind.NUMBER_OF_ANOTHER))
    return list(dict.fromkeys(found))


def _drop_lower_ends(figures: Sequence[Figure]) -> list[Figure]:
    """Return figures without the first of a range: what is counted stands behind the second ("80 to 210 people")."""
    dropped = {
        one
        for one, other in pairwise(figures)
        if isinstance(one, Quantity) and isinstance(other, Quantity) and (one.bound, other.bound) == _RANGE
    }
    return [figure for figure in dict.fromkeys(figures) if figure not in dropped]


def _is_of_another(name: Name, clause: Clause, sources: Sequence[Clause], counts: Sequence[int]) -> bool:
    """Return whether what a clause says of a name is said of another name, and less of it of this one."""
    others = [other for other in clause.names if not other.meets(name)]
    with_it, without = 0, 0
    seen = False
    for source, count in zip(sources, counts, strict=True):
        holds = any(name.meets(other) for other in source.names)
        seen = seen or holds
        if holds or (source.points_back and seen):
            with_it = max(with_it, count)
        elif any(not any(rival.meets(mine) for mine in (name, *others)) for rival in source.names):
            without = max(without, count)
    told = len(clause.plain) + len(clause.figures)
    return without > with_it and without >= _ENOUGH * told


def count_shared(mine: Clause, theirs: Clause) -> int:
    """Return how many words, names and figures of a clause another has."""
    return _count_told(mine, theirs) + _count_names(mine, theirs)


def _count_told(mine: Clause, theirs: Clause) -> int:
    return _count_words(mine, theirs) + _count_figures(mine.text, theirs.text)


@lru_cache(2048)
def _count_figures(mine: str, theirs: str) -> int:
    # A text may repeat a figure a thousand times: each is compared once.
    told = dict.fromkeys(read_sentence(theirs).figures)
    counts = Counter(read_sentence(mine).figures)
    return sum(times for figure, times in counts.items() if any(is_same(figure, other) for other in told))


def _count_names(mine: Clause, theirs: Clause) -> int:
    return sum(any(name.meets(other) for other in theirs.names) for name in mine.names)


def _count_words(mine: Clause, theirs: Clause) -> int:
    return sum(map(theirs.words.has, mine.plain))


def is_same(mine: Figure, theirs: Figure) -> bool:
    """Return whether a source that states `theirs` states `mine`; what numbers count is looked at elsewhere."""
    if isinstance(mine, Moment) or isinstance(theirs, Moment):
        return isinstance(mine, Moment) and isinstance(theirs, Moment) and mine.fits(theirs)
    if mine.moves_otherwise(theirs):
        return False
    if mine.fits(theirs):
        # A limit of 32 is within 64, and yet another limit.
        return mine.bound not in _LIMITS or mine.written == theirs.written or mine.size != theirs.size
    if (mine.bound, theirs.bound) in _SAME_LIMITS and mine.value == theirs.value:
        return True
    if is_measured(mine) or is_measured(theirs):
        return False
    may_be_rounded = mine.bound == "about" and theirs.bound in _EXACT
    return (may_be_rounded or mine.written == theirs.written) and mine.bare().fits(theirs.bare())


def _is_misplaced(figure: Figure, clause: Clause, sources: Sequence[Clause], counts: Sequence[int]) -> bool:
    """Return whether the words around a figure stand around another one of its kind in the sources."""
    around = next(piece for piece in read_pieces(clause.text) if figure in piece.figures)
    fitting, others = [], []
    for source, count in zip(sources, counts, strict=True):
        for piece in read_pieces(source.text):
            if any(is_same(figure, other) for other in piece.figures):
                fitting.append(piece)
            elif count == max(counts):
                others.append(piece)
    if not fitting:
        return False
    weights = around.weigh(figure)
    rivals = [piece for piece in others if _has_rival(piece, figure, around)]
    return all(any(_is_closer(weights, rival, piece) for rival in rivals) for piece in fitting)


def _has_rival(piece: Piece, figure: Figure, around: Piece) -> bool:
    """Return whether a piece has another figure of the same kind, which the statement does not tell as well."""
    return any(_is_rival(figure, other) and not _has_same(around.figures, other) for other in piece.figures)


@dataclass(frozen=True, slots=True)
class BoundFigure:
    """A figure, the words that it counts, and the word that leads to it: 1976 in "published in 1976"."""

    figure: Figure
    counted: tuple[str, ...]
    lead: str

    def counts(self, word: str) -> bool:
        return any(are_alike(word, other) for other in self.counted)


@lru_cache(512)
def read_bound_figures(text: str) -> tuple[BoundFigure, ...]:
    """Return the figures of a text with the words they are bound to."""
    found = []
    for start, end, figure in find_figures(text):
        written = len(figure.words.split(" ")[0]) if isinstance(figure, Quantity) else end - start
        lead = _LEADS.search(text, max(0, start - 60), start)
        found.append(BoundFigure(figure, _read_counted(text, start + written), lead["word"].lower() if lead else ""))
    return tuple(found)


def _read_counted(text: str, end: int) -> tuple[str, ...]:
    """Return the words behind a number that it counts, up to a verb or a preposition."""
    found: list[str] = []
    for match in islice(_NEXT.finditer(text, end, end + 80), 4):
        word = match.group().lower()
        if match["mark"] or word in _NOT_COUNTED or is_past_form(word) or word.endswith("ing"):
            break
        found.append(word)
    return tuple(found)


def _is_bound_otherwise(clause: str, sentences: Sequence[str]) -> bool:
    """Return whether a figure counts, or is led to by, words that the sources bind to another figure only."""
    told = [bound for sentence in sentences for bound in read_bound_figures(sentence)][:_MOST_BOUND]
    for mine in read_bound_figures(clause)[:_MOST_OWN]:
        same = [bound for bound in told if is_same(mine.figure, bound.figure)]
        rivals = [bound for bound in told if bound not in same and _is_rival(mine.figure, bound.figure)]
        if _counts_for_another(mine, same, rivals) or _leads_to_another(mine, same, rivals):
            return True
    return False


def _counts_for_another(mine: BoundFigure, same: Sequence[BoundFigure], rivals: Sequence[BoundFigure]) -> bool:
    if not mine.counted or not same or not isinstance(mine.figure, Quantity) or is_measured(mine.figure):
        return False
    head = mine.counted[-1]
    elsewhere = all(bound.counted and not bound.counts(head) for bound in same)
    return elsewhere and any(bound.counts(head) for bound in rivals)


def _leads_to_another(mine: BoundFigure, same: Sequence[BoundFigure], rivals: Sequence[BoundFigure]) -> bool:
    if not mine.lead or not same or not all(bound.lead for bound in same):
        return False
    elsewhere = not any(are_alike(mine.lead, bound.lead) for bound in same)
    return elsewhere and any(bound.lead and are_alike(mine.lead, bound.lead) for bound in rivals)


def _is_of_another_time(clause: Clause, sentences: Sequence[str]) -> bool:
    """Return whether the sentence that tells most of a clause lacks its date, and those with it tell little else."""
    dates = [figure for figure in clause.figures if isinstance(figure, Moment)]
    if not dates:
        return False
    read = [read_sentence(sentence) for sentence in sentences]
    counts = [_count_words(clause, one) + _count_names(clause, one) for one in read]
    most = max(counts, default=0)
    if most < _MOST_APART:
        return False
    best = counts.index(most)
    near = [best, *(n for n in (best - 1,) if n >= 0 and read[best].points_back)]
    return any(
        any(_has_date(one, date) for one in read)
        and not any(_has_date(one, date) for n, one in enumerate(read) if n in near or 2 * counts[n] >= most)
        for date in dates
    )


def _has_date(clause: Clause, date: Moment) -> bool:
    """Return whether a clause has a date; a lone year may be read as a number."""
    return _has_same(clause.figures, date) or any(
        isinstance(figure, Quantity) and figure.written == date.year for figure in clause.figures
    )


def _has_same(figures: Sequence[Figure], figure: Figure) -> bool:
    return any(is_same(other, figure) for other in figures)


def _is_rival(mine: Figure, theirs: Figure) -> bool:
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        alike = mine.dimension == theirs.dimension or not (is_measured(mine) and theirs.dimension)
        return mine.is_period == theirs.is_period and (alike or mine.rivals(theirs))
    return isinstance(mine, Moment) and isinstance(theirs, Moment) and mine.rivals(theirs)


@dataclass(frozen=True)
class Piece:
    """A part of a clause around one figure, and the words in it with their places."""

    figures: tuple[Figure, ...]
    places: tuple[int, ...]
    words: tuple[Word, ...]
    said: tuple[Word, ...]
    """Words of the part before it that it leaves out."""

    @cached_property
    def known(self) -> AlikeWords:
        return AlikeWords(word.folded for word in (*self.words, *self.said))

    def weigh(self, figure: Figure) -> dict[str, float]:
        """Return the words with their weights, which fall with the distance from a figure."""
        place = self.places[self.figures.index(figure)]
        near = sorted(self.words, key=lambda word: abs(word.start - place))
        return {word.folded: (1 + rank) ** -0.5 for rank, word in reversed(list(enumerate(near)))}


@lru_cache(512)
def read_pieces(text: str) -> tuple[Piece, ...]:
    """Return the parts of a clause between commas and "and" that have figures; words before a figure belong to it."""
    figures = find_figures(text)
    words = content_words(text)
    ends = [match.end() for match in _PIECE_END.finditer(text)]
    pieces: list[Piece] = []
    opening = SETTING.match(text)
    setting = [word for word in words if opening and word.start < opening.end()]
    head: list[Word] = []
    tail: list[Word] = []
    start = 0
    for end in [*ends, len(text) + 1]:
        inside = [(place, figure) for place, _, figure in figures if start <= place < end]
        more = any(place >= end for place, _, _ in figures)
        if not inside or (not more and end <= len(text)):
            continue
        own = [word for word in words if start <= word.start < end]
        over = [*setting, *(head if HANGS.match(text, start) else ())]
        head, tail = _take_over(text[start:end], own, [place for place, _ in inside], head, tail)
        said = tuple(word for word in (*over, *head, *tail) if word not in own)
        pieces.append(
            Piece(tuple(figure for _, figure in inside), tuple(place for place, _ in inside), tuple(own), said)
        )
        start = end
    return tuple(pieces)


def _take_over(
    text: str, words: Sequence[Word], places: Sequence[int], head: Sequence[Word], tail: Sequence[Word]
) -> tuple[list[Word], list[Word]]:
    """Return the words before and behind the figures of a piece, or those of the piece before that it leaves out."""
    before = [word for word in words if word.start < places[-1]]
    after = [word for word in words if word.start > places[-1]]
    if _POINTS_BACK.search(text):
        before = [*before, *(word for word in head if not is_verb_form(word.folded))]
    # What goes on about its subject is a clause of its own, and leaves nothing out behind its figure.
    goes_on = len(places) > 1 or _BEGINS_ANEW.match(text) is not None
    return before or list(head), after or ([] if goes_on else list(tail))


def _is_closer(weights: dict[str, float], rival: Piece, piece: Piece) -> bool:
    """Return whether more of the weight falls on words that stand only with the rival than only with the figure."""
    mine = sum(weight for word, weight in weights.items() if piece.known.has(word) and not rival.known.has(word))
    theirs = sum(weight for word, weight in weights.items() if rival.known.has(word) and not piece.known.has(word))
    return theirs > mine


def find_scattered(statement: str, sentences: Sequence[str]) -> list[Word]:
    """Return the words that stand neither in the sentences which say most of a statement nor in those they lean on."""
    read = [read_sentence(sentence) for sentence in sentences]
    kept: set[int] = set()
    for clause in {read_sentence(statement), *read_clauses(statement)}:
        for place in find_nearest_places(clause, read):
            kept.update(_find_context(place, read))
    around = read_vocabulary(" ".join(sentences[place] for place in sorted(kept)))
    everywhere = read_vocabulary(" ".join(sentences))
    return [word for word in content_words(statement) if not around.has(word) and everywhere.has_itself(word)]


def find_nearest_places(clause: Clause, read: Sequence[Clause]) -> list[int]:
    """Return the places of the sentences that share most words, names and figures with a clause."""
    counts = [count_shared(clause, sentence) for sentence in read]
    most = max(counts, default=0)
    return [place for place, count in enumerate(counts) if count and count >= _NEAR * most]


def _find_context(place: int, read: Sequence[Clause]) -> Iterator[int]:
    """Yield a place, the one before it, and those before that as long as a pronoun points back."""
    first = max(0, place - _MOST_BACK)
    for at in range(place, first - 1, -1):
        yield at
        if at < place and not read[at].points_back:
            return

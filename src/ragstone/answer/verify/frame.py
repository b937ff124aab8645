"""A statement that repeats a sentence but for a few words: what was put for what, put in, or made to change places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.language.grammar import is_verb_form, words_of
from ragstone.language.inflection import base_forms
from ragstone.language.negation import find_extents, find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.synonyms import AlikeWords, are_alike
from ragstone.language.vocabulary import GENERIC, Word, content_words, read_vocabulary

MOST_WORDS = 80
NEAR_VERBATIM = 0.7
"""Share of a statement's words in the order of the sentence from which it repeats the sentence."""
SAME_FRAME = 0.45
"""Share from which words that changed places have other roles: a looser paraphrase may put them anywhere."""
_WORD = re.compile(r"[^\W_](?:[\w'’]|[-.,/](?=\w)){0,60}|&(?=\s)")
_PASSIVE = re.compile(
    r"\b(?:\w{2,20}(?:ed|en|wn|t|ld|nd)|made|done|led|fed|won|sung|begun|overcome|read|run|struck|hung)"
    r"\s(?:[\w-]{1,20},?\s){0,10}?by\s(?!\d)",
    re.I,
)
_LEAD = re.compile(
    r"(?:if|when|whenever|because|since|as|after|before|although|though|while|once|in|at|on|during|for|by|with|to|under"
    r"|from|of)\b[^,]{3,160},\s",
    re.I,
)
BRACKETS = re.compile(r"\([^()]{0,300}\)")
_NEUTRAL = words_of(
    "be have use work write make mean stand give show list call name take contain hold denote represent serve come "
    "count cost last belong start begin get grant provide return let"
)
"""Verbs that say of a line without one no more than that its parts belong together."""
_JOINING = frozenset(("and", "or", "be", "result", "cause", "due", "because"))
"""Words whose two sides may change places."""
_MARGIN = 4
"""Words before and behind those that a statement repeats which belong to the same clause."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A statement laid along the sentence that it repeats most of."""

    statement: str
    sentence: str
    share: float
    """Of the statement's words, those that are in the order of the sentence."""
    matched: tuple[tuple[int, int], ...]
    """Places of the same word in both."""
    others: tuple[tuple[int, int, int, int], ...]
    """From where to where the statement has other words, and the sentence."""


@lru_cache(512)
def read_tokens(text: str) -> tuple[tuple[str, int], ...]:
    """Return the words of a text in their base forms, with their places; figures that say the same are the same."""
    figures = {start: f"{figure.written}" for start, _, figure in find_figures(text) if isinstance(figure, Quantity)}
    return tuple(
        (figures.get(match.start()) or min(base_forms(match.group().lower().replace("&", "and"))), match.start())
        for match in _WORD.finditer(text)
    )[:MOST_WORDS]


def lay_along(statement: str, sentences: Sequence[str]) -> Frame | None:
    """Return the statement along the sentence that has most of its words in the same order, or None."""
    frames = [frame for sentence in sentences if (frame := _lay_along_one(statement, sentence))]
    return max(frames, key=lambda frame: (frame.share, -len(frame.sentence)), default=None)


@lru_cache(512)
def _lay_along_one(statement: str, sentence: str) -> Frame | None:
    mine, theirs = ([word for word, _ in read_tokens(text)] for text in (statement, sentence))
    known = set(theirs)
    if not mine or sum(word in known for word in mine) < SAME_FRAME * len(mine):
        return None
    pairs = _match_in_order(mine, theirs)
    others = _find_others(pairs, len(mine), len(theirs))
    return Frame(statement, sentence, len(pairs) / len(mine), pairs, others)


def _match_in_order(mine: Sequence[str], theirs: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return the places of as many words as can be matched without changing their order."""
    lengths = [[0] * (len(theirs) + 1) for _ in range(len(mine) + 1)]
    for i in range(len(mine) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(len(theirs) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if mine[i] == theirs[j] else max(below[j], row[j + 1])
    pairs, i, j = [], 0, 0
    while i < len(mine) and j < len(theirs):
        if mine[i] == theirs[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return tuple(pairs)


def _find_others(pairs: Sequence[tuple[int, int]], mine: int, theirs: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return from where to where a statement has words that are not matched, and what the sentence has there."""
    ends = [(-1, -1), *pairs, (mine, theirs)]
    return tuple((i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(ends) if k > i + 1)


def find_replaced(statement: str, sentences: Sequence[str], evidence: str) -> list[Objection]:
    """Return how a statement that repeats a sentence changes it: other words, more words, words that changed places."""
    frame = lay_along(statement, sentences)
    if frame is None:
        return []
    found = [Objection(ObjectionKind.TURNED_ROUND)] if frame.share >= SAME_FRAME and has_changed_places(frame) else []
    if frame.share < NEAR_VERBATIM:
        return found
    mine, telling = read_tokens(statement), {word.start: word for word in content_words(statement)}
    theirs = content_words(frame.sentence)
    known, passage = [word.folded for word in theirs], read_vocabulary(evidence)
    alike = AlikeWords(known)
    others = read_tokens(frame.sentence)
    for first, last, start, end in frame.others:
        extents = [find_extents(" ".join(word for word, _ in words)) for words in (mine[first:last], others[start:end])]
        if all(extents) and extents[0].isdisjoint(extents[1]):
            found.append(Objection(ObjectionKind.NOT_OF_ALL))
        said = [word.folded for word in telling.values()]
        new = [
            word
            for _, at in mine[first:last]
            if (word := telling.get(at)) and (not alike.has(word.folded) or not _is_kept(word.folded, known, said))
        ]
        gone = [word for word in _between(frame.sentence, theirs, start, end) if not _is_kept(word.folded, said, known)]
        added = [word for word in new if word.folded not in GENERIC and not passage.has(word)]
        if gone and new:
            found.append(Objection(ObjectionKind.OTHER_WORD))
        elif added and not (len(new) == 1 and (is_verb_form(new[0].folded) or is_neutral(new[0].folded))):
            found.append(Objection(ObjectionKind.ADDED_WORDS))
    return list(dict.fromkeys(found))


def is_neutral(verb: str) -> bool:
    """Return whether a verb says no more than that two things belong together."""
    return not base_forms(verb).isdisjoint(_NEUTRAL)


def _is_kept(word: str, said: Sequence[str], known: Sequence[str]) -> bool:
    """Return whether a statement has a word elsewhere as often as the sentence."""
    count = sum(are_alike(word, other) for other in said)
    return count > 0 and count >= sum(are_alike(word, other) for other in known)


def _between(sentence: str, words: Sequence[Word], start: int, end: int) -> list[Word]:
    """Return the words from one place to another that stand in no brackets: those may be left out."""
    places = {at for _, at in read_tokens(sentence)[start:end]}
    aside = [match.span() for match in BRACKETS.finditer(sentence)]
    return [word for word in words if word.start in places and not any(a < word.start < z for a, z in aside)]


def has_changed_places(frame: Frame) -> bool:
    """Return whether two words have changed places around a third, whichever clause comes first."""
    if bool(_PASSIVE.search(frame.statement)) != bool(_PASSIVE.search(frame.sentence)):
        return False
    first, last = _find_window([there for _, there in frame.matched])
    mine, theirs = read_tokens(frame.statement), read_tokens(frame.sentence)[first : last + 1]
    orders = [theirs, *_turn_round(frame.sentence, theirs)]
    return all(_cross(frame.statement, mine, order) for order in orders)


def _turn_round(sentence: str, tokens: Sequence[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    """Return the tokens with the part in front of a comma behind the rest, where that part can stand there."""
    lead = _LEAD.match(sentence)
    if lead is None:
        return []
    behind = [token for token in tokens if token[1] >= lead.end()]
    return [[*behind, *(token for token in tokens if token[1] < lead.end())]] if behind else []


def _cross(statement: str, mine: Sequence[tuple[str, int]], theirs: Sequence[tuple[str, int]]) -> bool:
    here, there = _places(mine), _places(theirs)
    shared = [word for word in here if word in there]
    telling = _telling(statement)
    moved = [(here[word], there[word]) for word in shared if mine[here[word]][1] in telling]
    for pivot in (word for word in shared if word not in _JOINING):
        on = any(i < here[pivot] and j > there[pivot] for i, j in moved)
        back = any(i > here[pivot] and j < there[pivot] for i, j in moved)
        if on and back:
            return True
    return False


def _find_window(places: Sequence[int]) -> tuple[int, int]:
    """Return from where to where most of the repeated words stand, with some words around them."""
    runs = [[places[0]]]
    for before, place in pairwise(places):
        if place - before > 2 * _MARGIN:
            runs.append([])
        runs[-1].append(place)
    longest = max(runs, key=len)
    return max(0, longest[0] - _MARGIN), longest[-1] + _MARGIN


def _places(tokens: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return the places of words that stand in a text once."""
    counts = Counter(word for word, _ in tokens)
    return {word: place for place, (word, _) in enumerate(tokens) if counts[word] == 1}


def _telling(text: str) -> set[int]:
    """Return where the words and quantities of a text stand that may have a role; a date may stand anywhere."""
    figures = {start for start, _, figure in find_figures(text) if isinstance(figure, Quantity)}
    return {word.start for word in content_words(text)} | figures

"""Rivals: things that a sentence says where a claim says another, by whom, where, in what or as which value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, islice, permutations

from ragstone.answer.verify.frame import Frame, read_tokens
from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.shares import find_signs
from ragstone.answer.verify.split import split_claim
from ragstone.language.grammar import BE, PREPOSITIONS, first_verb, is_known_verb, is_verb_form, tokenize, words_of
from ragstone.language.inflection import base_forms
from ragstone.language.negation import are_opposites, find_extents, find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.synonyms import are_alike
from ragstone.language.units import Unit, unit_of
from ragstone.language.vocabulary import GENERIC, Word, content_words, is_measured, read_vocabulary

_TOKEN = re.compile(r"[^\W_](?:[\w'’&+]|[-./:](?=\w)){0,60}|[,;:()]")
_LEADING = PREPOSITIONS - words_of("as than like off out up down of within without per near despite")
_ENDS = frozenset(",;:()") | words_of(
    "and but or which who that while when where because if unless with from until since to by in on at for after before"
)
_QUOTED = re.compile(r"(?<!\w)['‘\"“`]([\w-]{1,30})['’\"”`](?!\w)")
_DAYS = re.compile(r" (?:hours?|days?|weeks?|months?|years?)\b")
_EVERY = re.compile(r"\b(?:every|each|per) $", re.I)
_REACH, _LONGEST_VALUE = 14, 8
_LEAST_TOLD = 0.75
_CONCESSION = re.compile(
    r"\b(?:even (?:if|when|where|while|without|with|after|before|though|on|in|for)|regardless of|no matter|whatever"
    r"|whichever|whether or not|with or without|in (?:every|any) case|unconditionally)\b[^.;]{0,200}",
    re.I,
)
_RESTRICTION = re.compile(
    r"\b(?:only (?:\w{1,30} ){0,4}?(?:if|when|where|while|after|once|for|with|in|on|by|has|have|an?)|unless|as long as"
    r"|provided(?: that)?|except|(?:do|does|did|will|can|has|have|is|are)(?: not\b|n['’]t\b)|nothing|no effect"
    r"|cannot)\b[^.;]{0,200}",
    re.I,
)
_LEAST_NAMED = 0.5
"""Share of the words of a concession that a sentence has where its limit is about the same."""
_IN_UNIT = re.compile(r"\b(?:in|of)\s(?P<unit>[A-Za-zµ]{2,20})(?:\sper\s\w{1,20})?\b")
_OPTION = re.compile(
    rf"\b(?:the|with|by|using|an?)\s(?P<name>[\w.+/-]{{2,40}})\s(?P<kind>{'|'.join(sorted(GENERIC))})\b", re.I
)
MOST_TOKENS = 120
_MOST_SLOTS = 12
"""Values of a text whose holders may be exchanged."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A word that leads to a value, the words before it other than names, and the words of the value."""

    lead: str
    heads: tuple[str, ...]
    value: tuple[Word, ...]

    @property
    def is_name(self) -> bool:
        return any(word.is_name for word in self.value)

    def without(self, others: Sequence[Word]) -> tuple[Word, ...]:
        """Return the words of the value, of one with a name its names, that are not among others."""
        telling = [word for word in self.value if word.is_name == self.is_name]
        return tuple(word for word in telling if not any(_are_same(word, other) for other in others))


def find_rival(claim: str, sentence: str, around: str, *, verbatim: bool) -> Rival | None:
    """Return what a sentence says in the place of the one thing in which a claim differs from it, or None.

    `around` is what stands over the sentence. Only a claim that repeats the sentence, `verbatim`, differs in a plain
    word; in other words it may mean the same.
    """
    known = read_vocabulary(f"{around}\n{sentence}")
    words = content_words(claim)
    clause = _choose_clause(claim, sentence)
    here, there = read_vocabulary(claim), read_vocabulary(clause)
    stated = list(_find_slots(clause))
    for slot in _find_slots(claim):
        if not slot.is_name and not verbatim:
            continue
        alike = [other for other in stated if other.is_name == slot.is_name]
        places = [other for other in alike if _is_same_place(slot, other)]
        if slot.is_name and verbatim:
            places = places or [other for other in alike if _have_same_lead(slot, other) and _share_a_head(slot, other)]
        led = [word for other in stated if _have_same_lead(slot, other) for word in other.value]
        mine = slot.without(led)
        theirs = places[0].without(slot.value) if places else ()
        rest = [word for word in words if word not in slot.value]
        told = rest and sum(map(known.has, rest)) >= _LEAST_TOLD * len(rest)
        # A plain word that the other has elsewhere was moved, and says nothing else.
        moved = not slot.is_name and (any(map(there.has, mine)) or any(map(here.has, theirs)))
        if mine and theirs and told and not moved and (slot.is_name or len(mine) == len(slot.value)):
            return Rival(_join(mine), _join(theirs))
    return None


def _join(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


def _choose_clause(claim: str, sentence: str) -> str:
    """Return the clause of a sentence that has most of what a claim is about, or all of it."""
    verb = first_verb(tokenize(claim))
    subject = [word for word in content_words(claim) if verb is None or word.start < verb.token.start]
    clauses = split_claim(sentence)
    counts = [sum(map(read_vocabulary(clause).has, subject)) for clause in clauses]
    best = [clause for clause, count in zip(clauses, counts, strict=True) if count == max(counts)]
    return best[0] if len(best) == 1 and max(counts) else sentence


def _find_slots(text: str, leading: Set[str] = _LEADING) -> Iterator[_Slot]:
    """Yield the prepositions, verbs and forms of "to be" of a text with what follows each."""
    tokens = [(match.group(), match.start()) for match in _TOKEN.finditer(text)][:MOST_TOKENS]
    words = {word.start: word for word in content_words(text)}
    for place, (token, _) in enumerate(tokens):
        lead = token.lower()
        if lead not in leading and lead not in BE and not is_known_verb(lead):
            continue
        behind = tokens[place + 1 : place + 1 + _LONGEST_VALUE]
        ends = _ENDS - {"and"} if lead == "by" else _ENDS  # both did it
        end = next((n for n, (one, _) in enumerate(behind) if one.lower() in ends), len(behind))
        value = tuple(words[start] for _, start in behind[:end] if start in words)
        before = [words[start] for _, start in tokens[max(0, place - _REACH) : place] if start in words]
        heads = tuple(word.folded for word in before if not word.is_name) or tuple(word.folded for word in before)
        if value and not (lead in BE and is_verb_form(value[0].folded)):
            yield _Slot(lead, heads, value)


def _is_same_place(mine: _Slot, theirs: _Slot) -> bool:
    """Return whether two values follow the same lead behind one of the same words."""
    return (
        _have_same_lead(mine, theirs)
        and bool(mine.heads)
        and any(are_alike(mine.heads[-1], head) for head in theirs.heads[-2:])
    )


def _share_a_head(mine: _Slot, theirs: _Slot) -> bool:
    return any(are_alike(head, other) for head in mine.heads for other in theirs.heads)


def _have_same_lead(mine: _Slot, theirs: _Slot) -> bool:
    if mine.lead in BE or theirs.lead in BE:
        return mine.lead in BE and theirs.lead in BE
    if mine.lead in _LEADING or theirs.lead in _LEADING:
        return mine.lead == theirs.lead
    return are_alike(mine.lead, theirs.lead)


def _are_same(mine: Word, theirs: Word) -> bool:
    if mine.is_name or theirs.is_name:
        return mine.folded == theirs.folded
    return are_alike(mine.folded, theirs.folded)


def find_other_figure(claim: str, sentence: str) -> Rival | None:
    """Return both figures where a claim and a sentence have one each that the other lacks, and both measure alike."""
    here, there = find_figures(claim), find_figures(sentence)
    mine = [figure for figure in here if not any(_is_same_figure(figure[2], other[2]) for other in there)]
    theirs = [figure for figure in there if not any(_is_same_figure(other[2], figure[2]) for other in here)]
    if len(mine) != 1 or len(theirs) != 1:
        return None
    one, other = mine[0][2], theirs[0][2]
    if not isinstance(one, Quantity) or not isinstance(other, Quantity) or one.bound != other.bound:
        return None
    if one.dimension and other.dimension and one.written != other.written and not one.rivals(other):
        return None
    return Rival(_quote_figure(claim, *mine[0][:2]), _quote_figure(sentence, *theirs[0][:2]))


def find_other_sign(claim: str, sentence: str) -> Rival | None:
    """Return both signs where a claim and a sentence have one each that the other lacks: a key "#" and a key "+"."""
    here, there = find_signs(claim), find_signs(sentence)
    mine, theirs = here - there, there - here
    return Rival(mine.pop(), theirs.pop()) if len(mine) == len(theirs) == 1 else None


def are_exchanged(claim: str, sentence: str) -> bool:
    """Return whether a claim gives each of two things what a sentence gives the other.

    "Jets are shown by a small letter, planes by a capital" where it says that jets have the capital.
    """
    if _quote_in_other_order(claim, sentence):
        return True
    mine, theirs = (list(islice(_find_slots(text, _LEADING | {"as"}), _MOST_SLOTS)) for text in (claim, sentence))
    mine = [slot for slot in mine if not any(_has_head(slot, other) and _hold(other, slot.value) for other in theirs)]
    return any(
        _has_head(one, first) and _has_head(other, second) and _is_crossed((one, other), (first, second))
        for one, other in combinations(mine, 2)
        for first, second in permutations(theirs, 2)
    )


def _quote_in_other_order(claim: str, sentence: str) -> bool:
    """Return whether both have the same words in quotation marks, but in another order."""
    mine, theirs = (
        [match[1].lower() for match in islice(_QUOTED.finditer(text), _MOST_SLOTS)] for text in (claim, sentence)
    )
    kept = [word for word in theirs if word in mine]
    return len(mine) > 1 and mine != kept[-len(mine) :] and sorted(mine) == sorted(kept[-len(mine) :])


def _has_head(mine: _Slot, theirs: _Slot) -> bool:
    """Return whether a value belongs to the same as another: the word right before it, or before its verb."""
    return bool(mine.heads) and any(base_forms(mine.heads[-1]) & base_forms(head) for head in theirs.heads[-2:])


def _is_crossed(mine: tuple[_Slot, _Slot], theirs: tuple[_Slot, _Slot]) -> bool:
    (one, other), (first, second) = mine, theirs
    moved, gone = one.without(first.value), other.without(second.value)
    if not moved or not gone or {word.folded for word in moved} & {word.folded for word in gone}:
        return False
    return _hold(second, moved) and _hold(first, gone)


def _hold(slot: _Slot, words: Sequence[Word]) -> bool:
    return all(any(_are_same(word, other) for other in slot.value) for word in words)


def _quote_figure(text: str, start: int, end: int) -> str:
    """Return a figure with what it counts: of "ten working days" a figure is the first two words."""
    counted, every = _DAYS.match(text, end), _EVERY.search(text, max(0, start - 8), start)
    return text[every.start() if every else start : counted.end() if counted else end]


def _is_same_figure(mine: object, theirs: object) -> bool:
    if isinstance(mine, Quantity) and isinstance(theirs, Quantity):
        return mine.fits(theirs) or (mine.written == theirs.written and not (is_measured(mine) and is_measured(theirs)))
    return mine == theirs


def _cut(text: str, first: int, last: int) -> str:
    """Return the words of a text from one place to another."""
    places = [place for _, place in read_tokens(text)]
    return (
        text[places[first] : places[last] if last < len(places) else len(text)].strip(" ,;:.") if first < last else ""
    )


def find_opposed(frame: Frame) -> Rival | None:
    """Return the words of a claim and the opposite words that the sentence which it repeats has in their place."""
    for first, last, start, end in frame.others:
        here, there = _cut(frame.statement, first, last), _cut(frame.sentence, start, end)
        extents = find_extents(here), find_extents(there)
        if (there and are_opposites(here, there)) or (all(extents) and extents[0].isdisjoint(extents[1])):
            return Rival(here, there)
    return None


def find_contrast(claim: str, sentence: str, above: str) -> Rival | None:
    """Return what a sentence says otherwise than a claim, or None; `above` is what stands right over the sentence."""
    return (
        find_other_condition(claim, sentence)
        or find_other_unit(claim, sentence)
        or find_other_option(claim, sentence, above)
    )


def find_other_condition(claim: str, sentence: str) -> Rival | None:
    """Return the limit of a sentence that a claim denies: "even if it is locked" where it says "only if unlocked"."""
    conceded, limit = _CONCESSION.search(claim), _RESTRICTION.search(sentence)
    if conceded is None or limit is None or _CONCESSION.search(sentence):
        return None
    words = content_words(conceded.group())
    told = read_vocabulary(sentence)
    if not words or sum(map(told.has, words)) < _LEAST_NAMED * len(words):
        return None
    return Rival(conceded.group().rstrip(" .,"), limit.group().rstrip(" .,"))


def find_other_unit(claim: str, sentence: str) -> Rival | None:
    """Return both units where a claim gives something in another one: "in minutes" where it says "in milliseconds"."""
    mine, theirs = list(_find_units(claim)), list(_find_units(sentence))
    if len(mine) != 1 or not theirs:
        return None
    (words, unit), (others, other) = mine[0], theirs[0]
    same_kind = all(one.dimension == unit.dimension for _, one in theirs)
    return Rival(words, others) if same_kind and unit not in (one for _, one in theirs) and unit != other else None


def _find_units(text: str) -> Iterator[tuple[str, Unit]]:
    for match in _IN_UNIT.finditer(text):
        word = match["unit"]
        unit = unit_of(word) if word.endswith("s") else None
        if unit is not None:
            yield match.group(), unit


def find_other_option(claim: str, sentence: str, above: str) -> Rival | None:
    """Return both names where a claim gives another option, directive or command: "by the `x` option" for "`y`"."""
    mine, theirs = (
        {(match["name"].lower(), match["kind"].lower()) for match in _OPTION.finditer(text.replace("`", ""))}
        for text in (claim, sentence)
    )
    if len(mine) != 1 or len(theirs) != 1:
        return None
    (name, kind), (other, same) = mine.pop(), theirs.pop()
    if kind != same or name == other or name in f"{sentence}\n{above}".lower() or other in claim.lower():
        return None
    return Rival(name, other)

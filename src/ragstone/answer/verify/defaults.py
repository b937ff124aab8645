"""Defaults: the value that a claim gives as the default of something, beside the one that a sentence or term gives."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ragstone.answer.quotes import Quote
from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.shares import find_flags
from ragstone.language.grammar import words_of
from ragstone.language.negation import find_denials, find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.vocabulary import content_words, read_vocabulary

_VALUE = r"[\"“'`]{0,2}(?P<value>[\w./+-][^,;:()]{0,40})"
_STATED = re.compile(
    rf"\bdefault(?:s to|(?: [\w'-]{{1,30}}){{0,6}}? (?:is|are)(?: to be| typically)?:?|:|=| of) {_VALUE}"
    rf"|\bdefault (?=[\d\"“'`]){_VALUE.replace('value', 'short')}",
    re.I,
)
_GIVEN = r"(?:used|given|specified|set|present|provided|defined|supplied|passed|configured|changed|overridden)"
_OPTION = (
    r"(?:(?:[\w-]{1,30}\s){0,3}?(?:option|flag|switch|setting|variable|parameter|argument|value|directive|attribute"
    r"|keyword|field)s?|it|this|they|[`'\"“]?-{1,2}[\w-]{1,40}[`'\"”]?)"
)
_NOT_GIVEN = re.compile(
    rf"\b(?:(?:if|when) (?:{_OPTION} (?:(?:is|are|was|were|has been) not {_GIVEN}|(?:is|are)n['’]t {_GIVEN}"
    rf"|(?:is|are) (?:unset|omitted|absent|missing|left out|unspecified))"
    rf"|no {_OPTION} (?:is|are|was|has been) {_GIVEN})"
    rf"|unless (?:{_OPTION} (?:is|are|has been) {_GIVEN}|(?:otherwise )?{_GIVEN}|(?:told|specified|stated) otherwise))"
    r"(?=[,;:.!?)](?:\s|$)|\sthen\b|$)",
    re.I,
)
"""A condition that says no more than "by default", up to its end."""
_MARKED = re.compile(
    r"(?:^|[\s,(:])[\"“'`]{0,2}(?P<value>[\w./+-]{1,40})[\"”'`]{0,2} \((?:which is |this is |it is )?(?:the )?default\b"
    r"(?! \w)(?! ?[:=])",
    re.I,
)
"""A value that is called the default in brackets: "auto (the default, which is fast), max or off"."""
_IN_BRACKETS = re.compile(r"[\"”'`]{0,2} ?\(([^()]{1,40})\)")
_BY_DEFAULT = re.compile(r"\b(?:by default|out of the box)\b", re.I)
_SWITCHED = re.compile(
    r"\b(?P<front>on|off|enabled|disabled|yes|no|true|false) by default\b"
    r"|\bby default,? (?:[\w'-]{1,30} ){0,4}?(?P<behind>on|off|enabled|disabled)\b",
    re.I,
)
_IS = re.compile(rf"\b(?:is|are) (?!by\b){_VALUE}", re.I)
_ON = words_of("on yes true enabled active activated")
_OFF = words_of("off no false disabled inactive deactivated none")
_WORD = re.compile(r"[\w./+-]*\w")


def find_default(text: str) -> str:
    """Return the words for the default that a text states, or ""."""
    if found := _STATED.search(text):
        return (found["value"] or found["short"]).strip(" \"“”'`.]")
    if marked := _MARKED.search(text):
        return marked["value"].strip(".")
    if not _BY_DEFAULT.search(text):
        return ""
    if switched := _SWITCHED.search(text):
        return switched["front"] or switched["behind"]
    figures = find_figures(text)
    if len(figures) == 1:
        return text[figures[0][0] : figures[0][1]]
    found = _IS.search(text)
    return _BY_DEFAULT.split(found["value"])[0].strip(" \"“”'`.]") if found and not figures else ""


def speaks_of_default(text: str) -> bool:
    """Return whether a text says what is so by default."""
    return "default" in text.lower() or _BY_DEFAULT.search(text) is not None


def spell_default(claim: str, text: str) -> str:
    """Return a text with "by default" for "if it is not set", which is the same, where a claim speaks of a default."""
    return _NOT_GIVEN.sub("by default", text) if speaks_of_default(claim) else text


def gives_default(claim: str, text: str) -> bool:
    """Return whether a text gives the default of something, as a claim does."""
    return speaks_of_default(claim) and bool(find_default(text))


def names_owner(claim: str, around: str) -> bool:
    """Return whether a text names all options and names of a claim that are not the default it gives."""
    known, default = read_vocabulary(around), find_default(claim)
    named = all(known.has(word) for word in content_words(claim) if word.is_name and word.text not in default)
    return named and find_flags(claim) <= find_flags(around)


def _find_in_brackets(text: str) -> str:
    """Return the same default in another unit: 1 hour in "The default is 3600 (1 hour)"."""
    stated = _STATED.search(text)
    behind = _IN_BRACKETS.match(text, len(text[: stated.end()].rstrip())) if stated else None
    return behind[1] if behind else ""


def compare_defaults(claim: str, sentence: str) -> Rival | bool | None:
    """Return True where both state the same default, a rival where they state different ones, or None."""
    mine, theirs = find_default(claim), find_default(sentence)
    if theirs and not mine and _BY_DEFAULT.search(claim) and _read_word(theirs) in ("on", "off"):
        # "It checks names by default." of an option that is disabled by default.
        told = "off" if find_denials(claim) else "on"
        return True if told == _read_word(theirs) else Rival("by default", theirs)
    if not mine or not theirs:
        return None
    if _are_same(mine, theirs) or _are_same(mine, _find_in_brackets(sentence)):
        return True
    return Rival(mine, theirs) if _differ(mine, theirs) else None


def _are_same(mine: str, theirs: str) -> bool:
    here, there = find_figures(mine), find_figures(theirs)
    if not here or not there:
        return bool(_read_word(mine)) and _read_word(mine) == _read_word(theirs)
    one, other = here[0][2], there[0][2]
    return isinstance(one, Quantity) and isinstance(other, Quantity) and one.fits(other)


def _differ(mine: str, theirs: str) -> bool:
    """Return whether two values of one kind are different: figures, switches or single words."""
    here, there = find_figures(mine), find_figures(theirs)
    if here and there and not here[0][0] and not there[0][0]:
        one, other = here[0][2], there[0][2]
        if not isinstance(one, Quantity) or not isinstance(other, Quantity):
            return False
        if one.dimension and other.dimension:
            return one.rivals(other)
        return one.written != other.written
    one_word, other_word = _read_word(mine), _read_word(theirs)
    return bool(one_word and other_word) and one_word != other_word and not here and not there


def _read_word(value: str) -> str:
    """Return the one word of a value, "on" or "off" for whatever means that, or ""."""
    words = [word.lower() for word in _WORD.findall(value)]
    if words and words[0] in _ON | _OFF:
        return "on" if words[0] in _ON else "off"
    return words[0] if len(words) == 1 else ""


def find_stated_terms(units: Sequence[AnswerUnit]) -> Iterator[AnswerUnit]:
    """Yield the terms of entries that give a default themselves: "--depth=<number> [default: 30]"."""
    known: set[tuple[str, int, int]] = set()
    for unit in units:
        term = _find_term(unit)
        if term is not None and term.place not in known and find_default(term.text):
            known.add(term.place)
            yield AnswerUnit(term, "sentence", unit.block, heading=unit.heading)


def group_by_hit(units: Iterable[AnswerUnit]) -> dict[int, list[AnswerUnit]]:
    """Return units in the order of their passages, by the identity of their hits."""
    found: dict[int, list[AnswerUnit]] = defaultdict(list)
    for unit in units:
        found[id(unit.quote.hit)].append(unit)
    return {key: sorted(own, key=_get_start) for key, own in found.items()}


def place_in_entry(quote: Quote, units: Sequence[AnswerUnit]) -> AnswerUnit:
    """Return a line as a unit; one that gives a default belongs to the entry or section that it stands in.

    `units` are those of its passage in order.
    """
    alone = AnswerUnit(quote, "sentence", 0)
    if not units or not find_default(quote.text):
        return alone
    place = bisect_left(units, quote.start, key=_get_start)
    before, after = units[place - 1] if place else None, units[place] if place < len(units) else None
    if before is not None and _is_indented(quote):
        return replace(alone, term=_find_term(before), heading=before.heading, before=before.quote, topic=before.topic)
    if before is None and after is not None:
        return replace(alone, heading=after.heading, topic=after.quote)
    return alone


def _get_start(unit: AnswerUnit) -> int:
    return unit.quote.start


def _find_term(unit: AnswerUnit) -> Quote | None:
    if unit.kind != "entry":
        return unit.term
    return replace(unit.quote, end=unit.quote.start + len(unit.text.split("\n", 1)[0].rstrip()))


def _is_indented(quote: Quote) -> bool:
    text = quote.hit.text
    line = text.rfind("\n", 0, quote.start) + 1
    return text[line : quote.start].startswith("  ")

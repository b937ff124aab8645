"""Forms of English words: what an irregular form is a form of, and whether two words have the same root."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ragstone.language.analyzer import english_word

_IRREGULAR = (
    "be was were been, bear bore borne born, beat beaten, become became, begin began begun, bend bent, bind bound, "
    "bite bit bitten, bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build built, "
    "burn burnt, buy bought, catch caught, choose chose chosen, come came, creep crept, deal dealt, dig dug, "
    "do did done, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten, fall "
    "fell fallen, "
    "feed fed, feel felt, fight fought, find found, flee fled, fly flew flown, forbid forbade forbidden, "
    "forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given, "
    "go went gone, grow grew grown, hang hung, have has had, hear heard, hide hid hidden, hold held, keep kept, "
    "kneel knelt, know knew known, lay laid, lead led, learn learnt, leave left, lend lent, lie lay lain, light lit, "
    "lose lost, make made, mean meant, meet met, overcome overcame, pay paid, prove proven, ride rode ridden, "
    "ring rang rung, rise rose risen, run ran, say said, see saw seen, seek sought, sell sold, send sent, "
    "set, shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, "
    "sink sank sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spend spent, spin spun, spring "
    "sprang sprung, "
    "stand stood, steal stole stolen, stick stuck, strike struck stricken, swear swore sworn, sweep swept, "
    "swim swam swum, "
    "swing swung, take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown, "
    "undergo underwent undergone, understand understood, undertake undertook undertaken, wake woke woken, "
    "wear wore worn, "
    "weave wove woven, weep wept, win won, wind wound, withdraw withdrew withdrawn, write wrote written, "
    "man men, woman women, child children, person people, foot feet, tooth teeth, mouse mice, life lives, wife wives, "
    "half halves, leaf leaves, knife knives, analysis analyses, crisis crises, basis bases, criterion criteria, "
    "phenomenon phenomena, datum data, medium media, bacterium bacteria, index indices, matrix matrices, "
    "good better best, bad worse worst, far farther furthest, high height, long length, wide width, deep depth, "
    "strong strength, die death dead, die dying, succeed success successful, lose loss, choose choice, "
    "believe belief, prove proof, speak speech, sell sale, see sight, destroy destruction, "
    "receive receipt, describe description, fly flight, weigh weight, marry marriage, bury burial, "
    "know knowledge, live life, sing song, give gift, deep depth, broad breadth, born birth, hot heat, think thought, "
    "maintain maintenance, pronounce pronunciation, explain explanation, reveal revelation, apply application, "
    "permit permission, submit submission, admit admission, transmit transmission, extend extension extent, "
    "comprehend comprehension, suspend suspension, intend intention, respond response, defend defence defense, "
    "offend offence offense, expend expense expenditure, invade invasion, persuade persuasion, divide division, "
    "collide collision, provide provision, include inclusion, exclude exclusion, conclude conclusion, "
    "produce production product, reduce reduction, introduce introduction, acquire acquisition, "
    "require requirement, resolve resolution, solve solution, evolve evolution, absorb absorption, "
    "assume assumption, consume consumption, redeem redemption, convene convention, abolish abolition, "
    "pretend pretence pretense, resist resistance, "
    "compete competition, repeat repetition, oppose opposition, compose composition, impose imposition"
)
_ENDINGS = (
    *("izations", "ization", "ations", "ation", "ments", "ment", "nesses", "ness", "ities", "ity", "ances", "ance"),
    *("ences", "ence", "ancies", "ancy", "encies", "ency", "tions", "tion", "sions", "sion", "ions", "ion", "ings"),
    *("ing", "ists", "ist", "ially", "ically", "ally", "ly", "ials", "ial", "als", "al", "ives", "ive", "ous", "ful"),
    *("able", "ible", "ies", "ied", "iers", "ier", "ures", "ure", "ages", "age", "ants", "ant", "ents", "ent"),
    *("ical", "ics", "ic", "ians", "ian", "ish", "ese", "ers", "er", "ors", "or", "th", "ed", "es", "s", "e", "y"),
)
_LEAST_ROOT = 4
_DERIVED = re.compile(r"(\w{3,4})(?:er|or|ment|ing)")
_UNDOUBLED = re.compile(r"([^aeiou])\1$")
_MOST_APART = 2
"""Letters by which one root may be longer than the other: decide and decision."""
_BRITISH = (
    (re.compile(r"is(?=(?:e|es|ed|er|ers|ing|ation|ations)$)"), "iz"),
    (re.compile(r"(?<=\w{2}[^aeiou])our(?!$)|(?<=\w{2}[^aeiou])our$"), "or"),
    (re.compile(r"(?<=[nt])tre(?=s?$)"), "ter"),
    (re.compile(r"ogue(?=s?$)"), "og"),
    (re.compile(r"(?<=[^l]l)l(?=(?:ed|ing|er|ers)$)"), ""),
)


def _read_forms() -> dict[str, frozenset[str]]:
    bases: dict[str, set[str]] = {}
    for group in _IRREGULAR.split(", "):
        base, *forms = group.split()
        for form in forms:
            bases.setdefault(form, set()).add(base)
    return {form: frozenset(found) for form, found in bases.items()}


_BASES = _read_forms()


@lru_cache(20_000)
def base_forms(word: str) -> frozenset[str]:
    """Return what a word in lower case may be a form of, itself included, in American spelling."""
    spelt = word
    for pattern, american in _BRITISH:
        spelt = pattern.sub(american, spelt)
    bare = spelt.removesuffix("'s").removesuffix("’s")
    found = {bare, *english_word(bare)} | _BASES.get(bare, frozenset())
    for plural in (bare.removesuffix("s"), bare.removesuffix("es")):
        found |= _BASES.get(plural, frozenset())
    return frozenset(found)


@lru_cache(20_000)
def find_root(word: str) -> str:
    """Return a word without what derives and inflects it, or the whole of a short one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_ROOT:
            root = _drop_double(word[: -len(ending)])
            return root[:-1] if len(root) > _LEAST_ROOT and root[-1] in "ei" else root
    return word


@lru_cache(20_000)
def find_origins(word: str) -> frozenset[str]:
    """Return the roots of a word and of what it may derive from, also short ones: own for owner, pay for payment."""
    bases = base_forms(word)
    derived = (match[1] for base in bases if (match := _DERIVED.fullmatch(base)))
    return frozenset(map(find_root, bases)).union(_UNDOUBLED.sub(r"\1", root) for root in derived)


def _drop_double(root: str) -> str:
    return root[:-1] if len(root) > _LEAST_ROOT and root[-1] == root[-2] else root


class Roots:
    """The roots of words, to look up whether one derives from the same as another: decide, decided, decision."""

    def __init__(self, words: Iterable[str]) -> None:
        self._roots = {find_root(word) for word in words if len(word) >= _LEAST_ROOT}
        self._shorter = {shorter for root in self._roots for shorter in _shorten(root)}

    def has(self, word: str) -> bool:
        """Return whether the roots are the same up to a few letters at the end of one of them."""
        if len(word) < _LEAST_ROOT:
            return False
        root = find_root(word)
        return root in self._shorter or not self._roots.isdisjoint(_shorten(root))

    def meet(self, other: Roots) -> bool:
        """Return whether `has` is true of one of the words of another."""
        return not self._roots.isdisjoint(other._shorter) or not self._shorter.isdisjoint(other._roots)


def _shorten(root: str) -> list[str]:
    """Return a root and what is left of it without its last letters."""
    return [root[:length] for length in range(max(_LEAST_ROOT, len(root) - _MOST_APART), len(root) + 1)]

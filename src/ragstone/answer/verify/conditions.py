"""Under which condition a sentence says something, and whether a claim keeps it, in whatever words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from ragstone.language.analyzer import analyze
from ragstone.language.grammar import first_verb, tokens
from ragstone.language.negation import denials

_SOURCE = re.compile(
    r"(?<!even )(?<!as )\bif\b"
    r"|\b(?:unless|provided that|providing|in case|as long as|on condition|otherwise|subject to)\b"
    r"|(?P<clause>(?<!are )(?<!is )(?<!was )(?<!were )(?<!be )(?<!been )\bprovided\b)"
    r"|\b(?P<time>(?:only )?(?:when|whenever)|only (?:after|once|where|upon|with)"
    r"|once(?= (?:the|it|they|all|you|he|she|we|this|these|your|its|their|both|every)\b))\b",
    re.I,
)
"""Of a time it is only where it tells no past: "the bridge fell when the storm came" says that it fell."""
_NARROWED = re.compile(
    r"^\W{0,3}(?!(?:the|this|that|its|our|their|his|her|he|she|it)\b)(?:[\w'’-]{1,30}\s){0,2}"
    r"(?:[\w'’-]{2,30}s|people|children|staff|men|women|anyone|everyone|those)\s"
    r"(?:with(?:out)?|who|holding|carrying|aged)\s(?P<what>[^,;.:]{1,80}?)\s"
    r"(?:may|can|cannot|must|shall|will|should|need|are|get|receive|pay|enter|travel)\b",
    re.I,
)
"""Those of whom alone a sentence speaks: visitors with a ticket."""
_CLAIM = re.compile(
    r"(?<!even )(?<!as )\b(?:if|unless|when|whenever|where|once|while|provided(?: that)?|providing|in case(?: of)?"
    r"|as long as|on condition(?: that)?|subject to|in the event(?: of)?|with|on|upon|after|for|without|otherwise)\b",
    re.I,
)
_PAST = ("was", "were", "had", "did")
_DENYING = ("unless", "without")
_ANY = re.compile(r"\b(?:an?|any|every|each)\s(?P<what>(?:[\w'’-]{1,30}\s?){1,4})", re.I)
"""A thing that is told apart by its state: "a full disk" is a disk, if it is full."""
_END = re.compile(r"[,;:.!?](?:\s|$)|\s(?:then|but)\s", re.I)
_KEPT = 0.6
"""Share of a condition's terms that its other wording must have."""


MOST = 12
"""Conditions of one text that are read; a sentence of more states nothing that could be told apart."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The terms of a condition, and whether they must not be so."""

    terms: frozenset[str]
    denied: bool
    last: str = ""
    """The term that tells most: is flashing."""


def condition_dropped(claim: str, sentence: str) -> bool:
    """Whether a sentence says something under a condition that the claim leaves out, or turns round."""
    if narrowed := _NARROWED.match(sentence):
        wanted = _terms(narrowed["what"])
        if len(wanted.intersection(_terms(claim))) < _KEPT * len(wanted):
            return True
    stated = _conditions(sentence, _SOURCE)
    if not stated:
        return False
    kept = [*_conditions(claim, _CLAIM), *_states(claim)]
    return len(stated) == MOST or any(not any(_same(mine, one) for mine in kept) for one in stated)


def _conditions(text: str, marks: re.Pattern[str]) -> list[Condition]:
    found = []
    for mark in islice(marks.finditer(text), MOST):
        end = _END.search(text, mark.end())
        words = text[mark.end() : end.start() if end else len(text)]
        if marks is _SOURCE and not _is_condition(text, mark, words):
            continue
        denied = (mark.group().lower() in _DENYING) != bool(len(denials(words)) % 2)
        terms = _in_order(words)
        found.append(Condition(frozenset(terms), denied, terms[-1] if terms else ""))
    return found


def _states(claim: str) -> list[Condition]:
    return [Condition(_terms(match["what"]), False) for match in _ANY.finditer(claim)]


def _is_condition(text: str, mark: re.Match[str], words: str) -> bool:
    """Whether a word that may mean something else begins a condition here."""
    if mark["clause"]:
        stated = first_verb(tokens(text[: mark.start()])) is not None or not text[: mark.start()].strip()
        return stated and first_verb(tokens(words)) is not None
    if not mark["time"]:
        return True
    verb = first_verb(tokens(words))
    return verb is None or not (verb.form in ("past", "participle") or verb.token.word in _PAST)


def _terms(words: str) -> frozenset[str]:
    return frozenset(_in_order(words))


def _in_order(words: str) -> list[str]:
    return analyze(words) if words.strip(" ,.;:") else []


def _same(mine: Condition, theirs: Condition) -> bool:
    """Whether one is the other in other words; "otherwise" points back and has none of its own."""
    shared = len(mine.terms & theirs.terms)
    if theirs.last and theirs.last not in mine.terms:
        return False
    if shared < len(theirs.terms) == len(mine.terms):
        return False  # one word was put for another: a steady red light for a flashing one
    return mine.denied == theirs.denied and shared >= _KEPT * len(theirs.terms)

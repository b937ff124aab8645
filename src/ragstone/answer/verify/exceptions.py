"""What a sentence leaves out of what it says: "every room except Room 4", "open daily, Mondays excepted"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ragstone.language.analyzer import analyze
from ragstone.language.dates import moments
from ragstone.language.grammar import first_verb, tokens

_ALL = r"(?:all|every(?:one|body|thing|where)?|any(?:one|body|thing)?|no ?one|nobody|none|nothing)"
_MARK = re.compile(
    r"\b(?:(?P<plain>except(?:ing)?(?: for)?|excluding|not including|with the exceptions? of|save for|but not"
    rf"|{_ALL} (?:but|save)|(?:all|every|each) (?:the )?[^\W\d_]{{1,30}} (?:but|save))"
    r"|other than|apart from|aside from|besides|instead of|rather than"
    r"|but (?:(?:it |they )?(?:is|are|was|were|stays?|remains?) )?(?P<state>closed|shut|open|unavailable))\s",
    re.I,
)
_BEHIND = re.compile(r"[,(–—]\s?(?P<what>(?:[\w'’-]{1,30}\s){1,4})(?:excepted|excluded)\b", re.I)
_ENDS = re.compile(r"[;:.!?()](?:\s|$)|\s(?:but|because|although|though|which|who)\s", re.I)
_NEXT = re.compile(r",?\s(?:and|or|nor)\s|,\s", re.I)
_WHOLE = re.compile(r"\b(?:all|every\w{0,5}|each|always|daily|any\w{0,5})\b", re.I)
_DENIES = re.compile(r"\b(?:no|not|none|nobody|nothing|never|cannot|closed|shut|\w{1,20}n['’]t)\b", re.I)
MOST = 12
"""Exceptions of one text that are read, and things that one of them names."""

Left = Literal["", "left out", "denied"]


@dataclass(frozen=True, slots=True)
class Excepted:
    """One thing that a text takes out of what it says."""

    words: str
    terms: frozenset[str]
    """Those that the text has nowhere but in its exceptions."""
    plain: bool
    """Whether what is said of the others is thereby denied of this."""
    state: frozenset[str]
    """What this is instead, where it is told: closed."""


def left_out(claim: str, sentence: str) -> Left:
    """Whether a claim says of an exception, or of all, what the sentence says of the others."""
    found = list(_excepted(sentence))
    if not found:
        return ""
    terms, own = set(analyze(claim)), [thing.terms for thing in _excepted(claim)]
    for thing in found:
        if any(thing.terms & kept for kept in own) or thing.state & terms:
            continue
        share = _named(claim, terms, thing)
        denies = not thing.state and _DENIES.search(sentence) is not None
        if share == 1 and thing.plain and denies == bool(_DENIES.search(claim)):
            return "denied"
        if share or (_WHOLE.search(claim) and not own):
            return "left out"
    return ""


def _named(claim: str, terms: set[str], thing: Excepted) -> float:
    """How much of an excepted thing a claim names; days and dates are compared as such."""
    mine, theirs = moments(claim), moments(thing.words)
    if mine and theirs:
        return float(any(one.meets(other) for one in mine for other in theirs))
    return len(thing.terms & terms) / len(thing.terms) if thing.terms else 0.0


def _excepted(text: str) -> Iterator[Excepted]:
    """The things that a text excepts."""
    found: list[tuple[str, bool, frozenset[str]]] = []
    rest = text
    for mark in islice(_MARK.finditer(text), MOST):
        state = frozenset(analyze(mark["state"])) if mark["state"] else frozenset[str]()
        for words in _things(text, mark):
            found.append((words, bool(mark["plain"] or state), state))
            rest = rest.replace(words, " ", 1)
    for mark in islice(_BEHIND.finditer(text), MOST):
        found.append((mark["what"], True, frozenset()))
        rest = rest.replace(mark["what"], " ", 1)
    outside = frozenset(analyze(rest)) if found else frozenset[str]()
    for words, plain, state in found:
        yield Excepted(words, frozenset(analyze(words)) - outside, plain, state)


def _things(text: str, mark: re.Match[str]) -> Iterator[str]:
    """What an exception names: it goes on over "and" and commas, up to the verb that it stands before."""
    end = _ENDS.search(text, mark.end())
    phrase = text[mark.end() : end.start() if end else len(text)].strip(" .!?")
    stated = first_verb(tokens(text[: mark.start()])) is not None
    start, over = 0, ""
    for joint in [*islice(_NEXT.finditer(phrase), MOST), None]:
        piece = phrase[start : joint.start() if joint else len(phrase)]
        verb = first_verb(tokens(piece))
        begins = first_verb(tokens(piece), shared=True) if over else None
        if over and ((verb and (stated or over.strip() == ",")) or (begins and begins.sure)):
            return
        cut = verb is not None and not stated
        yield piece[: verb.token.start] if verb is not None and cut else piece
        if joint is None or cut:
            return
        start, over = joint.end(), joint.group()

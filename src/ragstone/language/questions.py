"""Questions: the parts that a compound one is made of, each with what it refers to."""

from __future__ import annotations

import re

from ragstone.language.analyzer import STOP_WORDS, analyze_query
from ragstone.language.asked import MEASURED, find_asked_kind
from ragstone.language.relevance import ASKING
from ragstone.language.topics import find_topic, has_own_subject

MOST_PARTS = 4
_LONGEST = 1000
AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|should|will|would|has|have|must|may)"
_ASKING_WORD = rf"(?:how|what|who|whom|whose|which|(?:when|where|why)(?='s|’s|\s+{AUXILIARY}\b))"
_VERB_FIRST = (
    rf"{AUXILIARY}(?:n't|n’t)?\s+"
    r"(?:it|its|they|their|he|she|this|that|these|those|there|the|an?|i|you|we|one|any|all|my|your|(?-i:[A-Z])\w*)"
)
_PREPOSITION = r"(?:(?:in|on|at|by|for|from|to|with|of|under|until|since)\s+)?"
_STARTS = rf"(?:{_PREPOSITION}{_ASKING_WORD}|{_VERB_FIRST})"
_QUESTIONS = re.compile(r"(?<=\?)\s+")
_JOINED = re.compile(
    rf"(?:[;,]?\s+(?P<link>and|but|or)\s+(?:also\s+|then\s+)?(?={_STARTS}\b)"
    # Without "and", what follows a comma may be a clause: "the file, which is read first".
    rf"|[;,]\s+(?:also\s+)?(?=(?:how|what|why)\b|{_VERB_FIRST}\b)|;\s+)",
    re.I,
)
_BOTH = re.compile(r"(?P<one>how|when|where|why|who)\s+and\s+(?P<other>how|when|where|why|who|by whom)\s+", re.I)
_VERSUS = re.compile(r"\s(?:vs\.?|versus|compared (?:to|with))\s", re.I)
_BETWEEN = re.compile(
    r"\b(?:differences?|comparison|relationship|similarit(?:y|ies)|connection|trade-?offs?) between\s", re.I
)
_COMPARE = re.compile(r"^(?:please\s)?(?:compare|contrast)\s", re.I)
_AND = re.compile(r"\s(?:and|with|to)\s", re.I)
_ASKS = re.compile(rf"{_PREPOSITION}(?:how|what|when|where|why|who|whom|whose|which|{AUXILIARY})\b", re.I)
_POLITE = re.compile(r"(?:please\s+)?(?:(?:can|could) you\s+)?(?:tell me|explain|describe)\s+(?=how|what|who|wh)", re.I)
_THING = r"(?:\s+(?:ones?|values?|settings?|options?|parameters?|commands?|files?|limits?|numbers?))?"
_POINTING = re.compile(
    r"\b(?:it(?!\s+(?:possible|necessary|safe|enough|better)\b)|they|them|he|she|him|her(?!\s\w)"
    rf"|(?:this|these|those){_THING}|that{_THING.removesuffix('?')}|one(?=\W*$))\b",
    re.I,
)
_DEFINITE = re.compile(r"\bthe\s+\w+\W*$", re.I)
_ASKS_AMOUNT = re.compile(
    r"(?:and |but |so )?(?:how (?:much|many)|what|which) [\w-]+"
    r"(?: (?:is|are|was|were) (?:needed|required|necessary|due|given|allowed|there)"
    r"| (?:do|does|must|should|can|may) (?:i|we|you|one|they)"
    r" (?:have to |need to )?(?:give|need|have|get|pay|take))?\W*",
    re.I,
)
"""Asks for an amount, and does not say of what: "how much notice do I have to give"."""
_ABOUT = re.compile(r"(?:and |but |so )?(?:what|how) about\s+(?!\w+ing\b)(?P<other>.+)", re.I)
_AND_NAME = re.compile(
    r"(?:and|but|so) (?P<other>(?:the )?"
    r"(?:(?-i:[A-Z])[\w'’-]*(?: (?-i:[A-Z0-9])[\w'’.-]*)*|\w+[-_.]\w[\w.-]*))[?!. ]*",
    re.I,
)
"""Asks the same of something else that has a name: "And the Mini?"."""
_THE_NAME = re.compile(r"the ([A-Z].*)", re.S)
_CODE = re.compile(r"(\w+[-_.])[\w.-]+")
"""Names of which several begin alike: tw-ingest and tw-rollup."""
_NAME = re.compile(r"(?<=\s)[A-Z][\w'’-]+(?: [A-Z0-9][\w'’-]*)*")
_FIGURE_OF = re.compile(r"the (?P<figure>[\w -]+?) of (?P<owner>.+)", re.I)
_ASKS_WHO = re.compile(r"(?:and |but |so )?(?:by )?(?:who|whom|whose)\b", re.I)
_OF_FIGURES = re.compile(
    r"\b(?:set|chang|chos|choos|decid|defin|determin|rais|lower|increas|reduc|measur|agre|fix)\w*", re.I
)
"""Verbs of what is done with a figure itself."""
_OWNING = re.compile(r"\b(?:its|their|his|her)\b", re.I)


def decompose(query: str) -> tuple[str, ...]:
    """Return the two to four parts of a compound query, or nothing if it asks for one thing."""
    if len(query) > _LONGEST:
        return ()
    parts = _questions(query) or _split_comparison(query)
    kept = tuple(dict.fromkeys(part for part in map(_trim, parts) if _says_something(part)))
    return kept[:MOST_PARTS] if len(kept) > 1 else ()


def _questions(query: str) -> list[str]:
    """Split several questions one after another, or joined by "and how", "; "."""
    if both := _BOTH.match(query):
        rest = query[both.end() :]
        return [f"{both['one']} {rest}", f"{both['other']} {rest}"]
    parts = [part for whole in _QUESTIONS.split(query) for part in _split_joined(whole)]
    return parts if len(parts) > 1 else []


def _split_joined(text: str) -> list[str]:
    ends = [(match.start(), match.end()) for match in _JOINED.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    return [text[start:end] for start, end in zip(starts, [*(start for start, _ in ends), len(text)], strict=True)]


def _split_comparison(query: str) -> list[str]:
    """Return the two sides of a comparison."""
    sides = _VERSUS.split(query, maxsplit=1)
    if len(sides) == 2:
        return sides
    frame = _BETWEEN.search(query) or _COMPARE.match(query)
    return _AND.split(query[frame.end() :], maxsplit=1) if frame else []


def _trim(part: str) -> str:
    return part.strip(" \t\r\n,;:.?!")


def _says_something(part: str) -> bool:
    return any(term not in STOP_WORDS for term in analyze_query(part))


def split_question(question: str) -> tuple[str, ...]:
    """Return the parts of a question, each with what it refers to; empty if they are not separate questions.

    What is asked with "or" is one question: its parts exclude each other.
    """
    parts = decompose(_POLITE.sub("", question))
    if any((match["link"] or "").lower() == "or" for match in _JOINED.finditer(question[:_LONGEST])):
        return ()
    if not all(is_question(part) for part in parts):
        return ()
    whole: list[str] = []
    topic = ""
    for part in parts:
        whole.append(complete(part, whole[-1], topic) if whole else part)
        topic = find_topic(whole[-1]) or topic
    return tuple(whole)


def complete(part: str, before: str, topic: str) -> str:
    """Return a question with what it leaves to the question before it, and to the topic of that one."""
    if about := _match_swap(part):
        return swap_name(before, about["other"].rstrip(" ?!."))
    if points_back(part):
        return insert_topic(part, topic)
    is_open = lacks_subject(part) or (_ASKS_AMOUNT.fullmatch(part) is not None and not has_own_subject(part))
    return f"{part} ({topic})" if topic and is_open else part


def is_swap(question: str) -> bool:
    """Return whether a question asks the same of something else: "What about Windows?"."""
    return _match_swap(question) is not None


def _match_swap(question: str) -> re.Match[str] | None:
    return _ABOUT.match(question) or _AND_NAME.fullmatch(question)


def swap_name(question: str, other: str) -> str:
    """Return a question asked of something else: its last name replaced by a name, or the other thing added."""
    asked = question.rstrip(" ?!.")
    if (code := _CODE.fullmatch(other)) and (alike := re.search(rf"(?<![\w-]){re.escape(code[1])}[\w.-]*", asked)):
        return f"{asked[: alike.start()]}{other}{asked[alike.end() :]}"
    names = list(_NAME.finditer(asked))
    if names and (bare := _THE_NAME.fullmatch(other)):
        other = bare[1]
    named = other[:1].isupper() and names
    return f"{asked[: names[-1].start()]}{other}{asked[names[-1].end() :]}" if named else f"{asked} ({other})"


def _find_owner(part: str, topic: str) -> str:
    """Return what has the figure that a topic is, where somebody is asked for: nobody owns a port, but a server."""
    figure = _FIGURE_OF.fullmatch(topic)
    if figure is None or _ASKS_WHO.match(part) is None or _OF_FIGURES.search(part):
        return topic
    return figure["owner"] if find_asked_kind(f"what {figure['figure']}") in MEASURED else topic


def lacks_subject(question: str) -> bool:
    """Return whether a question names only a property ("What is the maximum?") or nothing at all."""
    if has_own_subject(question) or len(telling_terms(question)) > 1:
        return False
    return not telling_terms(question) or _DEFINITE.search(question) is not None


def telling_terms(question: str) -> set[str]:
    """Return the terms of a question that have a meaning of their own."""
    return {term for term in analyze_query(question) if term not in ASKING and term not in STOP_WORDS}


def is_question(question: str) -> bool:
    """Return whether it begins as a question does."""
    return _ASKS.match(question) is not None


def points_back(question: str) -> bool:
    """Return whether a word in it stands for something that was named before."""
    return bool(_POINTING.search(question) or _OWNING.search(question))


def insert_topic(part: str, topic: str) -> str:
    """Return the part with the topic in place of the first word that points back to it."""
    if not topic:
        return part
    topic = _find_owner(part, topic)
    replaced = _POINTING.sub(lambda _: topic, part, count=1)
    return replaced if replaced != part else _OWNING.sub(lambda _: f"{topic}'s", part, count=1)

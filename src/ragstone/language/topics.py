"""The subject of a question: what "it" and the like stand for in the question that follows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.language.grammar import QUANTIFYING, Token, is_known_verb, tokenize, words_of
from ragstone.language.names import QUESTION_WORDS, find_first_name, is_identifier
from ragstone.language.relevance import ASKING

_QUOTED_CODE = re.compile(r"`([^`\n]{1,80})`|(?<![\w-])(--?[A-Za-z][\w-]{0,40})(?![\w-])")
_WORD = re.compile(r"[^\s,;:!?()\"“”„«»]{1,100}")
_CODE_SIGN = re.compile(r"[_./:$@#]|\d")
_NOMINAL = ("word", "s", "name", "number")
_MEASURES = words_of("year years day days date month time century hour week kind type sort way case extent")
"""Nouns behind "which" that say what form an answer has, and not what it is about."""
_PARTICIPLES = words_of("written given taken known shown chosen driven hidden broken drawn grown thrown worn begun run")
_MOST_CLAUSE = 8
"""Words of a relative clause that names what was asked for."""


def find_topic(question: str) -> str:
    """Return what a question is about: code, the thing that it chooses among, a name, or the first noun; or ""."""
    words = tokenize(question)
    return (
        _find_code(question)
        or _find_chosen(question, words)
        or _find_named(question, words)
        or _find_noun(question, words)
    )


def has_own_subject(question: str) -> bool:
    """Return whether a question has code or a name in it."""
    return bool(_find_code(question) or find_first_name(question))


def _find_code(question: str) -> str:
    """Return the first setting, option, path or quoted code."""
    if quoted := _QUOTED_CODE.search(question):
        return quoted[1] or quoted[2]
    words = (match.group().strip(".'’") for match in _WORD.finditer(question))
    return next((word for word in words if is_identifier(word) and _CODE_SIGN.search(word)), "")


def _find_chosen(question: str, words: Sequence[Token]) -> str:
    """Return the noun of "Which port does the server use" with what says which one: "the port of the server"."""
    if len(words) < 3 or words[0].word not in ("which", "what"):
        return ""
    # "Which command lists branches": what ends in s behind a noun is its verb.
    ends = (n for n in range(1, len(words)) if _ends_a_noun(words[n]) or (n > 1 and words[n].kind == "s"))
    end = next(ends, len(words))
    if end in (1, len(words), len(words) - 1) or words[end - 1].word in _MEASURES:
        return ""
    noun = f"the {question[words[1].start : words[end - 1].end]}"
    rest = words[end:]
    if rest[0].kind == "auxiliary":
        owner = _find_noun(question, rest)
        return f"{noun} of {owner}" if owner else noun
    if len(rest) > _MOST_CLAUSE:
        return noun
    return f"{noun} that {question[rest[0].start :].rstrip(' ?!.')}"


def _find_named(question: str, words: Sequence[Token]) -> str:
    """Return the first name, with the noun that it belongs to: "the fare to Sula"."""
    name = find_first_name(question)
    if not name:
        return ""
    start = question.index(name)
    before = [word for word in words if word.end <= start]
    noun = _noun_span(before[:-1]) if before and before[-1].kind == "preposition" else None
    if noun and noun[1] == len(before) - 1:
        return question[before[noun[0]].start : start + len(name)]
    return name


def _find_noun(question: str, words: Sequence[Token]) -> str:
    span = _noun_span(words)
    if span is None:
        return ""
    start, end = span
    if end < len(words) - 1 and words[end].word == "of":
        following = _noun_span(words[end + 1 :])
        end = end + 1 + following[1] if following and following[0] == 0 else end
    if words[start].word in QUANTIFYING:
        start += 1
    return question[words[start].start : words[end - 1].end]


def _noun_span(words: Sequence[Token]) -> tuple[int, int] | None:
    """Return where the first noun with an article begins and ends, or else the first noun."""
    starts = [n for n, word in enumerate(words) if word.kind == "determiner"]
    starts += [n for n, word in enumerate(words) if _is_noun(word) and not (n and _precedes_a_verb(words[n - 1]))]
    for start in starts:
        inner = start + (words[start].kind == "determiner")
        end = next((n for n in range(inner, len(words)) if _ends_a_noun(words[n])), len(words))
        if end > inner:
            return start, end
    return None


def _is_noun(word: Token) -> bool:
    asks = word.word in QUESTION_WORDS or word.word in ASKING
    return word.kind in ("word", "s", "name") and not asks and not is_known_verb(word.word)


def _precedes_a_verb(word: Token) -> bool:
    return word.kind == "pronoun" or word.word == "to"


def _ends_a_noun(word: Token) -> bool:
    return word.kind not in _NOMINAL or word.word in _PARTICIPLES or is_known_verb(word.word)

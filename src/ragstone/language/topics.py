"""The subject of a question: what "it" and the like stand for in the question that follows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.language.grammar import BE, MODALS, QUANTIFYING, Token, is_known_verb, tokenize, words_of
from ragstone.language.names import QUESTION_WORDS, find_first_name, is_identifier
from ragstone.language.relevance import ASKING

_QUOTED_CODE = re.compile(r"`([^`\n]{1,80})`|(?<![\w-])(--?[A-Za-z][\w-]{0,40})(?![\w-])")
_GIVEN = re.compile(r"\(([^()]{2,80})\)\W*$")
"""The topic of an earlier question, added to one that leaves it out."""
_WORD = re.compile(r"[^\s,;:!?()\"“”„«»]{1,100}")
_CODE_SIGN = re.compile(r"[_./:$@#]|\d")
_NOMINAL = ("word", "s", "name", "number")
_MEASURES = words_of("year years day days date month time century hour week kind type sort way case extent")
"""Nouns behind "which" that say what form an answer has, and not what it is about."""
_PARTICIPLES = words_of(
    "written given taken known shown chosen driven hidden broken drawn grown thrown worn begun run rid"
)
_ADJECTIVES = words_of("open clean clear close fit live complete separate lower direct")
"""Verbs that behind a noun are more often adjectives: "is the shop open"."""
_MOST_CLAUSE = 8
"""Words of a relative clause that names what was asked for."""


def find_topic(question: str) -> str:
    """Return what a question is about: code, the thing that it chooses among, a name, or the first noun; or ""."""
    if given := _GIVEN.search(question):
        return given[1]
    words = tokenize(question)
    return (
        _find_code(question)
        or _find_chosen(question, words)
        or _find_subject(question, words)
        or _find_named(question, words)
        or _find_noun(question, words)
    )


def find_head(question: str) -> str:
    """Return the noun itself of what a question is about: "entries" of "the old entries of a list"; or ""."""
    topic = find_topic(question)
    words = tokenize(topic)
    end = next((n for n, word in enumerate(words) if n and word.kind == "preposition"), len(words))
    return words[end - 1].word if words else ""


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
        owner = _find_subject(question, rest) or _find_noun(question, rest)
        return f"{noun} of {owner}" if owner else noun
    if len(rest) > _MOST_CLAUSE:
        return noun
    return f"{noun} that {question[rest[0].start :].rstrip(' ?!.')}"


def _find_subject(question: str, words: Sequence[Token]) -> str:
    """Return the noun behind the first auxiliary: "How long does the server wait"."""
    place = next((n for n, word in enumerate(words) if word.kind == "auxiliary"), len(words))
    rest = words[place + 1 :]
    if place < len(words) and words[place].word in BE:
        # No verb stands right behind "is the": "the test lead", "the port".
        return _read_noun(question, rest, 0, verbs=False)
    end = _end_of_noun(rest, 0)
    has_verb = end < len(rest) and (rest[end].kind == "auxiliary" or is_known_verb(rest[end].word))
    if end > 1 and words[place].word in MODALS and not has_verb and rest[end - 2].kind != "determiner":
        rest = rest[: end - 1]  # its last word is the verb: "does the server listen"
    return _read_noun(question, rest, 0)


def _find_named(question: str, words: Sequence[Token]) -> str:
    """Return the first name, with the noun it belongs to ("a site in Django") or owns ("Django's cache")."""
    name = find_first_name(question)
    if not name.endswith(("'s", "’s")):
        noun = _find_noun(question, words)
        return noun if noun.endswith(name) else name
    rest = question[question.index(name) :]
    return _read_noun(rest, tokenize(rest), 0) or name


def _find_noun(question: str, words: Sequence[Token]) -> str:
    """Return the first noun with an article, or else the first noun."""
    starts = [n for n, word in enumerate(words) if word.kind == "determiner"]
    starts += [n for n, word in enumerate(words) if not (n and _precedes_no_noun(words[n - 1]))]
    nouns = [noun for start in starts if (noun := _read_noun(question, words, start))]
    return next((noun for noun in nouns if noun.lower() not in _MEASURES), next(iter(nouns), ""))


def _read_noun(question: str, words: Sequence[Token], start: int, *, verbs: bool = True) -> str:
    """Return the noun that begins at a place, with what belongs to it: "the size of the cache"; or ""."""
    end = _end_of_noun(words, start, verbs=verbs)
    if end > start and end + 1 < len(words) and words[end].kind == "preposition":
        owner = _end_of_noun(words, end + 1)
        if owner > end + 1 and (words[end].word == "of" or words[end + 1].kind in ("name", "determiner")):
            end = owner
    if end > start and words[start].word in QUANTIFYING:
        start += 1
    return question[words[start].start : words[end - 1].end] if end > start else ""


def _end_of_noun(words: Sequence[Token], start: int, *, verbs: bool = True) -> int:
    """Return the place behind the noun that begins at a place; the place itself where none does.

    Without `verbs`, what may be one is a noun.
    """
    inner = start
    if start < len(words) and words[start].kind == "determiner":
        # What follows an article belongs to its noun: "my stashed changes".
        inner += 1 + (start + 2 < len(words) and words[start + 1].kind == "participle")
        if inner >= len(words) or words[inner].kind not in _NOMINAL:
            return start
        inner += 1
    elif start >= len(words) or not _is_noun(words[start]):
        return start
    ends = (n for n in range(inner, len(words)) if _ends_a_noun(words[n], verbs=verbs) or not _is_next(words, n))
    return next(ends, len(words))


def _is_next(words: Sequence[Token], place: int) -> bool:
    """Return whether only a space is between a word and the one before it."""
    return place == 0 or words[place].start == words[place - 1].end + 1


def _is_noun(word: Token) -> bool:
    asks = word.word in QUESTION_WORDS or word.word in ASKING
    return word.kind in ("word", "s", "name") and not asks and not is_known_verb(word.word)


def _precedes_no_noun(word: Token) -> bool:
    """Return whether a verb or an adverb follows: "we respond", "to respond", "who responds", "how fast"."""
    return word.kind == "pronoun" or word.word in ("to", "how", "who")


def _ends_a_noun(word: Token, *, verbs: bool = True) -> bool:
    if word.kind not in _NOMINAL or word.word in _PARTICIPLES:
        return True
    return word.word in _ADJECTIVES or (verbs and is_known_verb(word.word))

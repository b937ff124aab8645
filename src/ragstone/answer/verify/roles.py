"""Roles that a statement exchanges: who acts and who is acted on, from and to, before and after, cause and effect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragstone.answer.verify.fit import read_clauses
from ragstone.language.grammar import (
    ADVERBS,
    BE,
    OWNING,
    PREPOSITIONS,
    QUANTIFYING,
    is_known_verb,
    is_verb_form,
    words_of,
)
from ragstone.language.inflection import base_forms
from ragstone.language.negation import find_figures
from ragstone.language.synonyms import are_alike
from ragstone.language.vocabulary import Word, content_words

_TOKEN = re.compile(r"[^\W_][\w'’.&-]{0,60}(?<![.'’-])|[,;:()]")
_PASSED = OWNING | QUANTIFYING | words_of("and or & two three four five his her their its")
"""Words inside a noun phrase."""
_TO_BE = BE | words_of("be been being got gets")
_MUTUAL = words_of(
    "meet marry border equal resemble differ adjoin neighbor share connect join link wed fight play merge"
)
"""Verbs whose two sides are the same."""
_CONVERSE = (
    (words_of("sell"), words_of("buy purchase acquire")),
    (words_of("give grant hand award present donate send supply deliver"), words_of("receive get obtain accept")),
    (words_of("lend loan"), words_of("borrow")),
    (words_of("teach train"), words_of("learn study")),
    (words_of("defeat beat"), words_of("lose")),
    (words_of("lease rent let"), words_of("rent hire lease")),
)
_CLAUSE_MARKS = words_of(
    "when while after before because since although though who which that whose where as if unless until so but"
) | frozenset(",;:()")
MOST_TOKENS = 120


@dataclass(frozen=True, slots=True)
class Roles:
    """The words on the two sides of a verb: who acts, what is acted on, and to whom."""

    agents: tuple[Word, ...]
    patients: tuple[Word, ...]
    recipients: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int


@lru_cache(512)
def read_roles(clause: str) -> tuple[tuple[str, Roles], ...]:
    """Return the verbs of a clause with the words in their roles."""
    tokens = [_Token(match.group(), match.start()) for match in _TOKEN.finditer(clause)][:MOST_TOKENS]
    words = {word.start: word for word in content_words(clause)}
    found = []
    for place, token in enumerate(tokens):
        word = words.get(token.start)
        if word is not None and not word.is_name and _is_verb(tokens, place):
            found.append((word.folded, _read_roles(tokens, place, words)))
    return tuple(found)


def _is_verb(tokens: Sequence[_Token], place: int) -> bool:
    word = tokens[place].text.lower()
    before = tokens[place - 1].text.lower() if place else ""
    if before in OWNING | QUANTIFYING:
        return False
    verbal = word.endswith(("ed", "ing")) or is_verb_form(word)
    return verbal and not (before in PREPOSITIONS and before != "to" and not word.endswith("ing"))


def _read_roles(tokens: Sequence[_Token], place: int, words: dict[int, Word]) -> Roles:
    left = range(place - 1, _clause_start(tokens, place) - 1, -1)
    right = range(place + 1, _clause_end(tokens, place))
    before = [words[tokens[n].start] for n in left if tokens[n].start in words and not _governor(tokens, n)]
    by = next((n for n in right if tokens[n].text.lower() == "by"), None)
    if by is not None and _is_passive(tokens, place, by):
        agents = [
            words[tokens[n].start] for n in range(by + 1, _clause_end(tokens, by)) if _is_led(tokens, n, "by", words)
        ]
        return Roles(tuple(agents), tuple(before), ())
    if _follows_be(tokens, place) and not tokens[place].text.lower().endswith("ing"):
        return Roles((), tuple(before), _led_by(tokens, right, "to", words))
    after = [words[tokens[n].start] for n in right if tokens[n].start in words and not _governor(tokens, n)]
    return Roles(tuple(before), tuple(after), _led_by(tokens, right, "to", words))


def _clause_start(tokens: Sequence[_Token], place: int) -> int:
    return next((n + 1 for n in range(place - 1, -1, -1) if tokens[n].text.lower() in _CLAUSE_MARKS), 0)


def _clause_end(tokens: Sequence[_Token], place: int) -> int:
    return next((n for n in range(place + 1, len(tokens)) if tokens[n].text.lower() in _CLAUSE_MARKS), len(tokens))


def _led_by(tokens: Sequence[_Token], places: range, lead: str, words: dict[int, Word]) -> tuple[Word, ...]:
    return tuple(words[tokens[n].start] for n in places if _is_led(tokens, n, lead, words))


def _is_led(tokens: Sequence[_Token], place: int, lead: str, words: dict[int, Word]) -> bool:
    return tokens[place].start in words and _governor(tokens, place) == lead


def _is_passive(tokens: Sequence[_Token], place: int, by: int) -> bool:
    """Return whether a verb with a "by" behind it is in the passive; "grew by 5 %" is not."""
    if tokens[place].text.lower().endswith("ing") or by - place > 8:
        return False
    return _follows_be(tokens, place) or by - place <= 2


def _follows_be(tokens: Sequence[_Token], place: int) -> bool:
    for token in reversed(tokens[max(0, place - 4) : place]):
        word = token.text.lower()
        if word in _TO_BE:
            return True
        if word not in ADVERBS and not word.endswith("ly") and word not in ("not", "never", "have", "had", "has"):
            return False
    return False


def _governor(tokens: Sequence[_Token], place: int) -> str:
    """Return the preposition that leads to a word, or ""."""
    for token in reversed(tokens[max(0, place - 8) : place]):
        word = token.text.lower()
        if word in PREPOSITIONS:
            return word
        if (
            word[0].isdigit()
            or word in ",;:()"
            or (word not in _PASSED and (is_known_verb(word) and not token.text[0].isupper()))
        ):
            return ""
        if word in _TO_BE:
            return ""
    return ""


def is_role_changed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether somebody does in a statement what is done to them in its sources, or the reverse."""
    told = [roles for sentence in sentences for clause in read_clauses(sentence) for roles in read_roles(clause.text)]
    for clause in read_clauses(statement):
        for verb, mine in read_roles(clause.text):
            if not base_forms(verb).isdisjoint(_MUTUAL):
                continue
            same = [theirs for other, theirs in told if are_alike(verb, other) and _speak_of_same(mine, theirs)]
            if same and all(_is_reversed(mine, theirs) for theirs in same):
                return True
    return False


def _speak_of_same(mine: Roles, theirs: Roles) -> bool:
    here, there = (*mine.agents, *mine.patients), (*theirs.agents, *theirs.patients, *theirs.recipients)
    return any(_has(there, word) for word in here)


def _is_reversed(mine: Roles, theirs: Roles) -> bool:
    acts = _only_in(mine.agents, (*theirs.patients, *theirs.recipients), theirs.agents)
    suffers = _only_in(mine.patients, theirs.agents, (*theirs.patients, *theirs.recipients))
    if acts and suffers:
        return True
    return any(word.is_name for word in (*acts, *suffers))


def _only_in(words: Sequence[Word], here: Sequence[Word], not_here: Sequence[Word]) -> list[Word]:
    return [word for word in words if _has(here, word) and not _has(not_here, word)]


def _has(words: Sequence[Word], word: Word) -> bool:
    return any(_are_same(word, other) for other in words)


def _are_same(one: Word, other: Word) -> bool:
    return one.folded == other.folded if one.is_name or other.is_name else are_alike(one.folded, other.folded)


def is_converse(statement: str, sentence: str) -> bool:
    """Return whether one tells a deal from the other side: A bought it of B, B sold it to A."""
    for verb, mine in read_roles(statement):
        for other, theirs in read_roles(sentence):
            for pair in _CONVERSE:
                for first, second in (pair, pair[::-1]):
                    if not base_forms(verb).isdisjoint(first) and not base_forms(other).isdisjoint(second):
                        receiver = (*theirs.recipients, *(word for word in theirs.patients if word.is_name))
                        if _overlap(mine.agents, receiver) or _overlap(mine.recipients, theirs.agents):
                            return not _overlap(mine.agents, theirs.agents)
    return False


def _overlap(mine: Sequence[Word], theirs: Sequence[Word]) -> bool:
    return any(_has(theirs, word) for word in mine)


_FROM_TO = re.compile(r"\bfrom\s(?P<start>[^;]{1,80}?),?\s(?:to|into)\s(?P<end>[^;,]{1,60})", re.I)


def is_way_reversed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether "from" and "to" are exchanged."""
    for mine in _FROM_TO.finditer(statement):
        for sentence in sentences:
            for theirs in _FROM_TO.finditer(sentence):
                straight = _share(mine["start"], theirs["start"]) + _share(mine["end"], theirs["end"])
                crossed = _share(mine["start"], theirs["end"]) + _share(mine["end"], theirs["start"])
                if crossed > straight:
                    return True
    return False


def _share(mine: str, theirs: str) -> int:
    """Return how many words and numbers of one text the other has."""
    here, there = content_words(mine), content_words(theirs)
    numbers = set(re.findall(r"\d[\d,.]*", theirs))
    return sum(_has(there, word) for word in here) + sum(number in numbers for number in re.findall(r"\d[\d,.]*", mine))


_ORDER = re.compile(r"\b(?P<mark>before|after|until|following|prior to|once|followed by|preceded by)\b", re.I)
_FIRST_BEFORE = words_of("before until") | {"prior to", "followed by"}
_CAUSE = re.compile(
    r"\b(?P<behind>because(?: of)?|due to|owing to|thanks to|on account of|as a result of|result(?:s|ed|ing)? from"
    r"|(?:was|were|is|are|been) caused by|stem(?:s|med)? from|attributed to|blamed on"
    r"|since(?! (?:\d|then|version|release)))\b"
    r"|\b(?P<front>caus(?:e[sd]?|ing)(?! of)|led to|lead(?:s|ing)? to|result(?:s|ed|ing)? in|therefore|hence"
    r"|consequently|as a result(?! of)|brought about|prompt(?:s|ed|ing)|trigger(?:s|ed|ing)?|which is why)\b",
    re.I,
)
_MAY_BE_CAUSE = re.compile(
    r"\b(?:because|since|as|due|owing|thanks|caus\w+|led|leads?|leading|result\w*|so|therefore|thus|hence|consequen\w+"
    r"|why|reasons?|mak(?:es|ing)|forc(?:es|ed|ing)|mean(?:s|t|ing)|prompt\w*|trigger\w*|after|when|blam\w+"
    r"|attribut\w+|explain\w*|account\w*|owe[sd]?|responsible|brought)\b",
    re.I,
)


def _pairs(text: str, marks: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield what comes first and what follows, or cause and effect, for each mark of a sentence."""
    for mark in marks.finditer(text):
        left, right = text[: mark.start()], text[mark.end() :]
        if len(left.split()) < 2:
            # "After it had landed, the crew left": the mark is in front, a comma ends what belongs to it.
            right, comma, rest = right.partition(", ")
            left = rest if comma else ""
        if not left.strip() or not right.strip():
            continue
        if marks is _ORDER:
            yield (left, right) if mark["mark"].lower() in _FIRST_BEFORE else (right, left)
        else:
            yield (right, left) if mark["behind"] else (left, right)


def is_order_reversed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether the sources tell what a statement puts first as the later one."""
    for first, then in _pairs(statement, _ORDER):
        pairs = [pair for sentence in sentences for pair in _pairs(sentence, _ORDER)]
        if any(_is_crossed((first, then), pair) for pair in pairs):
            return True
        place, later = _best_place(first, sentences), _best_place(then, sentences)
        if not pairs and place is not None and later is not None and place > later:
            return True
    return False


def is_cause_changed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether a statement gives another cause than its sources, or one where they give none."""
    for cause, effect in _pairs(statement, _CAUSE):
        near = [sentence for sentence in sentences if _share(cause + " " + effect, sentence)]
        if not any(_MAY_BE_CAUSE.search(sentence) for sentence in near):
            return True
        pairs = [pair for sentence in near for pair in _pairs(sentence, _CAUSE)]
        if any(_is_crossed((cause, effect), pair) for pair in pairs):
            return True
        told = [told for told, result in pairs if _share(effect, result)]
        if told and not any(_share(cause, reason) for reason in told):
            return True
    return False


def _is_crossed(mine: tuple[str, str], theirs: tuple[str, str]) -> bool:
    straight = _share(mine[0], theirs[0]) + _share(mine[1], theirs[1])
    crossed = _share(mine[0], theirs[1]) + _share(mine[1], theirs[0])
    return crossed > straight + 1


def _best_place(part: str, sentences: Sequence[str]) -> int | None:
    """Return the sentence that holds most of a part, if it holds half of it and no other as much."""
    counts = [_share(part, sentence) for sentence in sentences]
    most = max(counts, default=0)
    size = len(content_words(part)) + len(find_figures(part))
    if not most or 2 * most < size or counts.count(most) > 1:
        return None
    return counts.index(most)

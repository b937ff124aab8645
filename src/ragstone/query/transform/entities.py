"""Other names of what a query asks for, read from the kb's own first passages.

"Role Based Access Control (RBAC)" gives the long form for the short one and the other way round; a name that the
passages keep giving more fully ("Dent" as "Arthur Dent") is given in full.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.sentences import STARTERS
from ragstone.query.transform.proposals import Proposal

MOST_NAMES = 4
_READ = 20_000
"""Characters of a passage that are looked at."""
_MOST_BRACKETS = 50
_SHORT = r"[A-Z][A-Za-z0-9&-]{0,8}[A-Z0-9]"
_IN_BRACKETS = re.compile(rf"\(({_SHORT})s?\)")
_LONG_IN_BRACKETS = re.compile(rf"\b({_SHORT})s? \(([A-Za-z][\w' -]{{3,100}})\)")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_UNBROKEN = re.compile(r"[\w'’/&-]+(?:\s+[\w'’/&-]+)*")
_PHRASE = re.compile(r"[A-Z][\w'’-]{1,30}(?: [A-Z][\w'’-]{1,30}){1,3}")
_SMALL = STOP_WORDS | {"the", "of", "and", "for", "in", "to", "a"}


def other_names(query: str, passages: Sequence[str]) -> Proposal:
    """Propose long forms of the query's acronyms, acronyms of its phrases, and the full forms of its names."""
    texts = [passage[:_READ] for passage in passages]
    phrasings: list[str] = []
    words: list[str] = []
    for short, long in _pairs(texts):
        if _has(query, short) and not _has(query, long, ignore_case=True):
            phrasings.append(_spelt_with(long, short, query))
            words.append(long)
        elif _has(query, long, ignore_case=True) and not _has(query, short):
            words.append(short)
    words += _full_names(query, texts)
    return Proposal(meaning=tuple(dict.fromkeys(phrasings))[:2], words=tuple(dict.fromkeys(words))[:MOST_NAMES])


def _pairs(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield short forms with their long forms, the most frequent first."""
    found: Counter[tuple[str, str]] = Counter()
    spelling: dict[tuple[str, str], tuple[str, str]] = {}
    for short, long in (pair for text in texts for pair in _find_definitions(text)):
        key = (short, long.casefold())
        found[key] += 1
        spelling.setdefault(key, (short, long))
    yield from (spelling[key] for key, _ in found.most_common())


def _find_definitions(text: str) -> Iterator[tuple[str, str]]:
    for match in islice(_IN_BRACKETS.finditer(text), _MOST_BRACKETS):
        before = text[max(0, match.start() - 120) : match.start()].rstrip()
        if long := _spelt_out(match[1], before):
            yield match[1], long
    for match in islice(_LONG_IN_BRACKETS.finditer(text), _MOST_BRACKETS):
        words = match[2].split()
        if _initials_fit(match[1], words):
            yield match[1], " ".join(words)


def _spelt_out(short: str, before: str) -> str:
    """Return the last words before a bracket whose initials are the letters inside it, or ""."""
    words = list(_WORD.finditer(before))
    for count in range(2, min(len(words), 2 * len(short)) + 1):
        long = before[words[-count].start() :]
        if not _UNBROKEN.fullmatch(long):
            break
        if _initials_fit(short, long.split()):
            return " ".join(long.split())
    return ""


def _initials_fit(short: str, words: Sequence[str]) -> bool:
    letters = "".join(letter for letter in short if letter.isalnum()).casefold()
    parts = [part for word in words for part in re.split(r"[-/]", word) if part]
    every = "".join(part[0] for part in parts).casefold()
    great = "".join(part[0] for part in parts if part.casefold() not in _SMALL).casefold()
    return len(letters) > 1 and letters in (every, great) and parts[0].casefold() not in _SMALL


def _full_names(query: str, texts: Sequence[str]) -> list[str]:
    """Return capitalised phrases that at least two passages have and that hold a name of the query."""
    names = {word for word in _WORD.findall(query) if word[0].isupper() and word.casefold() not in _SMALL}
    if not names:
        return []
    seen: Counter[str] = Counter()
    for text in texts:
        phrases = {_without_starters(phrase) for phrase in _PHRASE.findall(text)}
        seen.update(phrase for phrase in phrases if " " in phrase and names & set(phrase.split()))
    fuller = [phrase for phrase, count in seen.most_common() if count > 1 and not _has(query, phrase)]
    return fuller[:2]


def _without_starters(phrase: str) -> str:
    """Return the phrase without first words that have a capital only because a sentence begins there."""
    words = phrase.split()
    while words and words[0].casefold() in STARTERS:
        words.pop(0)
    return " ".join(words)


def _spelt_with(long: str, short: str, query: str) -> str:
    return _spelling(short).sub(lambda match: long, query)


def _has(text: str, part: str, *, ignore_case: bool = False) -> bool:
    return _spelling(part, re.IGNORECASE if ignore_case else re.NOFLAG).search(text) is not None


def _spelling(part: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern of the words as they are, or as a plural."""
    return re.compile(rf"\b{re.escape(part)}s?\b", flags)

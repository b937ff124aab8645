"""What a query names: products, places and people by their spelling, days and times by their form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.sentences import STARTERS
from ragstone.query.routing.kind import ASKS, is_telling

MOST_NAMES = 20
LONGEST_NAME = 6
"""Words of a name."""
_READ = 4000
"""Characters of a passage that are looked at."""
_MOST_PASSAGES = 10
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_ORDINAL = r"[0-3]?\d(?:st|nd|rd|th)?"
_DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})"
    rf"|{_ORDINAL} (?:of )?{_MONTH}(?:,? \d{{4}})?\b|{_MONTH} {_ORDINAL}\b(?:,? \d{{4}})?|{_MONTH} \d{{4}}"
    rf"|(?:(?:this|next|last|every|on) )?{_DAY}(?: (?:morning|afternoon|evening|night))?"
    r"|(?:this|next|last) (?:week(?:end)?|month|year|morning|afternoon|evening|quarter|spring|summer|autumn|winter)"
    r"|(?:(?<=\bin )|(?<=\bsince )|(?<=\bby )|(?<=\bof ))(?:1[5-9]|20)\d\d"
    r"|today|tonight|tomorrow|yesterday|(?:1[0-2]|0?[1-9])(?::[0-5]\d)? ?[ap]m|(?:[01]?\d|2[0-3]):[0-5]\d)\b",
    re.I,
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")
_WORD = re.compile(r"[^\s,;:!?()\"“”„«»]{1,100}")
_OPENING_WORDS = (
    "i'm i'd i've tell show give find compare list explain describe please hello hi hey dear thanks help need "
    "want looking let ok yes any search check buy order book reserve cancel"
)
_NOT_A_NAME = ASKS | STOP_WORDS | STARTERS | frozenset(_OPENING_WORDS.split())
_RUN = re.compile(r"[A-Z][\w'’-]{0,30}(?: (?:[A-Z][\w'’-]{0,30}|\d{1,6}[A-Za-z]{0,3})){0,5}")


def find_dates(text: str) -> tuple[str, ...]:
    """Days and times of a query, as it spells them, in order."""
    found = (" ".join(match.group().split()) for match in _DATE.finditer(text))
    return tuple(dict.fromkeys(islice(found, MOST_NAMES)))


def find_names(text: str) -> tuple[str, ...]:
    """Quoted phrases, identifiers and runs of capitalised words; dates are none, nor is how a sentence begins."""
    bare = _DATE.sub(lambda match: "," * len(match.group()), text)
    quoted = [" ".join(match[1].split()) for match in _QUOTED.finditer(bare)]
    runs = _runs(_QUOTED.sub(" , ", bare))
    return tuple(dict.fromkeys(islice((*quoted, *runs), MOST_NAMES)))


def find_spelt_names(query: str, passages: Iterable[str]) -> tuple[str, ...]:
    """Names of two words and more that passages write with capitals and the query says, as the passages spell them."""
    words = [match.group().rstrip(".").casefold() for match in _WORD.finditer(query)]
    said = {" ".join(part) for part in _parts(words)}
    found: dict[str, str] = {}
    for passage in islice(passages, _MOST_PASSAGES):
        for run in _RUN.finditer(passage[:_READ]):
            spelt = run.group().split(" ")
            if len(spelt) > 1 and not said.isdisjoint(map(" ".join, pairwise(map(str.casefold, spelt)))):
                name = next((name for name in map(" ".join, _parts(spelt)) if name.casefold() in said), "")
                found.setdefault(name.casefold(), name)
    return tuple(name for name in found.values() if name)[:MOST_NAMES]


def _runs(text: str) -> Iterator[str]:
    """Words next to each other that are spelt like names."""
    run: list[str] = []
    end = -1
    for match in _WORD.finditer(text):
        word = match.group().rstrip(".").removesuffix("'s").removesuffix("’s")
        goes_on = run and text[end : match.start()] == " " and len(run) < LONGEST_NAME
        if run and not (goes_on and _belongs(word)):
            yield from _closed(run)
            run = []
        if run or _begins(word):
            run.append(word)
        end = match.end()
    yield from _closed(run)


def _begins(word: str) -> bool:
    if word.casefold() in _NOT_A_NAME or not any(letter.isalpha() for letter in word):
        return False
    return word[0].isupper() or is_telling(word)


def _belongs(word: str) -> bool:
    """Whether a word goes on a name: another one, or a number."""
    return _begins(word) or word.isdigit()


def _closed(run: list[str]) -> Iterator[str]:
    name = " ".join(run)
    if len(name) > 1:
        yield name


def _parts(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Two words and more that stand together and may be a name, the longest first; no name begins with "The"."""
    for count in range(min(len(words), LONGEST_NAME), 1, -1):
        for start in range(len(words) - count + 1):
            if words[start].casefold() not in _NOT_A_NAME:
                yield words[start : start + count]

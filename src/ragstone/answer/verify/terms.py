"""Terms of entries and rows: what a claim says of one of them may be said of another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ragstone.answer.quotes import label
from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.frame import is_neutral
from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.shares import find_flags
from ragstone.answer.verify.support import find_missing_figures
from ragstone.answer.verify.verbatim import split_term
from ragstone.language.vocabulary import GENERIC, Word, content_words, read_vocabulary

_ARGUMENT = re.compile(r"\s*(?:[=\[<({]|\s(?=[A-Z]{3,}\b)).*")
"""Behind a name: the values it takes."""
_SAME_AS = re.compile(r"\b(?:same as|synonym\w*|alias\w*|equivalent|identical|like above|see)\b", re.I)
_FILE = re.compile(r"[~/.]?[\w-]*(?:[/.][\w-]+)+")
_MOST_WORDS, _LONGEST = 3, 40
_ARTICLES = ("a", "A", "I")
_LEAST_TOLD, _FEWEST_TOLD = 0.75, 2


def find_named_terms(claim: str, units: Iterable[AnswerUnit]) -> frozenset[str]:
    """Return the terms of a claim that entries, rows and sentences of units explain by something of their own."""
    explained = {name for unit in units if not _SAME_AS.search(unit.text) for name in find_terms(unit)}
    return frozenset(name for name in explained if _stands_in(name, claim))


def find_terms(unit: AnswerUnit) -> Iterator[str]:
    """Yield the names that a unit explains: options, the term of its entry, the label of its row, a file."""
    term = unit.term.text if unit.term else split_term(unit)[0]
    term = label(unit.quote) if unit.quote.head is not None else term
    if flags := find_flags(term or unit.text):
        yield from flags
    elif term:
        name = _ARGUMENT.sub("", term.split(",")[0].strip("`'\"*: "), count=1).strip("`'\"*: ")
        if name and len(name) <= _LONGEST and len(name.split()) <= _MOST_WORDS and name not in _ARTICLES:
            yield name
    elif (file := _FILE.match(unit.text)) is not None:
        yield file.group().rpartition("/")[2]


def find_other_term(claim: str, unit: AnswerUnit, told: str, titles: str, terms: Iterable[str]) -> Rival | None:
    """Return the term of a unit that says what a claim says of another term, or None.

    `told` are the words of the unit, `titles` those far above it, and `terms` those of the claim that are explained.
    """
    own = list(find_terms(unit))
    # What a page is about is no term among others.
    named = [term for term in terms if not _stands_in(term.casefold(), titles.casefold())]
    if not own or not named or any(_stands_in(term, claim) for term in own):
        return None
    if any(_stands_in(term, f"{unit.above}\n{told}") for term in named) or find_missing_figures(claim, told):
        return None
    words = [word for word in content_words(claim) if not _is_of_name(word, claim, named) and not _says_little(word)]
    said, above = read_vocabulary(told), read_vocabulary(titles)
    held = sum(map(said.has_itself, words))
    both = sum(said.has_itself(word) or above.has(word) for word in words)
    if held < _FEWEST_TOLD or both < _LEAST_TOLD * len(words):
        return None
    return Rival(max(named, key=len), own[0], is_term=True)


def _stands_in(term: str, text: str) -> bool:
    return term in text and re.search(rf"(?<![\w-]){re.escape(term)}(?![\w-]|\.\w)", text) is not None


def _is_of_name(word: Word, claim: str, names: Sequence[str]) -> bool:
    return any(word.text in name and name in claim for name in names)


def _says_little(word: Word) -> bool:
    return word.folded in GENERIC or is_neutral(word.folded)

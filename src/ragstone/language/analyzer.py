"""The lexical analyzer of English text, and of text whose language is unknown (`language.terms` has the others).

Text is folded (compatibility forms, diacritics, case), cut into words, freed of English function words and
stemmed. An identifier such as `hook.player.connected` or `SKU-12345` stays whole and is split as well, so it
is found by its name and by its parts. Scripts written without spaces become pairs of characters.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain, pairwise
from string import ascii_letters, ascii_lowercase

import Stemmer

FINGERPRINT = f"ragstone-2+snowball-{Stemmer.version()}"
"""Changes whenever the same text would give other terms: an index of another fingerprint must be rebuilt."""

MAX_TERM = 64
"""Longer terms are cut, longer identifiers are kept by their parts only."""
CACHED_TOKENS = 50_000

FUNCTION_WORDS = (
    "a about am an and are as at be been being but by can could did do does doing for from had has have having "
    "he her his how i if in into is it its me my no nor not of on or our she should so such than that the their "
    "them then there these they this those to was we were what when where which while why will with would "
    "you your e.g i.e"
)
STOP_WORDS = frozenset(FUNCTION_WORDS.split())

IRREGULAR = frozenset(["die", "lie", "tie"])
"""Stems that differ from a word of theirs before its last letter: dying, lying, tying."""

# Han, kana, Hangul, Thai, Lao, Myanmar and Khmer: no spaces between words, or particles glued to them.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u104f\u1100-\u11ff\u1780-\u17d3\u3005-\u3007\u3040-\u30ff"
    "\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs are not word characters to `re`, yet a Hindi word is one word.
INDIC = "\u0900-\u0963\u0966-\u0dff"
LETTERS = rf"(?:[^\W_{UNSPACED}]|[{INDIC}])++"


def _token_pattern(letters: str) -> str:
    return rf"@?+{letters}(?:[-._/@:'+\\]{{1,2}}{letters})*(?:\+\+|#)?"


ASCII_TOKEN = re.compile(_token_pattern("[A-Za-z0-9]++"), re.ASCII)
TOKEN = re.compile(_token_pattern(LETTERS) + rf"|[{UNSPACED}]++")
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
PLAIN = re.compile(r"[a-z]+|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
COARSE = re.compile(r"[/@:\\]+")
FINE = re.compile(r"[-._'+#@/:\\]+")
# A capital before lower case starts a word; letters and digits part.
HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
ACRONYM_PLURAL = re.compile(r"(?<=[A-Z]{2})s$")
_DOTTED = re.compile(r"\.[a-z]")
"""Within an acronym, whose letters are separated."""
ACRONYM = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
# The comma comes first, so that the rest is tried only where there is one.
GROUPED_DIGITS = re.compile(r",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
CONTRACTION = re.compile(r"'(?:s|re|ve|ll|d|m)$")
MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u00ad\u200c\u200d\u2060\ufeff]+")
LOOKALIKES = {
    "’": "'",
    "‘": "'",
    "ʼ": "'",
    "‐": "-",
    "‑": "-",
    "\u200b": " ",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
} | {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "þ": "th", "ı": "i"}
LOOKALIKE = re.compile(f"[{''.join(LOOKALIKES)}]")
# Holds no word, and sorting a long run of combining marks takes quadratic time.
SYMBOL_RUN = re.compile(r"[^\w\s\x00-\x7f]{32,}+")
FOREIGN_RUN = re.compile(r"[^\x00-\x7f]+")
CACHED_RUNS = 4096
_SHORT_RUN = 8
"""Characters of a run that is likely to come again: most are a quotation mark, a Greek letter or an accent."""

TermsOfWord = Callable[[str], Iterable[str]]
reader: ContextVar[Callable[[str], list[str]] | None] = ContextVar("reader", default=None)
"""Gives the terms of a text while a question in another language than English is answered."""
_local = threading.local()
_MOST_SOUGHT = 24
"""Terms of which more take longer to be looked for one by one than a text to be analyzed."""
_SHORT = 2000
"""Characters of the longest text whose terms are kept."""


def analyze(text: str) -> list[str]:
    """Return the terms of a text in order, repeats kept; of another language within `language.terms.reading`."""
    read = reader.get()
    return read(text) if read else analyze_english(text)


def analyze_english(text: str) -> list[str]:
    """Return the terms of a text as English."""
    return list(_terms_of_short(text)) if len(text) <= _SHORT else _terms(text) or _terms(text, keep_stop_words=True)


@lru_cache(1024)
def _terms_of_short(text: str) -> tuple[str, ...]:
    """Return the terms of a text, kept: sentences that are compared are read many times."""
    return tuple(_terms(text) or _terms(text, keep_stop_words=True))


def analyze_query(text: str) -> list[str]:
    """Return the terms to look for, each once, in order of first use."""
    return list(dict.fromkeys(analyze(text)))


def find_terms(terms: AbstractSet[str], text: str) -> set[str]:
    """Return those of the terms that a text has, as analyzing the whole text would find, in less time.

    Only words that hold most of a term's letters are analyzed.
    """
    plain = GROUPED_DIGITS.sub("", fold(text)).replace("\n", " ")
    folded = plain.casefold()
    stop_words = not all(map(_known.__getitem__, terms))
    if reader.get() or stop_words or len(folded) != len(plain) or len(terms) > _MOST_SOUGHT:
        return set(analyze(text)) & terms
    words = {_word_at(plain, match.start()) for match in _DOTTED.finditer(folded)}
    for head in set(map(_head, terms)):
        at = folded.find(head)
        while at >= 0:
            if at and plain[at] in ascii_lowercase and plain[at - 1] in ascii_letters:
                at = folded.find(head, at + 1)  # in the middle of a word, where no term begins
            else:
                words.add(_word_at(plain, at))
                at = folded.find(head, plain.find(" ", at) % (len(plain) + 1))
    return set(_terms(" ".join(words))) & terms


def _word_at(text: str, at: int) -> str:
    """Return what stands between the spaces around a place."""
    return text[text.rfind(" ", 0, at) + 1 : text.find(" ", at) % (len(text) + 1)]


def fold(text: str) -> str:
    """Return the text without compatibility forms, diacritics and invisible marks; case is kept."""
    return text if text.isascii() else FOREIGN_RUN.sub(_fold_match, text)


def _fold_match(match: re.Match[str]) -> str:
    run = match.group()
    return _fold_short(run) if len(run) <= _SHORT_RUN else _fold_run(run)


def _fold_run(run: str) -> str:
    plain = LOOKALIKE.sub(lambda match: LOOKALIKES[match.group()], SYMBOL_RUN.sub(" ", run))
    return unicodedata.normalize("NFC", MARKS.sub("", unicodedata.normalize("NFKD", plain)))


_fold_short = lru_cache(CACHED_RUNS)(_fold_run)


def _terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    folded = GROUPED_DIGITS.sub("", fold(text))
    pattern = ASCII_TOKEN if folded.isascii() else TOKEN
    tokens = pattern.findall(folded)
    if keep_stop_words:
        return [term for token in tokens for term in _known[token] or (token.casefold()[:MAX_TERM],)]
    return list(chain.from_iterable(map(_known.__getitem__, tokens)))


class _KnownTokens(dict[str, tuple[str, ...]]):
    """The terms of each token that was looked up, found out at the first time and kept up to a limit."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        terms = tuple(token_terms(token, english_word))
        if len(token) <= MAX_TERM:
            if len(self) >= CACHED_TOKENS:
                self.clear()
            self[token] = terms
        return terms


_known = _KnownTokens()


def token_terms(token: str, word: TermsOfWord) -> Iterator[str]:
    """Yield the terms of a token; `word` gives those of a word in it."""
    if PLAIN.fullmatch(token):
        yield from word(token)
    elif UNSPACED_RUN.match(token):
        yield from _pairs(token)
    elif ACRONYM.fullmatch(token):
        yield from word(token.replace(".", "")) if token.casefold() not in STOP_WORDS else ()
    elif DECIMAL.fullmatch(token):
        yield token[:MAX_TERM]
    else:
        yield from dict.fromkeys(_compound(token, word))


def english_word(word: str) -> Iterable[str]:
    """Return the stem of a word, or nothing if it is a function word."""
    folded = word.casefold()[:MAX_TERM]
    return () if folded in STOP_WORDS else (_stem(folded),)


def _head(term: str) -> str:
    """Return what every word with this term holds: the stemmer changes little but the last letters."""
    return term[:1] if term in IRREGULAR else term[: -2 if len(term) > 4 else -1] or term


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second


def _compound(token: str, word: TermsOfWord) -> Iterator[str]:
    """Yield the terms of an identifier: the whole of it, the segments of a path or address, and the words inside."""
    if token.casefold().endswith("n't"):
        return
    bare = CONTRACTION.sub("", token)
    folded = bare.casefold()
    for segment in (folded, *COARSE.split(folded)):
        if len(segment) <= MAX_TERM and FINE.search(segment):
            yield segment
    for atom in filter(None, FINE.split(bare)):
        yield from _atom(atom, word)


def _atom(atom: str, word: TermsOfWord) -> Iterator[str]:
    """Yield the terms of a name between separators: as it is, as a word, and by the words inside."""
    name = ACRONYM_PLURAL.sub("", atom)
    humps = HUMPS.findall(name) if name.isascii() else ()
    if len(humps) > 1 and len(name) <= MAX_TERM:
        yield name.casefold()
    # As a word too, since people type `moduleControllerCreate` in lower case.
    yield from word(name)
    if len(humps) > 1:
        for hump in humps:
            yield from word(hump)


def _stem(word: str) -> str:
    # A stemmer is not safe to share between threads.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english", 0)
    return str(_local.stemmer.stemWord(word))

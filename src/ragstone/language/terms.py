"""Terms of texts by their language: those of a document, and those to look for in the languages that a kb has.

English text, and text whose language is unknown, has the plain terms of `language.analyzer`. A word of another
language is stemmed by that language's Snowball stemmer and marked with it (`haus~de`), so that what other languages do
to a word cannot change which English text is found. Function words are indexed and left out of queries only: a query
of nothing else still finds something. Numbers, identifiers and words of another script have no mark.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial

import Stemmer

from ragstone.language.analyzer import (
    CACHED_TOKENS,
    GROUPED_DIGITS,
    MAX_TERM,
    STOP_WORDS,
    SYMBOL_RUN,
    TOKEN,
    analyze_english,
    english_word,
    fold,
    reader,
    token_terms,
)
from ragstone.language.function_words import FUNCTION_WORDS
from ragstone.language.stop_words import STEMMERS

MARK = "~"
"""Stands between a stem and its language; no token has it."""
READ = 20_000
"""Characters of a document that are looked at for its language."""
MOST_STEMMINGS = 3
LATIN_ONLY = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+")
OTHER_SCRIPTS = frozenset(
    [
        "ar",
        "be",
        "bg",
        "bn",
        "el",
        "fa",
        "gu",
        "he",
        "hi",
        "hy",
        "ka",
        "kk",
        "kn",
        "mk",
        "ml",
        "mn",
        "mr",
        "ne",
        "pa",
        "ru",
        "si",
        "sr",
        "ta",
        "te",
        "uk",
        "ur",
    ]
)
"""Languages whose words are not written in Latin letters: those that are belong to English."""
WITHOUT_SPACES = frozenset(["ja", "km", "ko", "lo", "my", "th", "zh"])
"""Languages whose words are indexed as pairs of characters, the same for all."""
SCRIPTS = {
    "ru": re.compile("[\u0400-\u052f]"),
    "el": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "ar": re.compile("[\u0621-\u064a]"),
    "hy": re.compile("[\u0531-\u0587]"),
    "hi": re.compile("[\u0904-\u0939]"),
    "ta": re.compile("[\u0b85-\u0bb9]"),
}
"""The language to assume for text in a script when none was detected."""
ALIASES = {"nb": "no", "nn": "no"}
APOSTROPHE = re.compile("['’‘ʼ`´]")
JOINED_BY_HYPHEN = re.compile("[‐‑]")
WORD = re.compile(r"[^\W\d_]+")

FOLDED_FIRST = frozenset(["da", "de", "es", "fi", "fr", "it", "nl", "no", "pt", "sv"])
"""Languages whose stems come out as well without diacritics: a query may be typed without them."""
BEFORE_STEMMING = {
    "da": ((re.compile("aa"), "a"), (re.compile("oe"), "o")),
    "de": ((re.compile("ae"), "a"), (re.compile("oe"), "o"), (re.compile("(?<![aeoq])ue"), "u")),
    "fr": ((re.compile("ees?$"), "é"), (re.compile("ifs?$"), "ive")),
    "no": ((re.compile("aa"), "a"), (re.compile("oe"), "o")),
    "pt": (
        (re.compile("c(?:ao|oes)$"), "ção"),
        (re.compile("[ao]es$"), "ao"),
        (re.compile("ns$"), "m"),
        (re.compile("([aeo])is$"), r"\1l"),
    ),
}
"""Spellings of the same letter, and plurals that the stemmer leaves apart."""
AFTER_STEMMING = {
    "es": ((re.compile("z$"), "c"),),
    "it": ((re.compile("(?<=...)[aeio]$"), ""),),
    "fi": ((re.compile("([uy])ks$"), r"\1s"), (re.compile("ng$"), "nk")),
}

HYPHENED = re.compile(r"[A-Za-z]{1,20}-[A-Za-z]{1,20}")
PREFIXED = re.compile(
    r"(e(?=mail|book|commerc|learn|ticket|read|bik|sign)|wi(?=fi)|on(?=line|site)|off(?=line|site)|web(?=sit|pag|cam)"
    r"|non|sub|self|multi|anti)([a-z]{2,20})"
)
PARTICLED = re.compile(
    r"(log|sign|check|plug|opt|drop|walk|back|set|start|clean|follow|look|mark|pick|pop|roll|round|warm|cut|kick|lay|pay"
    r"|play|shut|take|turn|print|read|time|work|hand|break|cool|count|lock|touch)(in|on|off|out|up|down)"
)
"""English words that are written with a hyphen as well: email, login."""

_local = threading.local()


def analyze_chunks(texts: Sequence[str], language: str) -> tuple[str, ...]:
    """Return the terms of each chunk of a document in that language, joined by blanks."""
    chosen = choose_language(language, " ".join(texts)[:READ])
    return tuple(" ".join(terms_of(text, chosen)) for text in texts)


def terms_of(text: str, language: str = "") -> list[str]:
    """Return the terms of a text in order, repeats kept; `language` is one that `choose_language` returned."""
    if not language:
        return analyze_english(text)
    return [term for token in _tokens(text) for term in _terms_in(language, token)] or analyze_english(text)


@contextmanager
def reading(language: str) -> Iterator[None]:
    """Have `analyzer.analyze` read texts as a language, without its function words; "" changes nothing."""
    token = reader.set(partial(_telling_terms, language) if language else None)
    try:
        yield
    finally:
        reader.reset(token)


def _telling_terms(language: str, text: str) -> list[str]:
    tokens = _tokens(text)
    telling = [token for token in tokens if not is_function_word(token, language)]
    return [term for token in telling or tokens for term in _terms_in(language, token)]


def terms_asked(query: str, languages: Collection[str] = ()) -> list[tuple[str, ...]]:
    """Return for each word of a query the terms that stand for it, one for each language of the kb that has one.

    An English word is looked for with and without its hyphen: e-mail and email, Wi-Fi and wifi.
    """
    asked = {term: {term: True} for term in analyze_english(query)}
    joined = {word.casefold(): english_word(word.replace("-", "")) for word in HYPHENED.findall(fold(query))}
    for term, spellings in asked.items():
        spellings.update(dict.fromkeys(joined.get(term) or _add_hyphen(term), True))
    tokens = _tokens(query) if languages else []
    for language in languages:
        telling = [token for token in tokens if not is_function_word(token, language)]
        for token in telling or tokens:
            plain = tuple(token_terms(fold(token), english_word)) or (fold(token).casefold(),)
            for place, term in enumerate(_terms_in(language, token)):
                if MARK in term:
                    asked.setdefault(plain[min(place, len(plain) - 1)], {})[term] = True
    return [tuple(terms) for terms in asked.values()]


def _add_hyphen(term: str) -> Iterator[str]:
    for spelt in (PREFIXED, PARTICLED):
        if parts := spelt.fullmatch(term):
            yield f"{parts[1]}-{parts[2]}"


def languages_of(terms: Iterable[str]) -> set[str]:
    """Return the languages of analysed texts; each text is in one."""
    return {text[at + 1 :].split(" ", 1)[0] for text in terms if (at := text.find(MARK)) >= 0}


def choose_language(language: str, text: str) -> str:
    """Return the language to analyse a text by, which was detected as the given one; "" for English."""
    chosen = ALIASES.get(language, language)
    if not chosen:
        return _language_of_script(text)
    if chosen == "en" or chosen in WITHOUT_SPACES:
        return ""
    return chosen if chosen in OTHER_SCRIPTS or not _looks_english(chosen, text) else ""


def _language_of_script(text: str) -> str:
    letters = len(WORD.findall(text)) and sum(map(len, WORD.findall(text)))
    counts = {language: len(script.findall(text)) for language, script in SCRIPTS.items()}
    language = max(counts, key=counts.__getitem__)
    return language if 2 * counts[language] > letters else ""


def _looks_english(language: str, text: str) -> bool:
    """Return whether a text has more function words of English than of the language that was detected."""
    words = fold(text).casefold().split()
    english = sum(word in STOP_WORDS for word in words)
    if language in FUNCTION_WORDS:
        own = _folded(language)
        return english > sum(word in own for word in words)
    return 5 * english > len(words)


def _tokens(text: str) -> list[str]:
    spaced = APOSTROPHE.sub(" ", SYMBOL_RUN.sub(" ", text))
    return TOKEN.findall(GROUPED_DIGITS.sub("", unicodedata.normalize("NFKC", JOINED_BY_HYPHEN.sub("-", spaced))))


@lru_cache(CACHED_TOKENS)
def _terms_in(language: str, token: str) -> tuple[str, ...]:
    return tuple(token_terms(token, partial(_terms_of_word, language)))


def _terms_of_word(language: str, word: str) -> Iterator[str]:
    lowered = word.casefold()[:MAX_TERM]
    if lowered.isdigit() or (LATIN_ONLY.fullmatch(lowered) is not None) == (language in OTHER_SCRIPTS):
        yield from english_word(fold(word))
    else:
        yield f"{_stem(language, lowered)}{MARK}{language}"


def _stem(language: str, word: str) -> str:
    """Return the stem of a word in lower case, without diacritics."""
    if language not in STEMMERS:
        return fold(word)
    stem = fold(word) if language in FOLDED_FIRST else word
    for pattern, spelling in BEFORE_STEMMING.get(language, ()):
        stem = pattern.sub(spelling, stem)
    for _ in range(MOST_STEMMINGS):
        # Not every stem is its own stem: without this "ciudades" and "ciudad" would differ.
        before, stem = stem, _stemmer(language).stemWord(stem)
        if stem == before:
            break
    for pattern, spelling in AFTER_STEMMING.get(language, ()):
        stem = pattern.sub(spelling, stem)
    return fold(stem)


def _stemmer(language: str) -> Stemmer.Stemmer:
    # A stemmer is not safe to share between threads.
    if not hasattr(_local, "stemmers"):
        _local.stemmers = {}
    if language not in _local.stemmers:
        _local.stemmers[language] = Stemmer.Stemmer(STEMMERS[language], 0)
    return _local.stemmers[language]


def is_function_word(word: str, language: str = "") -> bool:
    """Return whether a word is a function word of a language; "" is English."""
    return fold(word).casefold() in (_folded(language) if language else STOP_WORDS)


@cache
def _folded(language: str) -> frozenset[str]:
    return frozenset(fold(word) for word in FUNCTION_WORDS.get(language, ()))

"""Read the sentences of a document that enrichment looks at, with the stem of each word."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import Stemmer

from ragstone.core.types import Parsed
from ragstone.language.analyzer import INDIC, UNSPACED
from ragstone.language.sentences import sentence_spans
from ragstone.language.stop_words import STEMMERS, stop_words

MAX_BYTES = 8 * 1024
"""What one list of names or keywords may take, as it is stored."""
HEAD = 12_000
MIDDLE = 6_000
MAX_HEADINGS = 200
MAX_HEADING = 300
RUN_ON = 1000
"""A longer piece without one whole sentence is read nevertheless."""
MAX_WORD = 40
CACHED_TOKENS = 50_000
PROSE = ("paragraph", "quote", "list")

_TOKEN = rf"[^\W_][\w{INDIC}]*+(?:[-'’.][\w{INDIC}]++)*+(?:\+\+|#)?|[^\w\s]"
_TOKENS = re.compile(_TOKEN)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s)\]>]++")
_ELIDED_TOKENS = re.compile(rf"(?:\b(?:qu|[cdjlmnst])['’])|{_TOKEN}", re.IGNORECASE)
_ELIDING = ("ca", "fr", "it")
"""Their articles melt into the next word: "l'université"."""
_UNUSABLE = re.compile(rf"[\d.,-]++$|.*[{UNSPACED}]|.*'$")
"""A number, a script without spaces between its words, an elided article."""


@dataclass(frozen=True)
class StemmedSentence:
    """A sentence as it stands in the text, its words and marks, and the stem of each."""

    text: str
    tokens: tuple[str, ...]
    stems: tuple[str, ...]
    """Empty for a function word, a number or a mark."""

    @cached_property
    def terms(self) -> frozenset[str]:
        """Return the stems that carry meaning, each once."""
        return frozenset(self.stems) - {""}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The parts of a document that are read; without prose its sentences are lines of code or of tables."""

    language: str
    title: StemmedSentence
    headings: tuple[StemmedSentence, ...]
    sentences: tuple[StemmedSentence, ...]
    has_prose: bool


def read_excerpt(parsed: Parsed) -> Excerpt:
    """Cut the prose of a document, or what there is instead, into sentences and words."""
    language = str(parsed.metadata.get("language") or "")
    has_prose = any(block.kind in PROSE for block in parsed.blocks)
    labels = [block.label[:MAX_HEADING] for block in parsed.blocks if block.kind == "heading"][:MAX_HEADINGS]
    texts = [parsed.title[:MAX_HEADING], *labels, *_sentences(parsed, prose_only=has_prose)]
    find = (_ELIDED_TOKENS if language in _ELIDING else _TOKENS).findall
    tokens = [tuple(find(_without_addresses(text))) for text in texts]
    stem_of = _find_stems({token for row in tokens for token in row}, language)
    title, *sentences = [
        StemmedSentence(text, row, tuple(stem_of[token] for token in row))
        for text, row in zip(texts, tokens, strict=True)
    ]
    headings = len(labels)
    return Excerpt(language, title, tuple(sentences[:headings]), tuple(sentences[headings:]), has_prose)


def _sentences(parsed: Parsed, *, prose_only: bool) -> Iterator[str]:
    for start, end in _windows(len(parsed.text)):
        for block in parsed.blocks:
            if block.kind == "heading" or (prose_only and block.kind not in PROSE):
                continue
            if block.start < end and block.end > start:
                piece = parsed.text[max(block.start, start) : min(block.end, end)]
                yield from _whole_sentences(piece, cut_before=block.start < start, cut_behind=block.end > end)


def _windows(length: int) -> list[tuple[int, int]]:
    if length <= HEAD + MIDDLE:
        return [(0, length)]
    middle = max(HEAD, (length - MIDDLE) // 2)
    return [(0, HEAD), (middle, middle + MIDDLE)]


def _whole_sentences(piece: str, *, cut_before: bool, cut_behind: bool) -> Iterator[str]:
    """Yield the whole sentences of a piece, without those that the window cuts through."""
    spans = sentence_spans(piece)
    whole = spans[cut_before : len(spans) - cut_behind]
    for start, end in whole or (spans if len(piece) > RUN_ON else ()):
        yield piece[start:end]


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub(" ", text) if "://" in text or "www." in text else text


def _find_stems(tokens: Collection[str], language: str) -> dict[str, str]:
    """Return the stem of each token; empty for those without meaning. Stems of earlier documents are cached."""
    met = _stem_cache(language)
    stems = {token: stem for token in tokens if (stem := met.get(token)) is not None}
    new = [token for token in tokens if token not in stems]
    if new:
        made = _stem(new, language)
        if len(met) > CACHED_TOKENS:
            met.clear()  # another thread may read from it: what it misses, it makes
        met.update({token: stem for token, stem in made.items() if len(token) <= MAX_WORD})
        stems.update(made)
    return stems


@lru_cache(maxsize=16)
def _stem_cache(language: str) -> dict[str, str]:
    return {}


def _stem(tokens: Iterable[str], language: str) -> dict[str, str]:
    stops = stop_words(language)
    folded = {token: token.casefold().replace("’", "'") for token in tokens}
    telling = {
        token: word
        for token, word in folded.items()
        if 1 < len(word) <= MAX_WORD and word not in stops and not _UNUSABLE.match(word)
    }
    stemmer = Stemmer.Stemmer(STEMMERS.get(language, "english"), 0)
    stemmed = stemmer.stemWords([word.removesuffix("'s") for word in telling.values()])
    return dict.fromkeys(folded, "") | dict(zip(telling, stemmed, strict=True))


def take_fitting(texts: Iterable[str]) -> list[str]:
    """Return the first texts of a list, as many as fit its share of the metadata."""
    kept = []
    left = MAX_BYTES
    for text in texts:
        left -= len(json.dumps(text)) + 2
        if left < 0:
            break
        kept.append(text)
    return kept

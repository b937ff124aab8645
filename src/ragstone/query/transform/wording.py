"""Plain cleaning of what is embedded. Matching by word folds case, drops function words and stems anyway."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ragstone.language.analyzer import STOP_WORDS, analyze, fold
from ragstone.settings.retrieval import Transform

_WORD = re.compile(r"\S+")
_AROUND = ".,;:!?\"'()[]"


def normalize(text: str) -> str:
    """Return the text in lower case, without accents, compatibility forms, repeated spaces and end marks."""
    return " ".join(fold(text).lower().split()).rstrip(".?!,;: ") or text


def without_stop_words(text: str) -> str:
    """Return the text without English function words, unless it has no others."""
    kept = [word for word in text.split() if word.strip(_AROUND).lower() not in STOP_WORDS]
    return " ".join(kept) or text


def stem_words(text: str) -> str:
    """Return each word as its stem; identifiers stay whole."""
    return _WORD.sub(lambda match: _stem(match.group()), text)


def _stem(word: str) -> str:
    bare = word.strip(_AROUND)
    if not bare.isalpha() or bare.lower() in STOP_WORDS:
        return word
    return word.replace(bare, analyze(bare)[0], 1)


CLEANING: Mapping[Transform, Callable[[str], str]] = {
    "normalize": normalize,
    "stop_words": without_stop_words,
    "stem": stem_words,
}


def build_cleaner(names: frozenset[str]) -> Callable[[str], str]:
    """Return a function that applies the cleanings of these names in a fixed order."""
    steps = [clean for name, clean in CLEANING.items() if name in names]

    def clean(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return clean

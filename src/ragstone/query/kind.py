"""The kind of a query by its form, and how much the two arms weigh for it.

Names, quoted phrases and bare noun phrases are looked for by their words, questions and descriptions by their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.names import QUESTION_WORDS, is_code, is_identifier
from ragstone.language.noun_phrases import is_noun_phrase
from ragstone.settings.retrieval import Fusion

Kind = Literal["names", "phrase", "product", "term", "title", "mixed", "question", "description", "statement"]

NAME_WEIGHT = 0.2
"""The dense arm's weight when only a name is asked for: it knows what a name is about, not how it is spelt."""
MOST_WEIGHT: Mapping[Kind, float] = {
    "names": NAME_WEIGHT,
    "phrase": 0.3,
    "product": 0.3,
    "term": 0.48,
    "title": 0.5,
    "mixed": 0.5,
}
"""The dense arm's highest weight where spelling counts."""
NAME_WEIGHT_OF_RANKS = 0.02
"""The same for a name when ranks are fused: twenty ranks differ by a quarter only, so that less is still heard."""
MEANT: frozenset[Kind] = frozenset({"question", "description"})
"""Kinds of query where meaning counts."""
TOWARDS_MEANING = 1 / 6
"""Share of the lexical arm's weight that the dense arm gets there: more cost the sample corpus its best answers."""

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{1,200})[\"”“»]")
_AROUND = "`'\"()?!.,;:“”„«»"
_SHORT = 6
"""Words of a description; what is longer states something, and its many words can be trusted as they are."""


def asks_for_names(query: str) -> bool:
    """Return whether every word of the query is spelt like an identifier."""
    words = [word.strip("`'\"()?,;") for word in query.strip().strip("`'\"()").split()]
    return bool(words) and all(is_identifier(word) or _is_hyphenated_name(word) for word in words)


def query_kind(query: str, language: str = "") -> Kind:
    """Return the kind of a query by its form: spelling, quotes, question words, length. `language` "" is English."""
    if asks_for_names(query):
        return "names"
    if _QUOTED.fullmatch(query.strip()):
        return "phrase"
    words = [bare for word in query.split() if (bare := word.strip(_AROUND))]
    if _is_title(words):
        return "product" if any(map(is_code, words)) else "title"
    if _QUOTED.search(query) or any(map(is_identifier, words)):
        return "mixed"
    if query.rstrip().endswith("?") or (len(words) > 1 and not language and words[0].lower() in QUESTION_WORDS):
        return "question"
    if not query.rstrip().endswith((".", "!")) and is_noun_phrase(words, language):
        return "term"
    return "description" if 1 < len(words) <= _SHORT else "statement"


def dense_weight(query: str, configured: float, *, fusion: Fusion = "zscore", language: str = "") -> float:
    """Return the weight of the dense arm for this query; a configured 0 or 1 stays."""
    if configured in (0, 1):
        return configured
    kind = query_kind(query, language)
    if kind == "names" and fusion == "weighted_rrf":
        return min(configured, NAME_WEIGHT_OF_RANKS)
    moved = configured + (1 - configured) * TOWARDS_MEANING if kind in MEANT else configured
    return min(moved, MOST_WEIGHT.get(kind, 1.0))


def _is_hyphenated_name(word: str) -> bool:
    """Return whether a word is one of three or more parts, such as x-admin-token; state-of-the-art is not."""
    parts = word.lower().split("-")
    return len(parts) > 2 and all(part.isalnum() and part not in STOP_WORDS for part in parts)


def _is_title(words: Sequence[str]) -> bool:
    """Return whether a few words are all capitalised or codes, such as iPhone 15 Pro or Kestrel Sound."""
    if not 1 < len(words) <= _SHORT or words[0].lower() in QUESTION_WORDS | STOP_WORDS:
        return False
    return all(word[0].isupper() or is_code(word) for word in words)

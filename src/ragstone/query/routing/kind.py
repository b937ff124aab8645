"""What kind of query it is, as far as that decides whom to trust more: spelling or meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from ragstone.language.analyzer import STOP_WORDS

Kind = Literal["names", "phrase", "product", "title", "mixed", "question", "description", "statement"]

NAME_WEIGHT = 0.2
"""The dense arm's say when only a name is asked for: it knows what a name is about, not how it is spelt."""
MOST_SAY: Mapping[Kind, float] = {
    "names": NAME_WEIGHT,
    "phrase": 0.3,
    "product": 0.3,
    "title": 0.5,
    "mixed": 0.5,
}
"""The dense arm's most say where spelling counts."""
MEANT: frozenset[Kind] = frozenset({"question", "description"})
"""Where meaning counts."""
TOWARDS_MEANING = 1 / 6
"""The share of the lexical arm's say that goes to the dense arm there: more cost the sample corpus its best answers."""

_NAME = re.compile(
    r"[A-Za-z$@][\w$@]*(?:(?:[./:#]|::|->)[\w$@-]+)+"  # hook.player.connected, @scope/package, Type::method
    r"|[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*"  # moduleControllerCreate
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]\w*"  # ModuleController, HTTPServer
    r"|\w+_\w+"  # snake_case, UPPER_CASE
    r"|(?=\S*[A-Za-z])(?=\S*[0-9])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"  # SKU-12345, v2, iso9001
)
_LONGEST_NAME = 100
"""A longer word is no name; matching it would take time that grows faster than its length."""
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{1,200})[\"”“»]")
_QUESTION_WORDS = (
    "how what when where why who whose whom which is are was were do does did can could should will would"
)
ASKS = frozenset(_QUESTION_WORDS.split())
"""Words that questions begin with."""
_AROUND = "`'\"()?!.,;:“”„«»"
_SHORT = 6
"""Words of a description; what is longer states something, and its many words can be trusted as they are."""


def asks_for_names(query: str) -> bool:
    """Whether every word of the query is spelt like an identifier."""
    words = query.strip().strip("`'\"()").split()
    return bool(words) and all(_is_name(word.strip("`'\"()?,;")) for word in words)


def query_kind(query: str) -> Kind:
    """What a query is by its form: how its words are spelt, quotes, question words, length."""
    if asks_for_names(query):
        return "names"
    if _QUOTED.fullmatch(query.strip()):
        return "phrase"
    words = [bare for word in query.split() if (bare := word.strip(_AROUND))]
    if _is_title(words):
        return "product" if any(map(is_telling, words)) else "title"
    if _QUOTED.search(query) or any(map(_is_name, words)):
        return "mixed"
    if query.rstrip().endswith("?") or (len(words) > 1 and words[0].lower() in ASKS):
        return "question"
    return "description" if 1 < len(words) <= _SHORT else "statement"


def dense_weight(query: str, configured: float) -> float:
    """The dense arm's say for this query; one that was set to 0 or 1 stays."""
    if configured in (0, 1):
        return configured
    kind = query_kind(query)
    moved = configured + (1 - configured) * TOWARDS_MEANING if kind in MEANT else configured
    return min(moved, MOST_SAY.get(kind, 1.0))


def _is_title(words: Sequence[str]) -> bool:
    """A few words that are all capitalised or telling, such as iPhone 15 Pro or Kestrel Sound."""
    if not 1 < len(words) <= _SHORT or words[0].lower() in ASKS | STOP_WORDS:
        return False
    return all(word[0].isupper() or is_telling(word) for word in words)


def is_telling(word: str) -> bool:
    """Whether it has a digit or is spelt like an identifier."""
    return any(letter.isdigit() for letter in word) or _is_name(word)


def _is_name(word: str) -> bool:
    return len(word) <= _LONGEST_NAME and _NAME.fullmatch(word) is not None

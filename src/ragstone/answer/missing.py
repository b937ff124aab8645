"""Names that a question asks for and no passage has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.answer.quotes import all_words
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.names import find_inner_names, is_identifier

_WORD = re.compile(r"[^\s,;:!?()\"“”„«»]{2,100}")
_NOT_LETTERS = re.compile(r"[\W_]+")


def find_missing_names(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the names and identifiers of a question that no passage has, as the question spells them."""
    said = "\n".join(f"{all_words(hit)}\n{hit.uri}" for hit in hits)
    known, letters = set(analyze(said)), _NOT_LETTERS.sub("", said.casefold())
    missing = [name for name in _find_names(question) if not _is_known(name, known, letters)]
    return _join_neighbours(question, missing)


def _find_names(question: str) -> list[str]:
    identifiers = [word for match in _WORD.finditer(question) if is_identifier(word := match.group().rstrip(".'’"))]
    return list(dict.fromkeys([*find_inner_names(question), *identifiers]))


def _is_known(name: str, known: set[str], letters: str) -> bool:
    terms = analyze(name)
    return not terms or known.issuperset(terms) or _NOT_LETTERS.sub("", name.casefold()) in letters


def _join_neighbours(question: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return names that stand side by side in the question as one."""
    joined: list[str] = []
    for name in names:
        if joined and f"{joined[-1]} {name}" in question:
            joined[-1] = f"{joined[-1]} {name}"
        elif not any(name in other for other in joined):
            joined.append(name)
    return tuple(joined)

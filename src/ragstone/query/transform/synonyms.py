"""Synonyms of the words of a query, from dictionaries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ragstone.core.errors import SettingsError
from ragstone.language.analyzer import STOP_WORDS, analyze_query, fold
from ragstone.query.transform.proposals import Proposal

LONGEST_TERM = 4
"""Words of a term that is looked up as one."""
MOST_TERMS = 32
"""Words of a query that are looked up."""
MOST_PER_TERM = 3
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


class Thesaurus(Protocol):
    """Knows other words for a term."""

    def others(self, term: str) -> Sequence[str]:
        """Return other words for a term in lower case, the nearest first; none for an unknown term."""
        ...


def synonyms(query: str, thesauri: Sequence[Thesaurus]) -> Proposal:
    """Return other words for the terms of a query; the longest known term wins over its parts."""
    found = [
        other for thesaurus in thesauri for other in _of_each_term(_WORD.findall(query.lower())[:MOST_TERMS], thesaurus)
    ]
    known = set(analyze_query(query))
    return Proposal(words=tuple(other for other in found if not known.issuperset(analyze_query(other))))


def _of_each_term(words: Sequence[str], thesaurus: Thesaurus) -> Iterator[str]:
    start = 0
    while start < len(words):
        for count in range(min(LONGEST_TERM, len(words) - start), 0, -1):
            term = " ".join(words[start : start + count])
            others = () if term in STOP_WORDS else thesaurus.others(term)[:MOST_PER_TERM]
            if others:
                yield from others
                break
        start += count


MOST_BYTES = 10_000_000
EXAMPLE = 'one term a line, such as "pto: [paid time off, vacation]"'


class Dictionary:
    """Terms with their other names, in any case; one way only: an entry says nothing about the names it lists."""

    def __init__(self, entries: Mapping[str, Sequence[str]]) -> None:
        self._entries = {_key(term): tuple(others) for term, others in entries.items()}

    def others(self, term: str) -> Sequence[str]:
        """Return the names that the dictionary lists for a term."""
        return self._entries.get(_key(term), ())


def read_dictionary(path: Path) -> Dictionary:
    """Read a YAML or JSON file that maps terms to one or more other names."""
    name = f"retrieval.dictionary '{path}'"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SettingsError(f"{name} has more than {MOST_BYTES // 1_000_000} MB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"{name} cannot be read: {error.strerror}", hint="correct the path or leave it out"
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{name} is not UTF-8", hint="save it as UTF-8") from error
    values = _parse(path, text, name)
    if not isinstance(values, dict):
        raise SettingsError(f"{name} is not a mapping", hint=f"write {EXAMPLE}")
    return Dictionary({_term(name, term): _names(name, term, others) for term, others in values.items()})


def _parse(path: Path, text: str, name: str) -> Any:
    import yaml

    try:
        return json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        what = str(error).splitlines()[0][:200]
        raise SettingsError(f"{name} cannot be understood: {what}", hint=f"write {EXAMPLE}") from error


def _term(name: str, term: Any) -> str:
    if not isinstance(term, str) or not 0 < len(term.split()) <= LONGEST_TERM:
        raise SettingsError(
            f"{name}: the term {term!r:.80} is not one to {LONGEST_TERM} words",
            hint="put a term that YAML reads as a number or as true or false in quotes",
        )
    return term


def _names(name: str, term: str, others: Any) -> tuple[str, ...]:
    listed = [others] if isinstance(others, str) else others
    if not isinstance(listed, list) or not all(isinstance(other, str) and other.strip() for other in listed):
        raise SettingsError(f"{name}: what '{term!s:.80}' is called is not a list of words", hint=f"write {EXAMPLE}")
    return tuple(" ".join(other.split()) for other in listed)


def _key(term: str) -> str:
    return " ".join(fold(term).casefold().split())

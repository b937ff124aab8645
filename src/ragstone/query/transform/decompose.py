"""Splits a compound question into the questions it is made of, without a model."""

from __future__ import annotations

import re

from ragstone.language.analyzer import STOP_WORDS, analyze_query

MOST_PARTS = 4
_LONGEST = 1000
_STARTS = r"(?:how|what|when|where|why|who|which|whose|is|are|do|does|did|can|could|should|will|would)"
_QUESTIONS = re.compile(r"(?<=\?)\s+")
_JOINED = re.compile(rf"(?:[;,]\s*+(?:and\s+)?|\s+(?:and|or)\s+)(?:also\s+)?(?={_STARTS}\b)|;\s+", re.I)
_VERSUS = re.compile(r"\s(?:vs\.?|versus|compared (?:to|with))\s", re.I)
_BETWEEN = re.compile(
    r"\b(?:differences?|comparison|relationship|similarit(?:y|ies)|connection|trade-?offs?) between\s", re.I
)
_COMPARE = re.compile(r"^(?:please\s)?(?:compare|contrast)\s", re.I)
_AND = re.compile(r"\s(?:and|with|to)\s", re.I)


def decompose(query: str) -> tuple[str, ...]:
    """Return the two to four parts of a compound query, or nothing if it asks for one thing."""
    if len(query) > _LONGEST:
        return ()
    parts = _questions(query) or _split_comparison(query)
    kept = tuple(dict.fromkeys(part for part in map(_trim, parts) if _says_something(part)))
    return kept[:MOST_PARTS] if len(kept) > 1 else ()


def _questions(query: str) -> list[str]:
    """Split several questions one after another, or joined by "and how", "; "."""
    parts = [part for whole in _QUESTIONS.split(query) for part in _JOINED.split(whole)]
    return parts if len(parts) > 1 else []


def _split_comparison(query: str) -> list[str]:
    """Return the two sides of a comparison."""
    sides = _VERSUS.split(query, maxsplit=1)
    if len(sides) == 2:
        return sides
    frame = _BETWEEN.search(query) or _COMPARE.match(query)
    return _AND.split(query[frame.end() :], maxsplit=1) if frame else []


def _trim(part: str) -> str:
    return part.strip(" \t\r\n,;:.?!")


def _says_something(part: str) -> bool:
    return any(term not in STOP_WORDS for term in analyze_query(part))

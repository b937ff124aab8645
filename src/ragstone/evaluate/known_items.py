"""Labelled queries made of a kb's own text: each is to find the document that it was taken from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ragstone.evaluate.dataset import Dataset, Query
from ragstone.language.sentences import sentence_spans

READ_CHARS = 20_000
"""How much of a document is looked at for a sentence."""
FEWEST_WORDS = 4
MOST_WORDS = 12
MOST_CHARS = 300
CODE = re.compile(
    r"[{}]|=>|->|::|==|!=|&&|\|\||</|/>|\(\)|\);| [=|] |```"
    r"|^\s*+(?:async|class|const|def|export|from|function|import|let|return|var)\s"
    r"|^\s*+\$ |(?:^|\s)--?\w"
)
"""What a line of a program or of a terminal has, and hardly a sentence."""


def known_items(documents: Iterable[tuple[str, str, str]]) -> Dataset | None:
    """Queries from (id, title, text): titles and sentences in turn; None when nothing can be asked for."""
    found: dict[str, list[str]] = {}
    for number, (identity, title, text) in enumerate(documents):
        of_text, of_title = _from_text(text), _words(title)
        asked = (of_title or of_text) if number % 2 else (of_text or of_title)
        if asked:
            found.setdefault(asked, []).append(identity)
    if not found:
        return None
    # What several documents say, any of them answers.
    grades = {f"q{number}": dict.fromkeys(ids, 1) for number, ids in enumerate(found.values())}
    queries = tuple(Query(key, text) for key, text in zip(grades, found, strict=True))
    return Dataset("generated", Path(), "generated", queries, grades)


def _from_text(text: str) -> str:
    """The beginning of the sentence in the middle: less is said in other words there than in the first one."""
    spans = sentence_spans(text[:READ_CHARS])
    said = [words for start, end in spans if (words := _sentence(text[start:end]))]
    return said[len(said) // 2] if said else ""


def _sentence(text: str) -> str:
    """The first words of a sentence; none of what nobody would type to find it."""
    return "" if CODE.search(text[:MOST_CHARS]) else _words(text)


def _words(text: str) -> str:
    words = text[:MOST_CHARS].split()
    return " ".join(words[:MOST_WORDS]) if len(words) >= FEWEST_WORDS else ""

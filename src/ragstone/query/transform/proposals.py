"""Proposals of transforms, combined into the texts that the arms search for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragstone.query.context import Variants

MOST_VARIANTS = 5
"""Texts that an arm is searched with, the first one included."""
MOST_WORDS = 16
"""Words and phrases that are added to a query."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Texts that one transform adds to a query or puts in its place."""

    instead: str = ""
    """Takes the place of the query in both arms."""
    also: tuple[str, ...] = ()
    """Further texts for both arms."""
    meaning: tuple[str, ...] = ()
    """Further texts for the dense arm alone."""
    words: tuple[str, ...] = ()
    """Words that are added to the text that is matched by word."""


def combine(
    query: str, proposals: Sequence[Proposal], notes: Sequence[str] = (), clean: Callable[[str], str] = str
) -> Variants:
    """Return all proposals as one set of texts; `clean` acts on those that are embedded."""
    main = next((proposal.instead for proposal in reversed(proposals) if proposal.instead), query)
    words = _select_new(main, (word for proposal in proposals for word in proposal.words))
    also = [text for proposal in proposals for text in proposal.also]
    meaning = [text for proposal in proposals for text in proposal.meaning]
    by_word = " ".join((main, *words))
    return Variants(
        query=query,
        rewritten=" | ".join(_distinct((by_word, *also, *meaning))),
        dense=_distinct(clean(text) for text in (main, *also, *meaning)),
        lexical=_distinct((by_word, *also)),
        notes=tuple(notes),
    )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for text in texts:
        if text.strip():
            seen.setdefault(text.casefold(), text)
    return tuple(seen.values())[:MOST_VARIANTS]


def _select_new(main: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the words that the text does not have yet, each once."""
    said = f" {main.casefold()} "
    kept = {word.casefold(): word for word in words if f" {word.casefold()} " not in said}
    return tuple(kept.values())[:MOST_WORDS]

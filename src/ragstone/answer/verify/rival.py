"""A rival: a thing that a claim says, and another that a sentence says in its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rival:
    """The words of a claim, and those of a sentence in their place."""

    claimed: str
    stated: str

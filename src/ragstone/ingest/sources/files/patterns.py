"""Which paths of a tree are meant: `**/*.md`, `handbook/*`, `*.pdf`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator


def as_tuple(value: object) -> object:
    """Let a setting of several texts be written as one text."""
    return (value,) if isinstance(value, str) else value


def _usable(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if not pattern.strip("/") or pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f"the pattern '{pattern}' must name paths under the root, such as '**/*.md'")
    return patterns


Patterns = Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(_usable)]
"""Patterns as settings hold them; one may be written without a list."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Paths that are wanted: all that fit one of `glob` (any when there is none) and nothing of `exclude`.

    `*` stays inside one folder, `**` goes through any number of them. A pattern without a slash is about names,
    at any depth. What stands under an excluded folder is excluded too.
    """

    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, path: str) -> bool:
        """Return whether the file at this path, written with slashes from the root, is wanted."""
        return self.enters(path) and (not self.glob or any(_fits(path, pattern) for pattern in self.glob))

    def enters(self, path: str) -> bool:
        """Return whether neither this path nor a folder above it is excluded."""
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)] if self.exclude else ()
        return not any(_fits(place, pattern) for pattern in self.exclude for place in above)

    def names_kind(self, path: str) -> bool:
        """Return whether a pattern asks for the path by its very suffix, as `*.png` does and `**/*` does not."""
        suffix = PurePosixPath(path).suffix
        return any(PurePosixPath(pattern).suffix == suffix and _fits(path, pattern) for pattern in self.glob)


def _fits(path: str, pattern: str) -> bool:
    if "/" not in pattern.rstrip("/"):
        return fnmatchcase(path.rsplit("/", 1)[-1], pattern.rstrip("/"))
    return _segments_fit(path.split("/"), pattern.rstrip("/").split("/"))


def _segments_fit(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Walk both at once; on a mismatch let the last `**` take one folder more. Never worse than parts × pattern."""
    part = piece = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        if piece < len(pattern) and pattern[piece] == "**":
            retry = (part, piece + 1)
            piece += 1
        elif piece < len(pattern) and fnmatchcase(parts[part], pattern[piece]):
            part, piece = part + 1, piece + 1
        elif retry:
            part, piece = retry[0] + 1, retry[1]
            retry = (part, piece)
        else:
            return False
    return all(rest == "**" for rest in pattern[piece:])

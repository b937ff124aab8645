"""Which definition each part of a source file belongs to, as its parser wrote it down."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ragstone.core.types import Parsed

Path = tuple[str, ...]


class Symbols:
    """The paths of definitions, such as class and method, laid over the text of a file."""

    def __init__(self, document: Parsed) -> None:
        # Front matter and callers may use the same key for something else.
        raw = document.metadata.get("symbols")
        marks: list[tuple[int, Path]] = []
        for entry in raw if isinstance(raw, list) else ():
            match entry:
                case [int(start), *path] if all(isinstance(name, str) for name in path):
                    marks.append((start, tuple(path)))
        marks.sort()
        self._starts = [start for start, _ in marks]
        self._paths = [path for _, path in marks]

    def at(self, place: int) -> Path:
        """The path of the definition that holds this place; empty outside of all."""
        found = bisect_right(self._starts, place) - 1
        return self._paths[found] if found >= 0 else ()


def common(paths: Sequence[Path]) -> Path:
    """What all paths begin with; those that are empty have no say."""
    named = [path for path in paths if path]
    if not named:
        return ()
    first, last = min(named), max(named)
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return first[:shared]

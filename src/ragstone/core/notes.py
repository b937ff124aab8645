"""Notes about a result, added where something is noticed and collected by the code that reports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[list[str] | None] = ContextVar("ragstone_notes", default=None)


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Collect the notes of the block and of tasks that it starts, each once."""
    notes: list[str] = []
    before = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(before)


def add_note(text: str) -> None:
    """Add a note; outside of `collect_notes` it is dropped."""
    notes = _notes.get()
    if notes is not None and text not in notes:
        notes.append(text)

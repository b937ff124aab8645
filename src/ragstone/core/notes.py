"""What should be known about a result although it came: said where it is noticed, read by whoever reports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_remarks: ContextVar[list[str] | None] = ContextVar("ragstone_remarks", default=None)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collects what is said inside the block and in tasks that it starts, each thing once."""
    said: list[str] = []
    before = _remarks.set(said)
    try:
        yield said
    finally:
        _remarks.reset(before)


def remark(text: str) -> None:
    """Something worth knowing; nobody may be listening."""
    said = _remarks.get()
    if said is not None and text not in said:
        said.append(text)

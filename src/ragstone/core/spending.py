"""What models cost while something is done for somebody: added up where it is spent, read by whoever pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_bill: ContextVar[Counter[str] | None] = ContextVar("ragstone_bill", default=None)


@contextmanager
def billed() -> Iterator[Counter[str]]:
    """Collects what is spent inside the block and in tasks that it starts: US dollars by kind."""
    bill: Counter[str] = Counter()
    before = _bill.set(bill)
    try:
        yield bill
    finally:
        _bill.reset(before)


def spent(kind: str, usd: float) -> None:
    """Something was paid for."""
    bill = _bill.get()
    if bill is not None and usd > 0:
        bill[kind] += usd  # type: ignore[assignment]  # a Counter counts in any number

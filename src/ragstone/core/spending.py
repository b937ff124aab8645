"""What models cost while something is done for somebody: added up where it is spent, read by whoever pays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_bill: ContextVar[dict[str, float] | None] = ContextVar("ragstone_bill", default=None)


@contextmanager
def billed() -> Iterator[dict[str, float]]:
    """Collects what is spent inside the block and in tasks that it starts: US dollars by kind."""
    bill: dict[str, float] = defaultdict(float)
    before = _bill.set(bill)
    try:
        yield bill
    finally:
        _bill.reset(before)


def spent(kind: str, usd: float) -> None:
    """Something was paid for."""
    bill = _bill.get()
    if bill is not None and usd > 0:
        bill[kind] += usd

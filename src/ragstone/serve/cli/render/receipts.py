"""Receipts of deletions: what was removed where, and what is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.render.output import pluralize, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.audit import Receipt
    from ragstone.schemas.schema import Schema


def show_receipts(session: CliSession, shape: Schema, message: str, receipts: Sequence[Receipt]) -> int:
    """Print what was done; the exit code says whether something is left of it."""
    session.show(shape, lambda out: _draw(out, message, receipts))
    for receipt in receipts:
        session.warn(receipt.unfinished)
    return OK if all(receipt.complete for receipt in receipts) else PARTIAL


def documents_of(receipts: Sequence[Receipt]) -> int:
    """Return how many documents were removed."""
    return sum(receipt.removed.get("ledger", {}).get("documents", 0) for receipt in receipts)


def _draw(out: Console, message: str, receipts: Sequence[Receipt]) -> None:
    whole = all(receipt.complete for receipt in receipts)
    out.print(message if whole else "It cannot be found any more, but not all of it is gone yet.")
    for receipt in receipts:
        parts = [
            f"{store}: {', '.join(f'{number:,} {what}' for what, number in counts.items() if number)}"
            for store, counts in receipt.removed.items()
            if any(counts.values())
        ]
        left = sum(sum(counts.values()) for counts in receipt.remaining.values())
        state = "nothing is left" if receipt.complete else f"{pluralize(left, 'trace')} left"
        out.print(text(f"{receipt.target.name}: removed {'; '.join(parts) or 'nothing'}; {state}", "dim"))

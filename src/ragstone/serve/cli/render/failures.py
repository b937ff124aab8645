"""Items that could not be taken in: the reason of each, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragstone.core.errors import QuotaExceeded
from ragstone.serve.cli.render.output import one_line, pluralize, table, text

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import Failure


def draw_failures(out: Console, failures: Sequence[Failure]) -> None:
    """Draw a line for each with its reason, those that one quota refused as one; the hints below."""
    reasons = table("failed", "code", "reason")
    for group in _by_limit(failures):
        first = group[0]
        what = first.uri if len(group) == 1 else pluralize(len(group), "document")
        why = reason(out, first.uri, first.error)
        reasons.add_row(*(text(one_line(said)) for said in (what, first.code, why)))
    out.print(reasons)
    draw_hints(out, ((failure.uri, failure.advice) for failure in failures))


def reason(out: Console, uri: str, error: str) -> str:
    """Return the error; on a terminal, where a line is short, without the name that stands beside it."""
    return error.removeprefix(f"{uri} ") if out.is_terminal else error


def draw_hints(out: Console, advised: Iterable[tuple[str, str]]) -> None:
    """Draw each hint once, and for what it is unless it is for all."""
    failed = list(advised)
    names: dict[str, list[str]] = {}
    for name, hint in failed:
        names.setdefault(hint, []).append(name)
    hints = {hint: found for hint, found in names.items() if hint}
    if hints:
        out.print()
    for hint, found in hints.items():
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        whose = f"{one_line(found[0])}{more}: " if len(found) < len(failed) else ""
        out.print(text("hint: ", "bold cyan").append(f"{whose}{one_line(hint)}"))


def _by_limit(failures: Sequence[Failure]) -> list[list[Failure]]:
    """Failures of one limit together, each of the others alone, in the order they came."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        key = ("", failure.uri)
        if failure.code == QuotaExceeded.code:
            failure = replace(failure, error=failure.error.removeprefix(f"{failure.uri}: "))
            # What is used grows from one to the next; what is allowed names the limit.
            key = (QuotaExceeded.code, failure.error.partition(" and has")[0])
        groups.setdefault(key, []).append(failure)
    return list(groups.values())

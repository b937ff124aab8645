"""Writing: JSON for programs, words and tables for people, plain when nobody is watching."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ragstone.schemas.schema import Schema

COLOURS = {"error": "31", "failed": "31", "warning": "33", "hint": "36", "completed": "32"}
UNBROKEN = 100_000
"""Columns when the output is not a terminal: its reader wants whole lines."""
# Document text may carry terminal commands; tabs and line ends are the only control characters let through.
CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


def clean(text: str) -> str:
    """Return the text without what could move the cursor or change colours."""
    return text.translate(CONTROLS)


def one_line(text: str) -> str:
    """Return the text with all white space as single blanks."""
    return " ".join(clean(text).split())


def write_json(shape: Schema) -> None:
    """Print a shape as JSON on stdout."""
    print(_dump(shape, indent=2))  # noqa: T201


def write_json_line(shape: Schema) -> None:
    """Print a shape as one line of JSON on stdout, at once: its reader may be waiting for it."""
    print(_dump(shape, indent=None), flush=True)  # noqa: T201


def _dump(shape: Schema, indent: int | None) -> str:
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(shape.as_json(), indent=indent, ensure_ascii=ascii_only, default=str)


def say(kind: str, message: str) -> None:
    """Print one line on stderr: `warning: …`, coloured by its kind on a terminal."""
    label = f"{kind}:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[1;{COLOURS.get(kind, '0')}m{label}\x1b[0m"
    print(f"{label} {clean(message)}", file=sys.stderr)  # noqa: T201


def say_plainly(message: str) -> None:
    """Print one line on stderr as it is."""
    print(clean(message), file=sys.stderr, flush=True)  # noqa: T201


def console(*, stderr: bool = False) -> Console:
    """Return a console: rich on a terminal, plain unbroken lines elsewhere."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=None if stream.isatty() else UNBROKEN)


def table(*columns: str, right: Sequence[str] = (), whole: Sequence[str] = ("id",)) -> Table:
    """Return an empty table; those in `right` are numbers, no line end cuts those in `whole`. No frame when piped."""
    from rich import box
    from rich.table import Table

    drawn = Table(
        box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0)
    )
    for name in columns:
        drawn.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in whole)
    return drawn


def text(content: str, style: str = "") -> Text:
    """Return words that are printed as they are, whatever brackets they hold; the style is that of these words only."""
    from rich.text import Text

    return Text().append(clean(content), style)


def place(title: str, section: str, page: int | None) -> str:
    """Return where a passage stands: title, section and page, as far as they are known."""
    first, _, rest = section.partition(" > ")
    if first and title.startswith(first):
        section = rest  # The first heading is often the title once more.
    parts = [title, section, f"page {page}" if page else ""]
    return " · ".join(one_line(part) for part in parts if part)


def pluralize(count: int, what: str) -> str:
    """`1 document`, `2 documents`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def moment(when: datetime | None) -> str:
    """`2026-01-31 09:30 UTC`, as schedules are meant; a dash when there is none."""
    from datetime import UTC

    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if when else "–"

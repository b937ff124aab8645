"""Print the command reference, made from the help.

`python -m ragstone.serve.cli.reference > docs/reference/cli.md` updates the page; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ragstone.serve.cli.main import app

WIDTH = 100
HEAD = """# Command line

Generated from the help texts by `python -m ragstone.serve.cli.reference > docs/reference/cli.md`; a test fails when the
two differ.

Options come after the command. With `--json` a command prints exactly one JSON value on stdout (`ingest --watch` prints
one line per round). Progress, notes and error messages go to stderr. Colours and progress bars appear only on a
terminal; `NO_COLOR` turns colours off. `ragstone --install-completion` installs shell completion.

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | failure; `verify --receipt`: the receipt was altered; `tune`: no settings are significantly better |
| 2 | wrong arguments or settings |
| 3 | partial success: some documents failed; `verify --receipt`: the receipt no longer holds |
| 4 | nothing found |
| 130 | interrupted |
"""


def reference() -> str:
    """Return the whole page as Markdown."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    before = app.rich_markup_mode
    app.rich_markup_mode = None
    try:
        yield from _section(typer.main.get_command(app), "ragstone", None)
    finally:
        app.rich_markup_mode = before


def _section(command: Any, name: str, parent: Any) -> Iterator[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=WIDTH)
    yield f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
    for inner in getattr(command, "commands", {}).values():
        yield from _section(inner, inner.name, context)


if __name__ == "__main__":
    print(reference())  # noqa: T201

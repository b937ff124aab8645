"""The command reference, made from the help: `python -m ragstone.serve.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ragstone.serve.cli.main import app

WIDTH = 100
HEAD = """# Command line

Made from the help of the program by `python -m ragstone.serve.cli.reference > docs/cli.md`; a test keeps it up to date.

Options come after the command. With `--json` a command prints one JSON value on stdout and nothing else there
(`ingest --watch` one for each round, a line each); progress, remarks and errors for people go to stderr.
Colours and bars appear only on a terminal, and `NO_COLOR` turns colours off. `ragstone --install-completion`
sets up the shell.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | failed; `verify --receipt`: the receipt is not as it was made; `tune`: no settings are certainly better |
| 2 | called wrongly: arguments or settings |
| 3 | in part: some documents could not be ingested; `verify --receipt`: it no longer holds (sentences, names) |
| 4 | nothing was found |
| 130 | interrupted |
"""


def reference() -> str:
    """The whole page as Markdown."""
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

"""Pages of the documentation that are made from the program.

`python -m ragstone.serve.cli.reference > docs/reference/cli.md` makes the command reference from the help,
`python -m ragstone.serve.cli.reference remedies > docs/reference/remedies.md` the list of remedies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from ragstone.core.remedies import Action
from ragstone.serve.cli.main import app
from ragstone.serve.cli.remedies import STEPS, Step

WIDTH = 100
HEAD = """# Command line

Generated from the help texts by `python -m ragstone.serve.cli.reference > docs/reference/cli.md`; a test fails when the
two differ.

Options come after the command. With `--json` a command prints exactly one JSON value on stdout (`ingest --watch` prints
one line per round, `ask --stream` and `chat` without a message one per event). An error is one line. Progress, notes
and error messages go to stderr. Colours and progress bars appear only on a terminal; `NO_COLOR` turns colours off.
`ragstone --install-completion` installs shell completion.

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | failure; `verify --receipt`: the receipt was altered; `tune`: no settings are significantly better |
| 2 | wrong arguments or settings |
| 3 | partial success: documents, `chat` lines or part of an empty search failed; `verify --receipt`: holds no longer |
| 4 | nothing found: no passage, no answer, no such thing, or nothing to list (`alerts`: 3 while one fires, else 0) |
| 130 | interrupted |
"""

REMEDIES_HEAD = """# Remedies

Made by `python -m ragstone.serve.cli.reference remedies > docs/reference/remedies.md`; a test keeps it up to date.

An error, a failed job or a finding of `ragstone doctor` says what to do about it by a code with arguments. The command
line shows it as a command, completed by the options of the call; tools for agents show it as a sentence. In Python
it is `error.remedy`, and `error.advice` is its text.
"""


def reference() -> str:
    """Return the command reference as Markdown."""
    return "\n".join([HEAD, *_sections()])


def remedies() -> str:
    """Return the list of remedies as Markdown, with a section for each code."""
    return "\n".join([REMEDIES_HEAD, *map(_remedy, Action)])


def _remedy(action: Action) -> str:
    lines = "\n".join(f"- {_show_step(step)}" for step in STEPS[action])
    sentence = action.sentence
    return f"## {action.value}\n\n{sentence[0].upper()}{sentence[1:]}.\n\n{lines}\n"


def _show_step(step: Step) -> str:
    words = re.sub(r"\{(\w+)\}", lambda found: f"`{found[1].upper()}`", step.words.replace("{command}", "\0"))
    command = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), step.command)
    return words.replace("\0", f"`ragstone {command}`")


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
    print(remedies() if sys.argv[1:] == ["remedies"] else reference())  # noqa: T201

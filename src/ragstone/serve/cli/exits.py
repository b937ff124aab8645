"""The end of a command: its exit code, and its error as people and as programs read it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from ragstone.core.errors import InputError, NotFoundError, RagstoneError, SettingsError

OK = 0
FAILURE = 1
USAGE = 2
PARTIAL = 3
NOTHING_FOUND = 4
INTERRUPTED = 130


class Interrupted(Exception):
    """A command was told to stop: what it has kept, and how to go on."""

    def __init__(self, kept: str, hint: str) -> None:
        super().__init__(kept)
        self.hint = hint


def exit_code(error: RagstoneError) -> int:
    """Return the exit code that an error ends a command with."""
    match error:
        case InputError() | SettingsError():
            return USAGE
        case NotFoundError():
            return NOTHING_FOUND
        case _:
            return FAILURE


def search_code(found: object, degraded: Sequence[str]) -> int:
    """Return the exit code of a search: nothing was found only where everything could be searched."""
    return OK if found else PARTIAL if degraded else NOTHING_FOUND


def report_error(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Report an error that ended a command, and return the exit code."""
    if debug:
        traceback.print_exception(error)
    match error:
        case RagstoneError():
            _report(error, as_json=as_json)
            return exit_code(error)
        case Interrupted() if not as_json:
            from ragstone.serve.cli.render.output import say

            say("interrupted", str(error))
            say("hint", error.hint)
            return INTERRUPTED
        case KeyboardInterrupt() | Interrupted():
            report_problem("interrupted", "interrupted", "", as_json=as_json)
            return INTERRUPTED
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            report_problem("io_failed", f"{where}{error.strerror or error}", "", as_json=as_json)
            return FAILURE
        case _:
            message = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
            report_problem("internal", message, "run it again with --debug to see where", as_json=as_json)
            return FAILURE


def broken_pipe() -> int:
    """Return the exit code for a closed pipe; what is still buffered must not fail once more when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    return FAILURE


def _report(error: RagstoneError, *, as_json: bool) -> None:
    if not as_json:
        report_problem(error.code, str(error), error.advice, as_json=False)
        return
    from ragstone.schemas.errors import ErrorSchema
    from ragstone.serve.cli.render.output import write_json_line

    write_json_line(ErrorSchema.of_error(error))


def report_problem(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Write an error: one line of JSON on stdout for programs, a line and a hint on stderr for people."""
    if as_json:
        from ragstone.schemas.errors import ErrorSchema
        from ragstone.serve.cli.render.output import write_json_line

        write_json_line(ErrorSchema.of_words(code, message, hint))
        return
    from ragstone.serve.cli.render.output import say

    say("error", " ".join(message.split()))
    if hint:
        say("hint", hint)

"""Turns an async function into a command: adds the common options, runs it, and reports how it ended."""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.models import ArgumentInfo

from ragstone.core.audit import acting_as
from ragstone.core.remedies import render_with
from ragstone.serve.cli.exits import OK, USAGE, broken_pipe, report_error
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.session import CliSession

COMMON = inspect.signature(Common, eval_str=True).parameters
Body = Callable[..., Coroutine[Any, Any, int | None]]


def command(app: typer.Typer, name: str | None = None, *, panel: str | None = None) -> Callable[[Body], Body]:
    """Register `async def body(session, …)` as a command; what it returns is the exit code, None for success."""

    def register(body: Body) -> Body:
        app.command(name or body.__name__, rich_help_panel=panel)(_with_common_options(body))
        return body

    return register


def default_command(app: typer.Typer, name: str = "list") -> Callable[[Body], Body]:
    """Register what a group does when no command of it is named; it may be asked for by its own name as well."""

    def register(body: Body) -> Body:
        run = _with_common_options(body)
        defaults = inspect.signature(run).parameters

        def call(context: typer.Context, **arguments: Any) -> int | None:
            if context.invoked_subcommand is None:
                return run(**arguments)
            if any(value != defaults[name].default for name, value in arguments.items()):
                raise typer.BadParameter(f"options come after '{context.invoked_subcommand}', not before it")
            return None

        own = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        # An argument of the group would swallow the name of its command.
        options = [one for one in defaults.values() if not _is_argument(one)]
        _declare(call, body, [own, *options])
        app.callback(invoke_without_command=True)(call)
        said = "List them" if name == "list" else inspect.getdoc(body) or ""
        app.command(name, help=f"{said.rstrip('.')}; the default command.")(run)
        return body

    return register


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(one, ArgumentInfo) for one in getattr(parameter.annotation, "__metadata__", ()))


def help_by_default(context: typer.Context) -> None:
    """Show the help of a group when no command of it is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def _with_common_options(body: Body) -> Callable[..., int]:
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]

    def call(**arguments: Any) -> int:
        options = Common(**{name: arguments.pop(name) for name in COMMON})
        return _execute(options, body, arguments)

    _declare(call, body, [*own, *COMMON.values()])
    return call


def _declare(call: Callable[..., Any], body: Body, parameters: list[inspect.Parameter]) -> None:
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    call.__name__, call.__doc__ = body.__name__, body.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # typer reads it from here


def _execute(options: Common, body: Body, arguments: dict[str, Any]) -> int:
    import asyncio

    with render_with(options.render_remedy):
        try:
            with _logging(options), acting_as(_user()):
                code = asyncio.run(body(CliSession(options), **arguments))
            sys.stdout.flush()
            return OK if code is None else code
        except BrokenPipeError:
            return broken_pipe()
        except (Exception, KeyboardInterrupt) as error:
            return report_error(error, as_json=options.json, debug=options.debug)


def _user() -> str:
    """Return the user who started the program as the system knows them: the environment could say anything."""
    if not hasattr(os, "getuid"):
        import getpass

        return getpass.getuser()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@contextmanager
def _logging(options: Common) -> Iterator[None]:
    """Logs go to stderr with `--debug` and nowhere without: what goes wrong is in the results, too."""
    loggers = (logging.getLogger(), logging.getLogger("ragstone"))
    before = [(logger.level, logger.handlers[:]) for logger in loggers]
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    loggers[0].handlers[:] = [to_stderr]
    loggers[0].setLevel(logging.WARNING if options.debug else logging.CRITICAL)
    loggers[1].setLevel(logging.DEBUG if options.debug else logging.CRITICAL)
    try:
        yield
    finally:
        # The command line may be one of several things that run in this process.
        for logger, (level, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            logger.handlers[:] = handlers

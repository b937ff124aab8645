"""The options that commands share, each declared once."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ragstone.core.errors import InputError
from ragstone.core.remedies import Remedy

COMMON = "Common options"
# The same words as in `ragstone.core`, which costs too much to import for a help page.
Mode = Literal["fast", "balanced", "thorough"]
Arms = Literal["hybrid", "dense", "lexical"]
Fusion = Literal["zscore", "rrf", "weighted", "weighted_rrf"]
Strategy = Literal[
    "normalize",
    "stop_words",
    "stem",
    "synonyms",
    "entities",
    "decompose",
    "feedback",
    "rewrite",
    "expand",
    "hyde",
    "subqueries",
    "none",
]
JobState = Literal["pending", "running", "completed", "failed", "cancelled"]
LogForm = Literal["auto", "json", "text"]

Log = Annotated[
    LogForm | None, typer.Option("--log", help="Log lines on stderr; auto is text on a terminal and json elsewhere.")
]
K = Annotated[int | None, typer.Option("-k", min=1, max=1000, help="Number of passages to return.")]
ModeOption = Annotated[Mode | None, typer.Option("--mode", help="Time for a search: 200 ms, 500 ms or 2 s.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="JSON", help='Only documents that match this filter, such as \'{"year": {"gte": 2025}}\'.'
    ),
]
Web = Annotated[
    bool | None, typer.Option("--web/--no-web", help="Search the web as well; by default retrieval.routing decides.")
]
Conversation = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        metavar="NAME",
        help="Continue this conversation or start it; a question may refer to earlier ones.",
    ),
]


def read_path(typed: str) -> Path:
    """Return the path that was typed; an empty one, which would be the working folder, is refused."""
    if not typed:
        raise typer.BadParameter("it is empty")
    return Path(typed)


@dataclass(frozen=True, slots=True)
class Common:
    """The options of every command, as they were given."""

    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            parser=read_path,
            metavar="<path>",
            help="Folder with the data; ./ragstone-data if not set.",
            rich_help_panel=COMMON,
        ),
    ] = None
    tenant: Annotated[str | None, typer.Option("--tenant", help="Tenant to work for.", rich_help_panel=COMMON)] = None
    kb: Annotated[str | None, typer.Option("--kb", help="Knowledge base to work on.", rich_help_panel=COMMON)] = None
    profile: Annotated[str | None, typer.Option("--profile", help="Named set of defaults.", rich_help_panel=COMMON)] = (
        None
    )
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Settings file; ./ragstone.yaml is read if there is one.", rich_help_panel=COMMON
        ),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel=COMMON)] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.", rich_help_panel=COMMON)] = (
        False
    )
    debug: Annotated[
        bool, typer.Option("--debug", help="Log everything; tracebacks for errors.", rich_help_panel=COMMON)
    ] = False

    def as_typed(self) -> str:
        """Return the options that say where to work, as they would be typed again."""
        return "".join(self.list_options().values())

    def command(self, *words: str) -> str:
        """Return a command to type that works where this one did; each word is quoted for the shell."""
        return f"ragstone {shlex.join(words)}{self.as_typed()}"

    def render_remedy(self, hint: str, remedy: Remedy) -> str:
        """Return a hint and a remedy as commands that work where this one did."""
        from ragstone.serve.cli.remedies import render_command

        return render_command(hint, remedy, self.list_options())

    def list_options(self) -> dict[str, str]:
        """Return the options that say where to work by their names, each as it would be typed again."""
        given = {
            "data-dir": self.data_dir,
            "tenant": self.tenant,
            "kb": self.kb,
            "profile": self.profile,
            "config": self.config,
        }
        return {name: f" --{name} {shlex.quote(str(value))}" for name, value in given.items() if value}


def read_where(where: str | None) -> dict[str, Any] | None:
    """Return the filter that was typed after `--where`."""
    if where is None:
        return None
    try:
        value = json.loads(where)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"--where is not JSON: {error}", hint="quote it for the shell: --where '{\"year\": 2026}'"
        ) from error
    if not isinstance(value, dict):
        raise InputError("--where must be a JSON object", hint="such as --where '{\"year\": 2026}'")
    return value

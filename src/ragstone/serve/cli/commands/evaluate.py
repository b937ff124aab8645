"""`ragstone eval`: how good search is on labelled queries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.labelled import Folder, FromFeedback, Golden, Limit, Split, open_experiment
from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.evaluate.report import Report
    from ragstone.settings.tree import Settings

ARMS = ("lexical", "dense", "hybrid")
MODES = ("fast", "balanced", "thorough")
SYSTEMS = ("lexical", "dense", "hybrid", "reranked", "fast", "balanced", "thorough")
# The same words as in `ragstone.evaluate`, which costs too much to import for a help page.
VALUES = re.compile(r",(?=[a-z_0-9.]+=)")
"""A comma before the next key, unlike one inside a list."""


async def evaluate(
    session: Session,
    folder: Folder = None,
    split: Split = "test",
    from_feedback: FromFeedback = False,
    golden: Golden = False,
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems", metavar="NAMES", help=f"Rows to measure, separated by commas: {', '.join(SYSTEMS)}."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="KEY=VALUE",
            help="Also measure with this setting and print the difference; may be repeated, "
            "commas join settings that change together.",
        ),
    ] = None,
    limit: Limit = None,
) -> int:
    """Measure search on labelled queries.

    Quality and time of each way to search, side by side. The documents of a data set are ingested into a
    separate knowledge base, so the first run takes longer.
    """
    from ragstone.evaluate.report import machine
    from ragstone.schemas.evaluation import EvaluationSchema

    experiment = await open_experiment(session, folder, split, from_feedback, golden, limit)
    changes = {text: read_changes(text) for text in compare or []}
    chosen = chosen_systems(systems, experiment.settings(), comparing=bool(changes))
    report, ingested = await experiment.run(chosen, changes)
    failed = ingested.failed if ingested else ()
    session.show(
        EvaluationSchema.of(report, machine=machine(), failed=failed), lambda out: _draw(out, report)
    )
    return PARTIAL if failed else OK


def chosen_systems(names: str | None, settings: Settings, *, comparing: bool = False) -> list[str]:
    """The systems that were asked for, or those that the settings can show."""
    if names is None and comparing:
        return [settings.retrieval.mode]
    if names is None:
        return [*ARMS, *(["reranked"] if settings.reranking.kind != "none" else []), *MODES]
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown or not chosen:
        raise InputError(
            f"--systems: there is no system {unknown[0]!r}" if unknown else "--systems names none",
            hint=f"choose from: {', '.join(SYSTEMS)}",
        )
    if "reranked" in chosen and settings.reranking.kind == "none":
        raise InputError(
            "--systems: 'reranked' needs a reranker", hint="set RAGSTONE_RERANKING__KIND=cross_encoder"
        )
    return chosen


def read_changes(text: str) -> dict[str, Any]:
    """Return `KEY=VALUE[,KEY=VALUE]` as settings; a value is read as it would be in a settings file."""
    import yaml

    changes: dict[str, Any] = {}
    for part in VALUES.split(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(
                f"{part!r:.80} is not a setting and its value", hint="such as retrieval.fusion=rrf"
            )
        try:
            changes[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"{part!r:.80} has no value that can be read", hint="quote it") from error
    return changes


def _draw(out: Console, report: Report) -> None:
    from ragstone.evaluate.report import report_table, target_table

    for drawn in (report_table(report), *([target_table(report)] if report.targets else [])):
        if not out.is_terminal:
            drawn.box = None
        out.print(drawn)

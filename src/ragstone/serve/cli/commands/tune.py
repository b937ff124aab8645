"""`ragstone tune`: find better settings by labelled queries, and write them only when they are better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.labelled import Folder, FromFeedback, Golden, Limit, Split, open_experiment
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.render.output import table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.evaluate.tune import Tuning


async def tune(
    session: Session,
    folder: Folder = None,
    split: Split = "test",
    from_feedback: FromFeedback = False,
    golden: Golden = False,
    budget_ms: Annotated[
        float | None,
        typer.Option("--budget-ms", min=1, help="Maximum p95; by default that of the mode."),
    ] = None,
    chunk_sizes: Annotated[
        str | None,
        typer.Option("--chunk-sizes", metavar="SIZES", help="Also ingest with these sizes: 200,400,800."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Settings file to write, for --config.")
    ] = Path("tuned.yaml"),
    limit: Limit = None,
) -> int:
    """Search for better settings and write them to a file.

    They are chosen by half of the labelled queries and judged by the other half. Settings that are not certainly
    better there, or too slow, are refused: nothing is written.
    """
    from ragstone.evaluate.tune import MODE_MS, knobs_for, settings_file
    from ragstone.evaluate.tune import tune as search
    from ragstone.schemas.evaluation import TuningSchema

    if output.exists():
        raise InputError(f"{output} exists already", hint="name another file with --output")
    experiment = await open_experiment(session, folder, split, from_feedback, golden, limit)
    settings = experiment.settings()
    budget = budget_ms or MODE_MS[settings.retrieval.mode]
    knobs = knobs_for(settings, read_sizes(chunk_sizes))
    await experiment.ingest(settings)
    tuning = await search(experiment.try_changes, experiment.dataset, knobs, budget)
    if tuning.is_better:
        output.write_text(settings_file(tuning), encoding="utf-8")
    written = str(output) if tuning.is_better else None
    session.show(TuningSchema.of(tuning, written=written), lambda out: _draw(out, tuning, written))
    return OK if tuning.is_better else FAILURE


def read_sizes(sizes: str | None) -> tuple[int, ...]:
    """Chunk sizes as they were typed after `--chunk-sizes`."""
    parts = [part.strip() for part in (sizes or "").split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) >= 8 for part in parts):
        raise InputError(f"--chunk-sizes {sizes!r:.40} are not sizes", hint="such as --chunk-sizes 200,400")
    return tuple(int(part) for part in parts)


def _draw(out: Console, tuning: Tuning, written: str | None) -> None:
    drawn = table("settings", "nDCG@10", "p95 ms", "", right=["nDCG@10", "p95 ms"])
    for trial in tuning.trials:
        label = ", ".join(f"{key}={value}" for key, value in trial.changes.items()) or "as set"
        drawn.add_row(
            text(label),
            f"{trial.score:.3f}",
            f"{trial.p95_ms:.1f}",
            "" if trial.within_budget else "over budget",
        )
    out.print(drawn)
    interval = tuning.interval
    out.print(
        text(
            f"on {tuning.held_out} held-out queries: {interval.difference:+.3f} "
            f"({interval.low:+.3f} to {interval.high:+.3f}, {interval.confidence:.0%} confidence)"
        )
    )
    verdict = f"written to {written}" if written else f"{why_not(tuning)}: nothing was written"
    out.print(text(verdict, "green" if written else "yellow"))


def why_not(tuning: Tuning) -> str:
    """Why what was found is not to be used."""
    if not tuning.changes:
        return "no other settings found better than yours"
    if tuning.interval.low <= 0:
        return "the best other settings may be no better than yours on queries they were not chosen by"
    return (
        f"the best other settings find better but too slowly: p95 {tuning.after.latency_ms(95):.0f} ms "
        f"of {tuning.budget_ms:.0f} ms that are allowed (--budget-ms)"
    )

"""`ragstone sources sync`: look at sources now, take in what is new, and say what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL, Interrupted
from ragstone.serve.cli.render.failures import draw_failures
from ragstone.serve.cli.render.jobs import WAITING, job_progress
from ragstone.serve.cli.render.output import pluralize, table, text
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.jobs import Job
    from ragstone.core.types import Failure
    from ragstone.engine.workspace import Workspace
    from ragstone.ingest.jobs.sync import SyncOutcome
    from ragstone.serve.cli.options import Common

MOST_SHOWN = 10
"""Failures of each source in the summary."""


async def sync_sources(
    session: CliSession,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of the sources.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All sources of all knowledge bases, or with --kb of one.")
    ] = False,
    afresh: Annotated[bool, typer.Option("--afresh", help="Read everything again, not only what is new.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Do the work now, or leave it to a worker.")] = True,
) -> int:
    """Sync sources now.

    Ingests what is new or changed and removes what is gone.
    """
    if every == bool(names):
        raise InputError("name sources or say --all, one of the two", remedy=Remedy(Action.LIST_SOURCES))
    settings = session.settings()
    async with session.engine(settings) as engine:
        workspace = engine.workspace(settings.tenant)
        jobs = await _queue(workspace, names or (), session.options.kb, every=every, afresh=afresh)
        if not wait:
            return _show_queued(session, jobs)

        async def work() -> None:
            async with job_progress(session, workspace):
                await engine.worker(only=settings.tenant).run(until_idle=True)

        outcomes: list[SyncOutcome] = []

        async def sync() -> None:
            outcomes.extend(await workspace.sources.work_and_report(jobs, work))

        if await until_signal(sync()):
            counts = await workspace.jobs.counts()
            left = pluralize(sum(counts.get(state, 0) for state in WAITING), "job")
            later = session.options.command("worker", "--until-idle")
            raise Interrupted(f"{left} still to do; what is done stays", f"the same command goes on, or: {later}")
    from ragstone.schemas.sources import SyncSchema

    shape = SyncSchema.of(sources=outcomes)
    session.show(shape, lambda out: _draw(out, outcomes, session.options, settings.kb))
    session.warn(f"{outcome.source}: {outcome.message}" for outcome in outcomes if outcome.passed_over)
    if not any(outcome.failures for outcome in outcomes):
        return OK
    return PARTIAL if any(outcome.did_something for outcome in outcomes) else FAILURE


async def _queue(workspace: Workspace, names: Sequence[str], kb: str | None, *, every: bool, afresh: bool) -> list[Job]:
    if every:
        chosen = [(source.name, source.kb) for source in await workspace.sources.list(kb=kb)]
    else:
        # All must be there before the first is queued.
        chosen = [(source.name, source.kb) for source in [await workspace.sources.get(name) for name in names]]
    if not chosen:
        raise NotFoundError("there are no sources", remedy=Remedy(Action.ADD_SOURCE))
    return [await workspace.sources.sync(name, kb=scope, afresh=afresh) for name, scope in dict.fromkeys(chosen)]


def _show_queued(session: CliSession, jobs: Sequence[Job]) -> int:
    from ragstone.schemas.jobs import QueuedJobsSchema

    def draw(out: Console) -> None:
        rows = table("id", "source", "kb", "state")
        for job in jobs:
            rows.add_row(job.id, job.source, job.kb, job.state)
        out.print(rows)

    session.show(QueuedJobsSchema.of(jobs=jobs), draw)
    session.remark("next", session.options.command("jobs", "--watch"))
    return OK


def _draw(out: Console, outcomes: Sequence[SyncOutcome], options: Common, kb: str) -> None:
    numbers = ["added/updated", "unchanged", "removed", "failed"]
    sometimes = [name for name in ("moved", "skipped") if any(getattr(outcome, name) for outcome in outcomes)]
    numbers[3:3] = sometimes
    rows = table("source", *numbers, right=numbers)
    for outcome in outcomes:
        counts = [outcome.taken_in, outcome.unchanged, outcome.removed, *(getattr(outcome, name) for name in sometimes)]
        failed = text(f"{outcome.failures:,}", "bold red" if outcome.failures else "")
        rows.add_row(outcome.source, *(f"{count:,}" for count in counts), failed)
    out.print(rows)
    shown = [failure for outcome in outcomes for failure in _select_failures(outcome)]
    if shown:
        out.print()
        draw_failures(out, shown)
    for outcome in outcomes:
        if (more := outcome.failures - MOST_SHOWN) > 0:
            there = replace(options, kb=outcome.kb) if outcome.kb != kb else options
            out.print()
            out.print(f"And {more:,} more: {there.command('sources', 'show', outcome.source)}")


def _select_failures(outcome: SyncOutcome) -> list[Failure]:
    """Return the first failures of a source; for a sync that failed as a whole, the source by its name."""
    if outcome.state == "completed":
        return list(outcome.failed[:MOST_SHOWN])
    return [replace(failure, uri=outcome.source, code=outcome.state) for failure in outcome.failed]

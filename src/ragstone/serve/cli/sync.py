"""`ragstone sources sync`: look at sources now, take in what is new, and say what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.failures import draw_failures
from ragstone.serve.cli.job_progress import MOST_JOBS, job_progress
from ragstone.serve.cli.output import table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.jobs import Job
    from ragstone.core.types import Failure, Json
    from ragstone.intake import Intake
    from ragstone.serve.cli.options import Common

MOST_NOTICES = 10_000
MOST_SHOWN = 10
"""Failures of each source in the summary."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one look at a source led to."""

    source: str
    kb: str
    job_id: str
    state: str
    taken_in: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    passed_over: int = 0
    """Pictures that nobody asked for by name; `message` says how to."""
    wordless: int = 0
    """Pictures without words."""
    unread: int = 0
    """Items that it could not give, and those that have failed before and not changed since."""
    failures: int = 0
    """All that is not taken in by now, of this look or an earlier one."""
    failed: tuple[Failure, ...] = ()
    """The first of them, or why the look itself failed."""
    did_something: bool = False
    message: str = ""

    @property
    def skipped(self) -> int:
        return self.passed_over + self.wordless


async def sync_sources(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of the sources.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All sources of all knowledge bases, or with --kb of one.")
    ] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Read everything again, not only what is new.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Do the work now, or leave it to a worker.")
    ] = True,
) -> int:
    """Sync sources now: ingest what is new or changed, remove what is gone."""
    if every == bool(names):
        raise InputError("name sources or say --all, one of the two", remedy=Remedy(Action.LIST_SOURCES))
    settings = session.settings()
    async with session.engine(settings) as engine:
        intake = engine.intake
        jobs = await _queue(intake, names or (), session.options.kb, every=every, afresh=afresh)
        if not wait:
            return _show_queued(session, jobs)
        before = {job.ticket for job in await _not_completed(intake)}
        async with job_progress(session, intake):
            await intake.worker(only=settings.tenant).run(until_idle=True)
        after = [job for job in await _not_completed(intake) if job.ticket not in before]
        outcomes = [await outcome_of(intake, job, after) for job in jobs]
    shape = {"sources": [_json(outcome) for outcome in outcomes]}
    session.show(shape, lambda out: _draw(out, outcomes, session.options, settings.kb))
    session.warn(f"{outcome.source}: {outcome.message}" for outcome in outcomes if outcome.passed_over)
    if not any(outcome.failures for outcome in outcomes):
        return OK
    return PARTIAL if any(outcome.did_something for outcome in outcomes) else FAILURE


async def _queue(
    intake: Intake, names: Sequence[str], kb: str | None, *, every: bool, afresh: bool
) -> list[Job]:
    if every:
        chosen = [(source.name, source.kb) for source in await intake.sources(kb=kb)]
    else:
        # All must be there before the first is queued.
        chosen = [(source.name, source.kb) for source in [await intake.source(name) for name in names]]
    if not chosen:
        raise NotFoundError("there are no sources", remedy=Remedy(Action.ADD_SOURCE))
    return [await intake.sync(name, kb=scope, afresh=afresh) for name, scope in dict.fromkeys(chosen)]


async def _not_completed(intake: Intake) -> list[Job]:
    """Jobs that ended badly or not at all. A ticket is of one end only: a job that fails once more has another."""
    return await intake.jobs(states=("pending", "running", "failed", "cancelled"), limit=MOST_JOBS)


async def outcome_of(intake: Intake, job: Job, not_completed: Sequence[Job]) -> Outcome:
    """What became of a sync and of the documents that it queued."""
    from ragstone.core.types import Failure

    state, message = await _ending(intake, job)
    ended = await intake.job(job.id)
    if state != "completed":
        why = Failure(job.uri, ended.error_code, message, ended.progress.hint, ended.progress.remedy)
        return Outcome(job.source, job.kb, job.id, state, failures=1, failed=(why,), message=message)
    found = ended.progress.found
    shortfall = (await intake.source(job.source, kb=job.kb)).shortfall
    lost = [
        one
        for one in not_completed
        if one.kind == "document" and (one.source, one.kb) == (job.source, job.kb)
    ]
    queued = found.get("queued", 0)
    wordless = await _wordless(intake, job) if queued else 0
    return Outcome(
        *(job.source, job.kb, job.id, state),
        taken_in=max(0, queued - len(lost) - wordless),
        unchanged=found.get("unchanged", 0),
        removed=found.get("removed", 0),
        moved=found.get("moved", 0),
        passed_over=found.get("skipped", 0),
        wordless=wordless,
        unread=found.get("failed", 0),
        failures=shortfall.count,
        failed=shortfall.first,
        did_something=not shortfall.total,
        message=message,
    )


async def _wordless(intake: Intake, job: Job) -> int:
    """How many of the jobs that a sync queued met a picture without words."""
    ended = await intake.jobs(states=("completed",), source=job.source, limit=MOST_JOBS)
    return sum(
        "skipped" in one.progress.found
        for one in ended
        if one.kind == "document" and one.kb == job.kb and one.created_at >= job.created_at
    )


async def _ending(intake: Intake, job: Job) -> tuple[str, str]:
    """How a sync ended and what it said. Who waited for it has read the notice of it."""
    for notice in await intake.notices(limit=MOST_NOTICES):
        if notice.job_id == job.id:
            await intake.mark_read([notice.id])
            return notice.kind, notice.message
    ended = await intake.job(job.id)
    return ended.state, ended.error


def _show_queued(session: Session, jobs: Sequence[Job]) -> int:
    from ragstone.core.wire_jobs import job_json

    def draw(out: Console) -> None:
        rows = table("id", "source", "kb", "state")
        for job in jobs:
            rows.add_row(job.id, job.source, job.kb, job.state)
        out.print(rows)

    session.show({"jobs": [job_json(job) for job in jobs]}, draw)
    session.remark("next", session.options.command("jobs", "--watch"))
    return OK


def _json(outcome: Outcome) -> dict[str, Json]:
    from ragstone.core.wire import failure_json

    return {
        "source": outcome.source,
        "kb": outcome.kb,
        "job_id": outcome.job_id,
        "state": outcome.state,
        "taken_in": outcome.taken_in,
        "unchanged": outcome.unchanged,
        "removed": outcome.removed,
        "moved": outcome.moved,
        "skipped": outcome.skipped,
        "unread": outcome.unread,
        "failures": outcome.failures,
        "failed": [failure_json(failure) for failure in outcome.failed],
        "message": outcome.message,
    }


def _draw(out: Console, outcomes: Sequence[Outcome], options: Common, kb: str) -> None:
    numbers = ["added/updated", "unchanged", "removed", "failed"]
    sometimes = [name for name in ("moved", "skipped") if any(getattr(one, name) for one in outcomes)]
    numbers[3:3] = sometimes
    rows = table("source", *numbers, right=numbers)
    for one in outcomes:
        counts = [one.taken_in, one.unchanged, one.removed, *(getattr(one, name) for name in sometimes)]
        failed = text(f"{one.failures:,}", "bold red" if one.failures else "")
        rows.add_row(one.source, *(f"{count:,}" for count in counts), failed)
    out.print(rows)
    shown = [failure for one in outcomes for failure in _shown(one)]
    if shown:
        out.print()
        draw_failures(out, shown)
    for one in outcomes:
        if (more := one.failures - MOST_SHOWN) > 0:
            there = replace(options, kb=one.kb) if one.kb != kb else options
            out.print()
            out.print(f"And {more:,} more: {there.command('sources', 'show', one.source)}")


def _shown(outcome: Outcome) -> list[Failure]:
    """The first failures of a source; for a look that failed as a whole, the source by its name."""
    if outcome.state == "completed":
        return list(outcome.failed[:MOST_SHOWN])
    return [replace(failure, uri=outcome.source, code=outcome.state) for failure in outcome.failed]

"""`ragstone jobs` and `ragstone worker`: list, watch and control what is queued, and work on it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK
from ragstone.serve.cli.options import JobState, Log
from ragstone.serve.cli.render.failures import draw_hints, reason
from ragstone.serve.cli.render.jobs import ENDED, MOST_JOBS, REFRESH_SECONDS, WAITING, job_progress
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.jobs import Job, Notice
    from ragstone.engine.workspace import Workspace

COLOURS = {"completed": "green", "failed": "bold red", "running": "cyan", "cancelled": "dim"}
JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of the job, as `jobs` lists it.")]
JobIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of the jobs.")]
Some = Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many to list.")]


async def list_jobs(
    session: CliSession,
    state: Annotated[JobState | None, typer.Option("--state", help="Only jobs in this state.")] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="NAME", help="Only jobs of this source.")] = None,
    limit: Some = 20,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show their progress until all have ended, then list them.")
    ] = False,
) -> int:
    """List, cancel and retry jobs."""
    from ragstone.schemas.jobs import JobListSchema

    async with session.workspace() as workspace:
        if watch:
            await _watch(session, workspace)
        found = await workspace.jobs.list(states=(state,) if state else (), source=source, limit=limit)
        counts = await workspace.jobs.counts(source=source)
    shape = JobListSchema.of(jobs=found, counts=counts)
    session.show(shape, lambda out: _draw_jobs(out, found, counts))
    return OK if found else NOTHING_FOUND


async def show_job(session: CliSession, job_id: JobId) -> None:
    """Show everything about a job."""
    from ragstone.schemas.jobs import JobSchema

    async with session.workspace() as workspace:
        job = await workspace.jobs.get(job_id)
    session.show(JobSchema.of(job), lambda out: draw_job(out, job))


async def cancel_jobs(session: CliSession, job_ids: JobIds) -> int:
    """Stop jobs that have not ended."""
    async with session.workspace() as workspace:
        return await _each(session, job_ids, workspace.jobs.cancel, "cancelled", "it has ended")


async def retry_jobs(
    session: CliSession,
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of the jobs.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All failed jobs.")] = False,
) -> int:
    """Queue failed or cancelled jobs again."""
    if failed == bool(job_ids):
        raise InputError("name jobs or say --failed, one of the two", remedy=Remedy(Action.LIST_FAILED_JOBS))
    async with session.workspace() as workspace:
        if failed:
            job_ids = [job.id for job in await workspace.jobs.list(states=("failed",), limit=MOST_JOBS)]
        return await _each(
            session, job_ids or [], workspace.jobs.retry, "retried", "it neither failed nor was cancelled"
        )


async def list_notices(
    session: CliSession,
    unread: Annotated[bool, typer.Option("--unread", help="Only those not marked as read.")] = False,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark the listed ones as read.")] = False,
    limit: Some = 20,
) -> int:
    """List how uploads and syncs ended, newest first."""
    from ragstone.schemas.jobs import NoticeListSchema

    async with session.workspace() as workspace:
        found = await workspace.jobs.notices(unread=unread, limit=limit)
        if mark_read and found:
            await workspace.jobs.mark_read([notice.id for notice in found])
    session.show(NoticeListSchema.of(notices=found), lambda out: _draw_notices(out, found))
    return OK if found else NOTHING_FOUND


async def _watch(session: CliSession, workspace: Workspace) -> None:
    import asyncio

    counts = await workspace.jobs.counts()
    if counts.get("pending") and not counts.get("running"):
        start = session.options.command("worker")
        session.warn([f"nobody works on the queue at the moment; start with: {start}"])
    async with job_progress(session, workspace):
        while True:
            if not await workspace.jobs.list(states=("pending", "running"), limit=1):
                return
            await asyncio.sleep(REFRESH_SECONDS)


async def _each(
    session: CliSession, job_ids: Sequence[str], act: Callable[[str], Awaitable[bool]], done: str, why_not: str
) -> int:
    """Do something to each job; those it cannot be done to are named."""
    acted: list[str] = []
    refused: list[str] = []
    unknown: list[str] = []
    for job_id in dict.fromkeys(job_ids):
        try:
            (acted if await act(job_id) else refused).append(job_id)
        except NotFoundError:
            unknown.append(job_id)
    from ragstone.schemas.jobs import CancelledJobsSchema, RetriedJobsSchema

    schema = CancelledJobsSchema if done == "cancelled" else RetriedJobsSchema
    shape = schema.of(**{done: acted, f"not_{done}": refused, "not_found": unknown})
    session.show(shape, lambda out: out.print(f"{pluralize(len(acted), 'job')} {done}."))
    session.warn(f"job {job_id} was not {done}: {why_not}" for job_id in refused)
    session.warn(f"no job {job_id}" for job_id in unknown)
    if unknown:
        return NOTHING_FOUND
    return FAILURE if refused else OK


def draw_job(out: Console, job: Job) -> None:
    """Everything about one job, a line each."""
    how_far = job.progress
    facts = {
        "job": job.id,
        "state": job.state,
        "what": f"{job.kind} {one_line(job.uri)}",
        "source": f"{job.source}, knowledge base '{job.kb}'",
        "document": job.document_id,
        "stage": f"{how_far.stage} {how_far.percent}%" if how_far.stage else "",
        "pages": f"{how_far.pages:,} of {how_far.pages_total:,}" if how_far.pages_total else "",
        "chunks": f"{how_far.chunks:,} of {how_far.chunks_total:,}" if how_far.chunks_total else "",
        "attempts": str(job.attempts),
        "worker": job.worker,
        "error": f"{job.error_code}: {one_line(job.error)}" if job.error else "",
        "hint": one_line(how_far.advice),
        "queued": moment(job.created_at),
        "started": moment(job.started_at),
        "ended": moment(job.finished_at),
    }
    for name, value in facts.items():
        if value:
            out.print(text(f"{name:<10}", "dim").append(value))


def _draw_jobs(out: Console, jobs: Sequence[Job], counts: Mapping[str, int]) -> None:
    if not jobs:
        out.print("No jobs.")
    else:
        rows = table("id", "state", "%", "what", "error", right=("%",), whole=("id", "state"))
        for job in jobs:
            rows.add_row(
                job.id,
                text(_state(job), COLOURS.get(job.state, "")),
                "100" if job.state == "completed" else str(job.progress.percent),
                text(one_line(job.uri)),
                text(one_line(reason(out, job.uri, job.error))),
            )
        out.print(rows)
        draw_hints(out, ((job.uri, job.progress.advice) for job in jobs if job.error))
    if counts:
        out.print()
        said = (f"{counts[state]:,} {state}" for state in (*WAITING, *ENDED) if counts.get(state))
        out.print(f"In all: {', '.join(said)}.")


def _state(job: Job) -> str:
    """`running: embed`; how often it was tried, if more than once."""
    stage = f": {job.progress.stage}" if job.state == "running" and job.progress.stage else ""
    return f"{job.state}{stage}" + (f" ({job.attempts})" if job.attempts > 1 else "")


def _draw_notices(out: Console, notices: Sequence[Notice]) -> None:
    if not notices:
        out.print("No notices.")
        return
    rows = table("when", "how", "what", "message", "read")
    for notice in notices:
        rows.add_row(
            moment(notice.created_at),
            text(notice.kind, COLOURS.get(notice.kind, "")),
            text(one_line(notice.uri)),
            text(one_line(notice.message)),
            "yes" if notice.read else "",
        )
    out.print(rows)


async def work(
    session: CliSession,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=64, help="Number of jobs to process concurrently.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Exit when the queue is empty instead of waiting for more.")
    ] = False,
    log: Log = None,
) -> int:
    """Process queued jobs until Ctrl-C or SIGTERM.

    Works for all tenants, or with `--tenant` for one. Unfinished jobs are handed back when it
    stops and continue with the next worker. Each job that ends is reported on stderr.
    """
    from ragstone.serve.logs import write_logs

    settings = session.settings(**{"jobs.workers": workers, "service.log": log})
    ended: Counter[str] = Counter()

    def tell(tenant: str, job: Job) -> None:
        ended[job.state] += 1
        session.remark(job.state, _line(job))

    from ragstone.agents.article.task import add_article_task

    # A worker without a terminal that does not end with the queue is read by its log.
    logs = settings.service.log != "auto" or not (until_idle or sys.stderr.isatty())
    async with session.engine(settings, create=True) as engine:
        until = "nothing is left" if until_idle else "Ctrl-C"
        session.remark("worker", f"{pluralize(settings.jobs.workers, 'job')} at a time, until {until}")
        add_article_task(engine)
        worker = engine.worker(only=session.options.tenant, on_end=tell)
        with write_logs(settings) if logs else nullcontext():
            stopped = await until_signal(worker.run(until_idle=until_idle))
    from ragstone.schemas.jobs import WorkerSchema

    shape = WorkerSchema.of(stopped=stopped, completed=ended["completed"], failed=ended["failed"])
    how = "Stopped" if stopped else "Nothing is left to do"
    session.show(shape, lambda out: out.print(f"{how}: {shape.completed} completed, {shape.failed} failed."))
    return OK


def _line(job: Job) -> str:
    told = [job.error, *job.progress.remarks] if job.error else job.progress.remarks
    return one_line(f"{job.uri}: {'; '.join(told)}" if told else job.uri)

"""`ragstone worker`: works on what is queued until it is told to stop."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import OK
from ragstone.serve.cli.render.output import counted, one_line
from ragstone.serve.cli.session import Session
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from ragstone.core.jobs import Job


async def work(
    session: Session,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=64, help="Number of jobs to process concurrently.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Exit when the queue is empty instead of waiting for more.")
    ] = False,
) -> int:
    """Process queued jobs until Ctrl-C or SIGTERM.

    Works for all tenants, or with `--tenant` for one. Unfinished jobs are handed back when it
    stops and continue with the next worker. Each job that ends is reported on stderr.
    """
    settings = session.settings(**{"jobs.workers": workers})
    ended: Counter[str] = Counter()

    def tell(tenant: str, job: Job) -> None:
        ended[job.state] += 1
        session.remark(job.state, _line(job))

    async with session.engine(settings, create=True) as engine:
        until = "nothing is left" if until_idle else "Ctrl-C"
        session.remark("worker", f"{counted(settings.jobs.workers, 'job')} at a time, until {until}")
        worker = engine.worker(only=session.options.tenant, on_end=tell)
        stopped = await until_signal(worker.run(until_idle=until_idle))
    from ragstone.schemas.jobs import WorkerSchema

    shape = WorkerSchema.of(stopped=stopped, completed=ended["completed"], failed=ended["failed"])
    how = "Stopped" if stopped else "Nothing is left to do"
    session.show(shape, lambda out: out.print(f"{how}: {shape.completed} completed, {shape.failed} failed."))
    return OK


def _line(job: Job) -> str:
    told = [job.error, *job.progress.remarks] if job.error else job.progress.remarks
    return one_line(f"{job.uri}: {'; '.join(told)}" if told else job.uri)

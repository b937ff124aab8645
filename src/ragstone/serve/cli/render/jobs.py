"""The queue for people who watch: one bar over all jobs, and a line for each document that is being worked on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ragstone.serve.cli.render.output import console
from ragstone.serve.cli.render.progress import short

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ragstone.core.jobs import Job
    from ragstone.engine.workspace import Workspace
    from ragstone.serve.cli.session import CliSession

REFRESH_SECONDS = 0.5
MOST_LINES = 8
MOST_JOBS = 1_000_000
WAITING = ("pending", "running")
ENDED = ("completed", "failed", "cancelled")


@asynccontextmanager
async def job_progress(session: CliSession, workspace: Workspace) -> AsyncIterator[None]:
    """Show the queue on stderr while the block runs; nothing when nobody watches."""
    if not session.shows_progress:
        yield
        return
    import asyncio

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        following = asyncio.ensure_future(_follow(workspace, QueueBars(bars, await workspace.jobs.counts())))
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _follow(workspace: Workspace, view: QueueBars) -> None:
    import asyncio

    while True:
        view.show(await workspace.jobs.counts(), await workspace.jobs.list(states=("running",), limit=MOST_LINES))
        await asyncio.sleep(REFRESH_SECONDS)


class QueueBars:
    """Bars for the jobs that have ended since it began, and for those at work."""

    def __init__(self, bars: Progress, before: Mapping[str, int]) -> None:
        self._bars = bars
        self._ended_before = _among(before, ENDED)
        self._failed_before = before.get("failed", 0)
        self._all = bars.add_task("jobs", total=None, note="")
        self._lines: dict[str, TaskID] = {}

    def show(self, counts: Mapping[str, int], running: Sequence[Job]) -> None:
        """Draw the queue as it is now."""
        # Old jobs are forgotten and failed ones retried: neither may make the bar run backwards below its start.
        ended = max(0, _among(counts, ENDED) - self._ended_before)
        total = ended + _among(counts, WAITING)
        failed = counts.get("failed", 0) - self._failed_before
        note = f"{ended:,}/{total:,}" + (f", {failed:,} failed" if failed > 0 else "")
        self._bars.update(self._all, completed=ended, total=total, note=note)
        for job in running:
            self._show_job(job)
        for gone in self._lines.keys() - {job.id for job in running}:
            self._bars.remove_task(self._lines.pop(gone))

    def _show_job(self, job: Job) -> None:
        if job.id not in self._lines:
            self._lines[job.id] = self._bars.add_task(f"  {short(job.uri)}", total=100, note="")
        note = f"{job.progress.stage or 'waiting'} {job.progress.percent}%"
        self._bars.update(self._lines[job.id], completed=job.progress.percent, note=note)


def _among(counts: Mapping[str, int], states: Sequence[str]) -> int:
    return sum(counts.get(state, 0) for state in states)

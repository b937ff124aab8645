"""Progress bars on stderr, for people who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragstone.serve.cli.render.output import console, one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from ragstone.ingest.backfill import FillProgress, OnFill
    from ragstone.ingest.work import OnProgress, Progress
    from ragstone.serve.cli.session import CliSession
    from ragstone.transfer.reports import OnMove

Advance = Callable[[int, int], None]
WIDTH = 40


@contextmanager
def ingest_progress(session: CliSession, total: int) -> Iterator[OnProgress | None]:
    """A bar over documents with the chunks made so far, and how far a long one is; nothing when nobody watches."""
    if not session.shows_progress:
        yield None
        return
    from rich.progress import Progress as Bars
    from rich.progress import TextColumn

    note = TextColumn("{task.fields[note]}", markup=False)
    with Bars(*_columns(), note, console=console(stderr=True), transient=True) as bars:
        yield IngestBars(bars, total).show


class IngestBars:
    """Bars for the documents that are through, and for the long ones."""

    def __init__(self, bars: Bars, total: int) -> None:
        self._bars = bars
        self._total = total
        self._all = bars.add_task("documents", total=total, note="")
        self._long: dict[str, TaskID] = {}

    def show(self, progress: Progress) -> None:
        """Draw the run as it is now."""
        spent = self._bars.tasks[0].elapsed or 0.0
        rate = f", {progress.chunks / spent:.0f}/s" if progress.chunks and spent else ""
        # Attachments and messages of mailboxes show only when they are read.
        self._total = max(self._total, progress.done)
        note = f"{progress.chunks:,} chunks{rate}"
        self._bars.update(self._all, completed=progress.done, total=self._total, note=note)
        name = progress.document
        if not progress.stage:
            if name in self._long:
                self._bars.remove_task(self._long.pop(name))
        elif name in self._long or progress.part < progress.parts:
            if name not in self._long:
                self._long[name] = self._bars.add_task(f"  {short(name)}", note="")
            what = "pages read" if progress.stage == "extract" else "chunks embedded"
            self._bars.update(self._long[name], completed=progress.part, total=progress.parts, note=what)


@contextmanager
def fill_progress(session: CliSession) -> Iterator[OnFill | None]:
    """A bar over the chunks that have a vector, with the time that is left; nothing when nobody watches."""
    if not session.shows_progress:
        yield None
        return
    from rich.progress import Progress as Bars
    from rich.progress import TextColumn

    left = TextColumn("{task.fields[left]}")
    with Bars(*_columns(), left, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task("chunks", total=None, left="")

        def advance(progress: FillProgress) -> None:
            seconds = progress.seconds_left
            shown = (
                "" if seconds is None else f"{seconds / 60:.0f} min left" if seconds > 90 else f"{seconds:.0f} s left"
            )
            bars.update(task, completed=progress.done, total=progress.total, left=shown)

        yield advance


@contextmanager
def move_progress(session: CliSession) -> Iterator[OnMove | None]:
    """A bar for each thing that a move does."""
    if not session.shows_progress:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(*_columns(), console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield advance


@contextmanager
def query_progress(session: CliSession, system: str) -> Iterator[Advance | None]:
    """A bar over the queries that one system has answered."""
    if not session.shows_progress:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(*_columns(), console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(system, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def short(uri: str) -> str:
    """The end of a long address: that is where the file's name stands."""
    line = one_line(uri)
    return line if len(line) <= WIDTH else f"…{line[1 - WIDTH :]}"


def _columns() -> list[ProgressColumn]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    return [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ]

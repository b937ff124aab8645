"""Progress on stderr, for people who watch."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from ragstone.serve.cli.render.output import console, one_line, pluralize, say_plainly, text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import ProgressColumn, TaskID

    from ragstone.ingest.backfill import FillProgress, OnFill
    from ragstone.ingest.work import Progress
    from ragstone.serve.cli.session import CliSession
    from ragstone.transfer.reports import OnMove

Advance = Callable[[int, int], None]
WIDTH = 40
FRAMES_PER_SECOND = 4
FIRST_LINE_SECONDS = 1.0
LINE_SECONDS = 15.0
PACE_SECONDS = 60.0
"""The time that the pace of a run is told by."""
FEWEST_STEPS = 3
"""Times that chunks must have come back: the first ones waited for the model, and the next come back together."""
LOOKING, STOPPING = "looking for files", "stopping"


class IngestProgress:
    """Tells how far an ingest run is, and how long it may still take.

    The time that is left is told by the chunks that the model is through with in the last minute. Files that were not
    read yet count by their size: documents would mislead, since the short ones come first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, is_watched: bool = True) -> None:
        self.is_watched = is_watched
        self.phase = "starting"
        self.documents = 0
        """About how many there are; 0 while that is not known."""
        self.last: Progress | None = None
        self._clock = clock
        self._began = clock()
        self._size = 0
        self._long: dict[str, Progress] = {}
        self._embedded: deque[tuple[float, int]] = deque()
        self._steps = 0

    def stop(self) -> None:
        """Say that the run was told to stop and ends what it is at."""
        self.phase = STOPPING

    def expect(self, documents: int, size: int = 0) -> None:
        """Note how many documents and bytes there are to read."""
        self.phase = "reading"
        self.documents, self._size = documents, size

    def show(self, progress: Progress) -> None:
        """Take in the state of the run."""
        if self.phase != STOPPING:
            self.phase = progress.phase
        self.last = progress
        # Attachments and messages of mailboxes show only when they are read.
        self.documents = max(self.documents, progress.done)
        if progress.embedded and (not self._embedded or progress.embedded > self._embedded[-1][1]):
            self._embedded.append((self._clock(), progress.embedded))
            self._steps += 1
        if progress.stage and progress.part < progress.parts:
            self._long[progress.document] = progress
        elif progress.document:
            self._long.pop(progress.document, None)

    @property
    def share(self) -> float:
        """Return the share of the chunks that the model is through with; of the documents where there are none."""
        if self.last is None:
            return 0.0
        if not self.last.cut:
            return self.last.done / self.documents if self.documents else 0.0
        return self.last.embedded / (self.last.embedded + self._chunks_left(self.last))

    @property
    def counts(self) -> str:
        """Return what is done, such as `12 of 40 documents, 310 chunks, about 2 min left`."""
        if self.last is None:
            return f"{pluralize(self.documents, 'document')} found" if self.documents else ""
        parts = [f"{self.last.done:,} of {pluralize(self.documents, 'document')}"]
        if self.last.chunks:
            parts.append(pluralize(self.last.chunks, "chunk"))
        seconds = self.seconds_left
        return ", ".join([*parts, *([f"about {_round_time(seconds)} left"] if seconds is not None else [])])

    @property
    def elapsed(self) -> str:
        """Return the time since the beginning, such as `1:05`."""
        minutes, seconds = divmod(int(self._clock() - self._began), 60)
        return f"{minutes}:{seconds:02}"

    @property
    def long_document(self) -> str:
        """Return how far a long document is that is being worked on; empty when there is none."""
        at_work = list(self._long.values())  # a copy: other threads add to it
        if not at_work:
            return ""
        first = at_work[0]
        what = "pages read" if first.stage == "extract" else "chunks embedded"
        return f"{short(first.document)}: {first.part:,} of {first.parts:,} {what}"

    @property
    def seconds_left(self) -> float | None:
        """Return the time that is left at the pace of the last minute; None while there is no pace."""
        now = self._clock()
        while len(self._embedded) > 2 and now - self._embedded[1][0] > PACE_SECONDS:
            self._embedded.popleft()
        if self.last is None or self._steps < FEWEST_STEPS or self.phase == STOPPING:
            return None
        (began, first), (_, latest) = self._embedded[0], self._embedded[-1]
        return self._chunks_left(self.last) * (now - began) / (latest - first)

    def _chunks_left(self, progress: Progress) -> float:
        unread = max(0, self._size - progress.read_bytes)
        return progress.cut - progress.embedded + unread * progress.cut / max(1, progress.cut_bytes)

    def describe_kept(self) -> str:
        """Return what an interrupted run has stored."""
        done = self.last.done if self.last else 0
        kept = [f"{done:,} of {pluralize(self.documents, 'document')} are done and can be searched"]
        if not done:
            kept = ["no document was complete yet"]
        for long in [progress for progress in self._long.values() if progress.part]:
            what = "pages" if long.stage == "extract" else "chunks"
            kept.append(f"of {short(long.document)} {long.part:,} of {long.parts:,} {what} are kept")
        return "; ".join(kept)


def _round_time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(5, 5 * round(seconds / 5))} s"


@contextmanager
def ingest_progress(session: CliSession, *, lines: bool = False) -> Iterator[IngestProgress]:
    """Show how far an ingest is: a bar on a terminal, with `lines` a line now and then elsewhere."""
    on_terminal = session.shows_progress
    lines = lines and not (on_terminal or session.options.quiet or session.options.json)
    progress = IngestProgress(is_watched=on_terminal or lines)
    with _show_bar(progress) if on_terminal else _show_lines(progress) if lines else nullcontext():
        yield progress


@contextmanager
def _show_bar(progress: IngestProgress) -> Iterator[None]:
    from rich.live import Live

    view = Live(
        get_renderable=lambda: draw_progress(progress),
        console=console(stderr=True),
        refresh_per_second=FRAMES_PER_SECOND,
        transient=True,
    )
    with view:
        view.refresh()
        yield


def draw_progress(progress: IngestProgress) -> RenderableType:
    """Return the phase with a bar and the counts, and a line for a long document."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    bar = ProgressBar(total=1.0, completed=progress.share, width=24, pulse=False)
    row = Table.grid(padding=(0, 1))
    row.add_row(text(f"{progress.phase:<21}", "bold"), bar, text(progress.elapsed, "cyan"), text(progress.counts))
    return Group(row, text(f"  {progress.long_document}", "dim")) if progress.long_document else row


@contextmanager
def _show_lines(progress: IngestProgress) -> Iterator[None]:
    """Write a line about a run that takes its time, and another one now and then."""
    ended = threading.Event()

    def write() -> None:
        wait = FIRST_LINE_SECONDS
        while not ended.wait(wait):
            counts = f": {progress.counts}" if progress.counts else " …"
            say_plainly(f"{progress.phase}{counts}")
            wait = LINE_SECONDS

    thread = threading.Thread(target=write, name="ragstone-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def fill_progress(session: CliSession) -> Iterator[OnFill | None]:
    """Show a bar over the chunks that have a vector, with the time that is left; nothing when nobody watches."""
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
    """Show a bar for each thing that a move does."""
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
    """Show a bar over the queries that one system has answered."""
    if not session.shows_progress:
        yield None
        return
    from rich.progress import Progress as Bars

    with Bars(*_columns(), console=console(stderr=True), transient=True) as bars:
        task = bars.add_task(system, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def short(uri: str) -> str:
    """Return the end of a long address: that is where the file's name stands."""
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

"""Hundreds of files made to hurt: each becomes text or a typed error, within limits, and nothing else happens.

Every fifth bomb and every twentieth other file is run; `RAGSTONE_HOSTILE=all pytest tests/faults/test_hostile_300.py`
runs them all, in minutes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.faults.hostile import hostile_files
from tests.faults.hostile_damage import damaged_files, samples
from tests.faults.hostile_file import MEGABYTE, Bait, Hostile
from tests.faults.hostile_pdf import pdf_files

from ragstone.core.errors import ParserLimit, RagstoneError
from ragstone.core.types import Failure, Item, Parsed
from ragstone.ingest.parsers.draft import broken_rules, clean, printable
from ragstone.ingest.parsers.sandbox.pool import ParserLimits, ParserPool
from ragstone.ingest.sources.files.read import expand
from ragstone.settings.tree import LimitSettings

ALL = os.environ.get("RAGSTONE_HOSTILE") == "all"
LIMITS = ParserLimits(seconds=60, memory_mb=1024)
SECRET = "only the operator may read this"
ESCAPED = "hostile-escape"
DEEPEST = 2
"""How far attachments of attachments are followed."""


@dataclass
class Outcome:
    """What became of one file, and what it cost."""

    documents: list[Parsed] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unhinted: list[str] = field(default_factory=list)
    seconds: float = 0.0
    child: int = 0
    """The most memory its child had, in bytes."""

    @property
    def end(self) -> str:
        if not self.documents:
            return "refused" if self.errors else "nothing"
        return "partly" if self.errors else "read"

    def words(self) -> str:
        """Everything that is said about it, and all of its text."""
        told = [*self.errors, *(warning for parsed in self.documents for warning in parsed.warnings)]
        return "\n".join([*told, *(f"{parsed.title}\n{parsed.text}" for parsed in self.documents)])


class Lane:
    """A pool of one child, so that it is known which file used how much."""

    def __init__(self, limits: ParserLimits = LIMITS) -> None:
        self.pool = ParserPool(limits)
        self.pids: set[int] = set()

    async def run(self, file: Hostile) -> Outcome:
        """Take a file the way a source's files go: opened if it is a container, then parsed."""
        outcome = Outcome()
        started = time.monotonic()
        for pid in self.pool.pids:
            forget_peak(pid)
        await self._open(Item("files", file.name, file.name, file.content), outcome, 0)
        outcome.seconds = time.monotonic() - started
        return outcome

    async def _open(self, item: Item, outcome: Outcome, depth: int) -> None:
        for found in expand(item, LimitSettings()):
            if isinstance(found, Failure):
                outcome.errors.append(found.error)
            else:
                await self._parse(found, outcome, depth)

    async def _parse(self, item: Item, outcome: Outcome, depth: int) -> None:
        assert isinstance(item.content, bytes)
        parsing = asyncio.ensure_future(self.pool.parse(item.content, item.uri))
        while not parsing.done():
            await asyncio.wait({parsing}, timeout=0.02)
            self.pids |= self.pool.pids
            outcome.child = max(outcome.child, *(memory_peak(pid) for pid in self.pool.pids), 0)
        try:
            parsed = parsing.result()
        except RagstoneError as error:
            outcome.errors.append(str(error))
            outcome.unhinted += [] if error.hint else [str(error)]
            return
        outcome.documents.append(parsed)
        for inner in parsed.attachments if depth < DEEPEST else ():
            name = f"{item.uri}!/{inner.name}"
            await self._open(Item("files", name, name, inner.content), outcome, depth + 1)


def memory_peak(pid: int | str) -> int:
    """The most memory a process had so far; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int((status.partition("VmHWM:")[2].split() or ["0"])[0]) * 1024


def forget_peak(pid: int | str) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def problems(file: Hostile, outcome: Outcome) -> Iterator[str]:
    """What is wrong with what became of a file."""
    if file.ends not in ("any", outcome.end):
        yield f"it was to be {file.ends}, and was {outcome.end}: {outcome.words()[:300]}"
    if file.says not in outcome.words():
        yield f"{file.says!r} is not said: {outcome.words()[:300]}"
    name = printable(file.name)
    yield from (f"an error does not name it: {error}" for error in outcome.errors if name not in error)
    yield from (f"an error without a hint: {error}" for error in outcome.unhinted)
    for parsed in outcome.documents:
        yield from broken_rules(parsed)
        if clean(parsed.text) != (parsed.text, 0) or clean(parsed.title) != (parsed.title, 0):
            yield "its text holds what no reader sees"
        yield from (f"a name that leads out: {one.name}" for one in parsed.attachments if set(one.name) & {*"/\\\0"})
    leaked = [secret for secret in (SECRET, passwd_line()) if secret in outcome.words()]
    yield from (f"it read what is not its own: {secret}" for secret in leaked)
    if outcome.child > LIMITS.memory_mb * MEGABYTE:
        yield f"its child had {outcome.child // MEGABYTE} MB"


def passwd_line() -> str:
    return Path("/etc/passwd").read_text().partition("\n")[0]


class Doorkeeper:
    """A port of this machine that nobody should come to."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    def visitors(self) -> int:
        count = 0
        with suppress(BlockingIOError):
            while True:
                self._socket.accept()[0].close()
                count += 1
        return count

    def close(self) -> None:
        self._socket.close()


_written: list[str] | None = None
_CHANGES = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.remove", "os.rmdir")


def _note_changes(event: str, arguments: tuple[Any, ...]) -> None:
    if _written is None:
        return
    if event in _CHANGES:
        _written.append(f"{event} {arguments[0]}")
    elif event == "open" and isinstance(arguments[0], str | bytes) and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        path = os.fsdecode(arguments[0])
        if path != os.devnull and not path.startswith("/proc/"):
            _written.append(f"open {path}")


sys.addaudithook(_note_changes)  # cannot be taken back; silent unless a test listens


@pytest.fixture
def shared_parsers() -> None:
    """No child of another test: each file's child is watched."""


@contextmanager
def recorded_changes() -> Iterator[list[str]]:
    """What this process changes on disk from now on."""
    global _written
    samples()  # made by libraries that write files of their own, and kept
    _written = changes = []
    yield changes
    _written = None


@pytest.fixture(scope="module")
def doorkeeper() -> Iterator[Doorkeeper]:
    keeper = Doorkeeper()
    yield keeper
    keeper.close()


@pytest.fixture(scope="module")
def bait(tmp_path_factory: pytest.TempPathFactory, doorkeeper: Doorkeeper) -> Bait:
    secret = tmp_path_factory.mktemp("bait") / "secret"
    secret.write_text(SECRET)
    return Bait(str(secret), doorkeeper.port)


@pytest.fixture(scope="module")
def files(bait: Bait) -> list[Hostile]:
    """All of them, made once."""
    return list(hostile_files(bait))


def escaped(around: Path) -> list[Path]:
    """Files that got out, wherever a name that climbs would lead."""
    near = (
        around,
        *around.parents,
        Path.cwd(),
        *Path.cwd().parents,
        Path.home(),
        Path(tempfile.gettempdir()),
        Path("/tmp"),
    )
    return [path for folder in {*near} for path in folder.glob(f"*{ESCAPED}*")]


def chosen(files: list[Hostile]) -> Iterator[Hostile]:
    """The files of this run but the bombs, which have a test of their own."""
    for number, file in enumerate(file for file in files if not file.bomb):
        if ALL or (number % 20 == 0 and not file.endless):
            yield file


def test_there_are_three_hundred_and_no_two_of_them_alike(bait: Bait, files: list[Hostile]) -> None:
    """And those with random damage are the same on every run: what fails once can be looked at again."""
    made = {file.name: file.content for file in files}
    assert len(files) >= 300
    assert [name for name, count in Counter(file.name for file in files).items() if count > 1] == []
    again = hostile_files(bait) if ALL else damaged_files()
    assert [file.name for file in again if file.content != made[file.name]] == []


@dataclass
class Run:
    """What came of all files of a run, and of the process that had them parsed."""

    report: str
    files: int
    slowest: float
    """Seconds that the slowest file took."""
    wrong: list[str]
    changes: list[str]
    children: set[int]
    largest_child: int
    """The most memory a child had, in bytes: exact, where the peaks of files are samples."""


@pytest.mark.timeout(3600)
def test_hostile_files_become_text_or_typed_errors(
    tmp_path: Path,
    files: list[Hostile],
    doorkeeper: Doorkeeper,
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A child counts its parent's memory as its own until it runs a program, so the parent is a new, small process.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
        run = apart.submit(run_files, list(chosen(files))).result()
    record_property("injected", run.files)
    record_property("noted", f"slowest file {run.slowest:.1f} s, largest child {run.largest_child // MEGABYTE} MB")
    with capsys.disabled():
        print(f"\n{run.report}")
    assert run.wrong == []
    assert doorkeeper.visitors() == 0
    assert run.changes == []
    assert escaped(tmp_path) == []
    assert [pid for pid in run.children if is_there(pid)] == []
    assert 0 < run.largest_child <= LIMITS.memory_mb * MEGABYTE


def run_files(files: list[Hostile]) -> Run:
    """Parse the files of this run in two lanes, watching what this process changes on disk."""
    left = iter(files)
    lanes = Lane(), Lane()
    outcomes: dict[str, Outcome] = {}
    wrong: list[str] = []

    async def drive(lane: Lane) -> None:
        for file in left:
            outcome = await lane.run(file)
            wrong.extend(f"{printable(file.name)}: {problem}" for problem in problems(file, outcome))
            outcome.documents.clear()
            outcomes[file.name] = outcome
        assert (await lane.pool.parse(b"still here", "after.txt")).text == "still here"
        await lane.pool.close()

    async def drive_all() -> None:
        await asyncio.gather(*map(drive, lanes))

    with recorded_changes() as changes:
        asyncio.run(drive_all())
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    slowest = max(outcome.seconds for outcome in outcomes.values())
    pids = {pid for lane in lanes for pid in lane.pids}
    return Run(told(outcomes), len(outcomes), slowest, wrong, changes, pids, largest)


def told(outcomes: dict[str, Outcome]) -> str:
    """One line about a run; the ten slowest and the ten largest when all were run."""
    slowest = sorted(outcomes.items(), key=lambda one: -one[1].seconds)[: 10 if ALL else 1]
    largest = sorted(outcomes.items(), key=lambda one: -one[1].child)[: 10 if ALL else 1]
    return (
        f"{len(outcomes)} hostile files; slowest: "
        + ", ".join(f"{printable(name)} {outcome.seconds:.1f} s" for name, outcome in slowest)
        + "; largest child: "
        + ", ".join(f"{printable(name)} {outcome.child // MEGABYTE} MB" for name, outcome in largest)
    )


async def test_no_bomb_makes_the_parent_grow(
    files: list[Hostile], record_property: Callable[[str, object], None]
) -> None:
    bombs = [file for file in files if file.bomb]
    if not ALL:
        bombs = bombs[3::5]  # one of every kind of container; those of a table and of pictures take half a minute
    grown: dict[str, int] = {}
    wrong: list[str] = []
    lane = Lane()
    for bomb in bombs:
        forget_peak("self")
        before = memory_peak("self")
        outcome = await lane.run(bomb)
        grown[bomb.name] = memory_peak("self") - before
        wrong.extend(f"{printable(bomb.name)}: {problem}" for problem in problems(bomb, outcome))
    await lane.pool.close()
    record_property("injected", len(bombs))
    record_property("noted", f"of the bombs the worst made the parent grow by {max(grown.values()) // MEGABYTE} MB")
    assert wrong == []
    assert len(grown) >= (30 if ALL else 6)
    assert {name: size for name, size in grown.items() if size >= 50 * MEGABYTE} == {}


async def test_a_file_without_end_is_ended_and_its_child_with_it(bait: Bait) -> None:
    (file,) = (file for file in pdf_files(bait) if file.endless)
    pool = ParserPool(ParserLimits(seconds=2))
    await pool.parse(b"a child is there", "before.txt")
    (pid,) = pool.pids
    with pytest.raises(ParserLimit, match=rf"{file.name} took (longer|more) than 2 s"):
        await pool.parse(file.content, file.name)
    assert not is_there(pid)
    assert (await pool.parse(b"still here", "after.txt")).text == "still here"
    await pool.close()

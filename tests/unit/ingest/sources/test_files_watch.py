from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import write

from ragstone.ingest.sources.files.walk import changes

Step = Callable[[], object]


async def told(path: Path, *steps: Step) -> list[int]:
    """After which waits a change was told, when one step happens during each wait."""
    waits: list[float] = []
    seen: list[int] = []

    async def wait(seconds: float) -> None:
        if len(waits) == len(steps):
            raise asyncio.CancelledError  # as a watch ends that would go on for ever
        steps[len(waits)]()
        waits.append(seconds)

    with contextlib.suppress(asyncio.CancelledError):
        async for _ in changes(path, 2.5, wait=wait):
            seen.append(len(waits))  # noqa: PERF401  (a comprehension would lose them in the end)
    assert waits == [2.5] * len(steps)
    return seen


def nothing() -> None:
    """A wait in which nobody touches the folder."""


def touch(path: Path, moment: int) -> Step:
    return lambda: os.utime(path, (moment, moment))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "a.txt", "words")
    return tmp_path / "docs"


async def test_a_folder_that_stays_as_it_is_says_nothing(folder: Path) -> None:
    assert await told(folder, nothing, nothing, nothing) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write(folder / "b.txt"),
        lambda folder: write(folder / "sub" / "b.txt"),
        lambda folder: write(folder / "a.txt", "more words"),
        lambda folder: (folder / "a.txt").unlink(),
        lambda folder: (folder / "a.txt").rename(folder / "b.txt"),
        lambda folder: os.utime(folder / "a.txt", (1, 1)),
    ],
    ids=["added", "added below", "grown", "removed", "renamed", "touched"],
)
async def test_a_change_is_told_once_it_has_settled(folder: Path, change: Callable[[Path], object]) -> None:
    assert await told(folder, nothing, lambda: change(folder), nothing, nothing) == [3]


async def test_a_file_that_is_being_copied_is_waited_for(folder: Path) -> None:
    steps: Sequence[Step] = [touch(folder / "a.txt", moment) for moment in (1, 2, 3)]
    assert await told(folder, *steps, nothing, nothing) == [4]


async def test_what_is_no_document_is_no_change(folder: Path) -> None:
    steps = [lambda: write(folder / ".hidden"), lambda: write(folder / "ledger.db"), nothing, nothing]
    assert await told(folder, *steps) == []


async def test_a_disk_that_comes_back_as_it_was_has_not_changed(folder: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    steps: Sequence[Step] = [lambda: folder.rename(away), nothing, lambda: away.rename(folder), nothing, nothing]
    assert await told(folder, *steps) == []


async def test_a_folder_that_appears_is_a_change(tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert await told(new, nothing, lambda: write(new / "a.txt"), nothing, nothing) == [3]

"""The operator's scanner, as real processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.ingest import uploads
from ragstone.ingest.uploads import MalwareFound, scan

# Says its number into the pipe and never ends; what it started holds the pipe open as well.
ENDLESS = 'sleep 60 3>"$PIPE" & echo $$ >"$PIPE"; wait'


def shell(script: str) -> tuple[str, ...]:
    """A scanner whose `$0` is the file."""
    return ("sh", "-c", script)


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "pipe"
    os.mkfifo(place)
    monkeypatch.setenv("PIPE", str(place))
    return place


async def test_a_file_that_the_scanner_lets_pass_is_seen_whole() -> None:
    await scan(shell('test "$(cat "$0")" = words'), b"words", "a.txt")


async def test_a_refusal_is_told_in_the_scanners_words_about_the_name_people_know() -> None:
    with pytest.raises(MalwareFound) as caught:
        await scan(shell('echo "$0: worm\nfound"; exit 1'), b"words", "a.txt")
    assert str(caught.value) == "a.txt was refused by the malware scanner: a.txt: worm found"


async def test_without_the_scanner_nothing_passes() -> None:
    with pytest.raises(SettingsError, match="no-such-scanner cannot be run"):
        await scan(("no-such-scanner",), b"words", "a.txt")


async def test_a_scan_that_is_called_off_leaves_no_process(pipe: Path) -> None:
    running = asyncio.create_task(scan(shell(ENDLESS), b"words", "a.txt"))
    with await asyncio.to_thread(pipe.open) as heard:
        number = int(await asyncio.to_thread(heard.readline))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)  # neither running nor left behind as a zombie
        async with asyncio.timeout(240):
            assert await asyncio.to_thread(heard.read) == ""  # the end: nobody holds the pipe any more


async def test_a_scan_that_takes_too_long_refuses_and_leaves_no_process(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "SECONDS", 0.5)
    running = asyncio.create_task(scan(shell(ENDLESS), b"words", "a.txt"))
    with await asyncio.to_thread(pipe.open) as heard:
        number = int(await asyncio.to_thread(heard.readline))
        async with asyncio.timeout(240):
            with pytest.raises(MalwareFound, match=r"a\.txt was not scanned within"):
                await running
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)

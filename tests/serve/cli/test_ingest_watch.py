"""`ragstone ingest --watch`."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.warm import warm_python

from ragstone.ingest.sources.files.walk import watch_rounds

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

WATCH = """
import sys
from ragstone.testing.fakes import FakeEmbedder
import ragstone.engine.components
import ragstone.serve.cli.commands.ingest as watching
from ragstone.serve.cli.main import run
model = FakeEmbedder()
ragstone.engine.components.build_embedder = lambda _: model
watching.QUIET_SECONDS = 0.05
run(sys.argv[1:])
"""


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_watching_takes_in_each_change(pages: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    process = subprocess.Popen(
        [*warm_python(), "-c", WATCH, "ingest", "--watch", "pages", *flags],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    (pages / "harbour.txt").unlink()
    second = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "", "")
    if flags:
        assert [json.loads(line)["added"] for line in (first, second)] == [3, 0]
        assert json.loads(second)["removed"] == 1
    else:
        assert first.split("  ")[1] == "3 added; 3 documents in all\n"
        assert second.split("  ")[1] == "2 unchanged, 1 removed; 2 documents in all\n"


def test_watching_says_once_what_fails_in_every_round(pages: Path, tmp_path: Path) -> None:
    (pages / "empty.txt").touch()
    process = subprocess.Popen(
        [*warm_python(), "-c", WATCH, "ingest", "--watch", "pages"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    (pages / "void.txt").touch()
    assert "2 failed" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=240)[1].splitlines() == [
        "warning: pages/empty.txt: is empty",
        "hint: remove it, or put text in it",
        "warning: pages/void.txt: is empty",
        "hint: remove it, or put text in it",
    ]


def test_watching_a_path_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    ran = cli("ingest", "--watch", tmp_path / "nowhere")
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: {tmp_path / 'nowhere'} does not exist")


async def test_a_change_during_the_first_round_is_another_round(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("one")
    resting = asyncio.Event()

    async def wait(_: float) -> None:
        await resting.wait()

    async with aclosing(watch_rounds([tmp_path], 1.0, wait)) as turns:
        await anext(turns)
        page.write_text("one and two")
        resting.set()
        await asyncio.wait_for(anext(turns), 240)
        resting.clear()


async def test_a_path_that_cannot_be_watched_ends_the_watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ragstone.ingest.sources.files.walk.signature", closed)
    async with aclosing(watch_rounds([tmp_path], 1.0)) as turns:
        await anext(turns)
        with pytest.raises(PermissionError):
            await asyncio.wait_for(anext(turns), 240)

"""Questions that are asked before something is removed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import warm_python

from ragstone.serve.cli.main import main


@pytest.mark.parametrize(
    "leave",
    [lambda process, _: process.send_signal(signal.SIGINT), lambda _, terminal: os.write(terminal, b"\x04")],
    ids=["Ctrl-C", "Ctrl-D"],
)
def test_a_question_can_be_left(tmp_path: Path, leave: Callable[[subprocess.Popen[bytes], int], object]) -> None:
    (tmp_path / "notes").mkdir()
    assert main(["sources", "add", "files", "notes", "path=notes", "--quiet"]) == 0
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        (*warm_python(), "-m", "ragstone", "sources", "remove", "notes"), cwd=tmp_path, stdin=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    leave(process, ours)
    try:
        assert process.wait(timeout=240) == 130
        assert b"interrupted" in os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)

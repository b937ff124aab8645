"""Every example of the README runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
CONSOLE = [line[2:] for language, code in BLOCKS if language == "console" for line in code.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder: a few documents, and what the examples leave behind."""
    place = tmp_path_factory.mktemp("readme")
    (place / "docs").mkdir()
    (place / "docs" / "refunds.md").write_text(
        "# Refunds\n\nRefunds take five working days. They are paid to the card that was used.\n"
    )
    return place


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run(code: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_console_examples_run_in_order(folder: Path) -> None:
    assert [shlex.split(line)[1] for line in CONSOLE] == ["ingest", "search", "ask"]
    outputs = []
    for line in CONSOLE:
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert "Refunds take five working days." in outputs[-1]


def test_both_commands_are_shown() -> None:
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert missing == []

"""Every example of the README and of the pages it leads to runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "sources.md"]
PYTHON_PAGES = [*PAGES, *(ROOT / "docs" / f"{name}.md" for name in ("agents", "answers", "moving", "verify"))]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


PYTHON = [(page.stem, code) for page in PYTHON_PAGES for code in blocks(page, "python")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder: a few documents, and what the examples leave behind."""
    place = tmp_path_factory.mktemp("readme")
    (place / "docs").mkdir()
    (place / "docs" / "refunds.md").write_text(
        "# Refunds\n\nRefunds take five working days. They are paid to the card that was used.\n"
    )
    (place / "handbook").mkdir()
    (place / "handbook" / "leave.md").write_text("# Leave\n\nWhoever is ill tells the office before nine.\n")
    return place


@pytest.mark.parametrize(("page", "code"), PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run(
    page: str,
    code: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    exec(compile(code, page, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "commands", "said"),
    [
        (
            PAGES[0],
            ["ingest", "search", "ask", "sources", "sources", "jobs"],
            "Refunds take five working days.",
        ),
        (PAGES[1], ["sources", "sources", "sources", "ingest", "jobs", "worker"], "handbook"),
    ],
    ids=["README", "sources"],
)
def test_console_examples_run_in_order(page: Path, commands: list[str], said: str, folder: Path) -> None:
    lines = [line[2:] for code in blocks(page, "console") for line in code.splitlines()]
    assert [shlex.split(line)[1] for line in lines] == commands
    outputs = []
    for line in lines:
        command = [sys.executable, "-m", *shlex.split(line), "--data-dir", page.stem]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        assert "warning: " not in done.stderr, line
        outputs.append(done.stdout)
    assert any(said in output for output in outputs)


def test_both_commands_are_shown() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", PAGES[0].read_text(encoding="utf-8"))
    assert targets
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert missing == []

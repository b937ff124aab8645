"""The examples of the README and of every page in docs/ run, and links lead somewhere."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ragstone import load_settings
from ragstone.core.protocols import Embedder
from ragstone.models import build_embedder
from ragstone.serve.cli.main import app, main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
RUNNABLE = {"console", "python"}
SERVICE = "http://127.0.0.1:8000"
"""Examples that need a service are run by tests/client."""
SHOWN_ONLY = {"CONTRIBUTING.md", "docs/reference/requirements.md", "docs/reference/python.md"}
EXIT_CODES = (0, 4)

Run = Callable[[str], str]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and text of every code block of a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


RUN = {
    name_of(page): [block for block in blocks(page) if block[0] in RUNNABLE and SERVICE not in block[1]]
    for page in PAGES
    if name_of(page) not in SHOWN_ONLY
}
EXAMPLES = {page: examples for page, examples in RUN.items() if examples}
PROGRAM: Any = typer.main.get_command(app)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A new user's folder with a few documents: no page may depend on another having run."""
    place = tmp_path / "docs"
    for path, text in {
        "docs/refunds.md": "# Refunds\n\nRefunds take five working days. They are paid to the card that was used.\n",
        "handbook/leave.md": "# Leave\n\nReport sick leave to the office before nine.\n",
        "library/corpus.txt": "The dragon sleeps under the old bridge. It wakes when the river floods.\n",
    }.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def embedder() -> Iterator[Embedder]:
    """The default model, loaded once for all examples."""
    shared = build_embedder(load_settings(environment={}).embedding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "close", _keep_open)
        yield shared
    asyncio.run(shared.close())


async def _keep_open() -> None:
    """Replace `close`: an example ends its engine, not the shared model."""


@pytest.fixture
def run(folder: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a line of a shell in the user's folder: `ragstone` in this process, anything else by the shell."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: embedder)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("RAGSTONE_DATA_DIR", str(folder / "data"))

    def run_line(line: str) -> str:
        if not line.startswith("ragstone "):
            return subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout
        capfd.readouterr()
        code = main(shlex.split(line)[1:])
        written = capfd.readouterr()
        assert code in EXIT_CODES, (line, written.err)
        assert "warning: " not in written.err, line
        return written.out

    return run_line


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run_and_print_what_is_shown(
    page: str, folder: Path, run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    for language, text in EXAMPLES[page]:
        if language == "console":
            for line, shown in commands(text):
                assert matches(shown, run(line)), f"{page}: {line} printed something else"
        else:
            capfd.readouterr()
            exec(compile(text, page, "exec"), {"__name__": "__main__"})
            assert capfd.readouterr().out, f"{page}: an example printed nothing"


def commands(text: str) -> list[tuple[str, str]]:
    """Split a console block into its commands and the output shown under each."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def matches(shown: str, printed: str) -> bool:
    """Compare as doctest does: nothing shown matches anything, `...` matches any text."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return not shown.strip() or re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_json_has_the_documented_shape(run: Run) -> None:
    text = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## `(ragstone [^`]*)`\n\n```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(sections) == 8
    for line, documented in sections:
        assert shape(json.loads(run(line))) == shape(json.loads(documented)), line


def shape(value: Any) -> Any:
    """Reduce JSON to its keys, leaving out lists of values and what a document or stage provides."""
    if isinstance(value, dict):
        free = {"metadata", "scores"}
        return {key: shape(inner) for key, inner in value.items() if key not in free} | dict.fromkeys(
            free & value.keys()
        )
    if isinstance(value, list):
        return shape(value[0]) if value and isinstance(value[0], dict) else []
    return None


def test_shown_commands_exist() -> None:
    for page in PAGES:
        for language, text in blocks(page):
            for line in text.replace("\\\n", " ").splitlines() if language in ("", "sh", "console") else ():
                words = line.removeprefix("$ ")
                if words.startswith("ragstone "):
                    parse(shlex.split(words, comments=True)[1:])


def parse(words: list[str]) -> None:
    """Find the command and check its options; values may be placeholders."""
    command = PROGRAM
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    context = command.make_context("ragstone", [], resilient_parsing=True)
    command.make_parser(context).parse_args(list(words))


def test_shown_settings_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "ragstone.yaml"
    for page in PAGES:
        for language, text in blocks(page):
            if language == "yaml" and not text.startswith("# terms.yaml"):
                file.write_text(text, encoding="utf-8")
                variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
                assert load_settings(config=file, environment=variables), name_of(page)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
            if "://" not in target:
                file = page.parent / target if target else page
                assert file.exists(), f"{name_of(page)}: {target}"
                assert not anchor or anchor in anchors(file), f"{name_of(page)}: {target}#{anchor}"


def test_paths_in_the_map_of_the_designs_exist() -> None:
    text = (DOCS / "reference" / "seeds.md").read_text(encoding="utf-8")
    rows = [line.split("|")[3] for line in text.splitlines() if line.startswith("| `") and "planned" not in line]
    paths = {path for row in rows for path in re.findall(r"`(\w+(?:/\w+)+(?:/|\.\w+))`", row)}
    assert len(paths) > 40
    assert [path for path in sorted(paths) if not (ROOT / "src" / "ragstone" / path).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_short_and_shows_both_commands() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert "make demo" in text
    assert "make test" in text

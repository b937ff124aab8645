"""The command line in this process, over an engine whose model is a fake."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragstone.serve.cli.main import main
from ragstone.testing.fakes import FakeEmbedder

PAGES = {
    "fares.md": "# Fares\n\nA single crossing costs six crowns.\n\n## Dogs\n\nA dog travels for two crowns.\n",
    "harbour.txt": "The harbour opens at six in the morning. The lighthouse was painted in 1931.\n",
    "staff/rota.html": "<html><head><title>Rota</title></head><body><p>Ada minds the engine room.</p></body></html>",
}


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine, and a working folder without a `ragstone.yaml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("ragstone.serve.cli.commands.evaluate.eval_folder", lambda: tmp_path / "eval")
    monkeypatch.setattr("ragstone.serve.cli.render.progress.FIRST_LINE_SECONDS", 3600.0)
    for name in [name for name in os.environ if name.startswith("RAGSTONE_") and name != "RAGSTONE_CACHE_DIR"]:
        monkeypatch.delenv(name)


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    """The model that every engine of the test uses."""
    return use_fake_model(monkeypatch)


@pytest.fixture
def cli(embedder: FakeEmbedder, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command: `cli("search", "dogs", "--json")`."""

    def run(*arguments: str | Path) -> Ran:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        written = capfd.readouterr()
        return Ran(code, written.out, written.err)

    return run


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder with three small documents."""
    return _write_pages(tmp_path / "pages")


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the three documents in it, made once."""
    place = tmp_path_factory.mktemp("of-commands")
    folder = _write_pages(place / "pages")
    with pytest.MonkeyPatch.context() as patch:
        use_fake_model(patch)
        patch.chdir(place)
        assert main(["ingest", str(folder), "--data-dir", str(place / "data"), "--quiet"]) == 0
    return place / "data"


@pytest.fixture
def filled(cli: Cli, stock: Path, tmp_path: Path) -> Cli:
    """The command line after the three documents were ingested."""
    shutil.copytree(stock, tmp_path / "ragstone-data")
    return cli


def use_fake_model(patch: pytest.MonkeyPatch) -> FakeEmbedder:
    """Give every engine the same fake model."""
    fake = FakeEmbedder()
    patch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake


def watched(patch: pytest.MonkeyPatch) -> None:
    """Let the program believe that somebody sits at a terminal and can be asked."""
    patch.setattr("ragstone.serve.cli.session.sys.stdin", _Terminal())
    patch.setattr("ragstone.serve.cli.session.sys.stderr", _Terminal())


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _write_pages(folder: Path) -> Path:
    for name, content in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder

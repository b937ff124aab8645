"""`config`, `doctor`, `models`, `--version`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ragstone
from ragstone.models import installed
from ragstone.schemas.settings import mask_secrets
from ragstone.settings.tree import Settings
from ragstone.stores.health import installation

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[3]


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"ragstone {ragstone.__version__}\n"


def test_config_shows_what_is_in_force(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.yaml").write_text("retrieval:\n  k: 7\nkb: from-file\n", encoding="utf-8")
    monkeypatch.setenv("RAGSTONE_RETRIEVAL__MODE", "fast")
    shown = cli("config", "--config", tmp_path / "own.yaml", "--kb", "from-flag", "--json").json
    assert (shown["retrieval"]["k"], shown["retrieval"]["mode"], shown["kb"]) == (7, "fast", "from-flag")


def test_config_for_people_can_be_read_back(cli: Cli, tmp_path: Path) -> None:
    written = cli("config", "--profile", "kosmos").out
    (tmp_path / "saved.yaml").write_text(written, encoding="utf-8")
    assert yaml.safe_load(written) == cli("config", "--config", tmp_path / "saved.yaml", "--json").json


def test_the_settings_as_they_are_shown_open_the_stores(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "saved.yaml").write_text(cli("config").out, encoding="utf-8")
    (tmp_path / "note.md").write_text("Refunds take five working days.", encoding="utf-8")
    assert cli("ingest", tmp_path / "note.md", "--config", tmp_path / "saved.yaml").code == 0


def test_secrets_are_masked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_LLM__API_KEY", "sk-hush")
    monkeypatch.setenv("RAGSTONE_LLM__BASE_URL", "https://me:hush@llm.example/v1")
    monkeypatch.setenv("RAGSTONE_STORE__LEDGER__DSN", "postgresql://me:hush@db/x")
    monkeypatch.setenv("RAGSTONE_STORE__VECTORS__OPTIONS", '{"auth_token": "hush", "nested": {"password": "hush"}}')
    for ran in (cli("config"), cli("config", "--json")):
        assert ran.code == 0
        assert "hush" not in ran.out
    assert "https://me:**********@llm.example/v1" in cli("config").out


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ({"api_key": "x"}, {"api_key": "**********"}),
        ({"tokens": 5, "max_tokens": 3}, {"tokens": 5, "max_tokens": 3}),
        (["redis://:pw@host/0", "plain"], ["redis://:**********@host/0", "plain"]),
        ({"key": None, "url": "https://host/path:1@2"}, {"key": None, "url": "https://host/path:1@2"}),
    ],
)
def test_masking(value: Any, hidden: Any) -> None:
    assert mask_secrets(value) == hidden


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "nope"), "error: there is no profile 'nope'\nhint: choose one of: default"),
        (("--config", "nope.yaml"), "error: the settings file nope.yaml does not exist\nhint: "),
    ],
)
def test_wrong_settings_are_usage_errors(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    ran = cli("config", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)


def test_doctor_finds_everything_in_order(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli("doctor", "--json")
    states = {check["name"]: check["state"] for check in ran.json["checks"]}
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert {states[name] for name in ("python", "sqlite", "settings", "runtime", "model", "data folder")} == {"ok"}
    model = next(check for check in ran.json["checks"] if check["name"] == "model")
    assert model["detail"].startswith("granite-embedding-30m-english@6a1cc24734a5, 384 dimensions")


def test_doctor_fails_with_what_to_type(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_EMBEDDING__PATH", str(tmp_path / "no-model"))
    ran = cli("doctor")
    assert ran.code == 1
    line = next(line for line in ran.out.splitlines() if " model " in line)
    assert line.split()[:2] == ["fail", "model"]
    assert "name a folder with" in ran.out


def test_doctor_reports_settings_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ragstone.yaml").write_text("retreival: {k: 5}\n", encoding="utf-8")
    checks = {check["name"]: check for check in cli("doctor", "--json").json["checks"]}
    assert checks["settings"]["state"] == "fail"
    assert checks["settings"]["fix"] == "did you mean 'retrieval'?"


def test_a_missing_extra_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    remark = installation.check_extra("llm", Settings())
    assert (remark.state, remark.fix) == ("warn", 'pip install "ragstone[llm]"')
    for extra in ("tables", "ocr", "code", "hub"):
        check = installation.check_extra(extra, Settings())
        assert (check.state, check.fix) == ("warn", f'pip install "ragstone[{extra}]"')
    needed = installation.check_extra("llm", Settings.model_validate({"llm": {"model": "gpt"}}))
    assert needed.state == "fail"


@pytest.mark.parametrize(("program", "fix"), [("git", "apt install git"), ("tesseract", "apt install tesseract-ocr")])
def test_programs_are_looked_for(monkeypatch: pytest.MonkeyPatch, program: str, fix: str) -> None:
    monkeypatch.setattr(installation.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert installation.check_program(program).detail == f"/usr/bin/{program}"
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    missing = installation.check_program(program)
    assert (missing.state, missing.fix) == ("warn", fix)


def test_the_ocr_extra_makes_up_for_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    assert installation.check_program("tesseract").state == "ok"


OTHER_NAMES = {"jwt": "pyjwt"}
"""Modules that are not named as the package that installs them."""


def test_every_module_of_an_extra_is_one_that_it_installs() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = wanted["project"]["optional-dependencies"]
    assert installation.EXTRAS.keys() == extras.keys() - {"all"}
    for extra, (modules, _) in installation.EXTRAS.items():
        named = {re.split(r"[<>=\[]", wheel)[0].replace("-", "_") for wheel in extras[extra]}
        assert {OTHER_NAMES.get(module, module.replace(".", "_")) for module in modules} == named


@pytest.mark.parametrize(
    ("runtime", "fix"), [("auto", "pip install openvino"), ("onnxruntime", 'pip install "ragstone[onnx]"')]
)
def test_a_missing_runtime_comes_with_its_command(monkeypatch: pytest.MonkeyPatch, runtime: str, fix: str) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    check = installed.check_runtime(Settings.model_validate({"embedding": {"runtime": runtime}}))
    assert (check.state, check.fix) == ("fail", fix)


def test_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert installation.check_data_folder(tmp_path / "file" / "data").state == "fail"
    assert installation.check_data_folder(tmp_path / "new" / "data").detail.endswith("(not there yet)")


@pytest.mark.parametrize(("free_mb", "state"), [(10, "fail"), (500, "warn"), (5000, "ok")])
def test_free_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_mb: int, state: str) -> None:
    usage: Callable[[Path], Any] = lambda _: type("Usage", (), {"free": free_mb * 1024 * 1024})  # noqa: E731
    monkeypatch.setattr(installation.shutil, "disk_usage", usage)
    assert installation.check_space(tmp_path).state == state


def test_models_with_their_state(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAGSTONE_CACHE_DIR", str(tmp_path / "cache"))
    models = {entry["name"]: entry for entry in cli("models", "--json").json["models"]}
    default = models["granite-embedding-30m-english"]
    assert (default["state"], default["configured"], default["dimension"]) == ("installed", True, 384)
    assert (models["text-embedding-3-small"]["state"], models["text-embedding-3-small"]["kind"]) == (
        "remote",
        "embedding",
    )
    large = models["bge-large-en-v1.5"]
    assert (large["state"], large["get"]) == ("missing", "ragstone models pull bge-large-en-v1.5")
    reranker = models["cross-encoder/ms-marco-MiniLM-L-6-v2"]
    assert (reranker["kind"], reranker["state"], reranker["configured"]) == ("reranker", "missing", False)
    assert "  ragstone models pull bge-large-en-v1.5\n" in cli("models").out


def test_a_model_that_the_catalogue_does_not_know(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAGSTONE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RAGSTONE_EMBEDDING__MODEL", "someone/own-model")
    models = {entry["name"]: entry for entry in cli("models", "--json").json["models"]}
    assert models["someone/own-model"]["configured"]
    assert models["someone/own-model"]["get"] == "ragstone models pull someone/own-model"


def test_pulling_says_where_the_model_is(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    def pull(name: str, *, revision: str | None) -> Path:
        asked.append((name, revision))
        return tmp_path / "model"

    monkeypatch.setattr("ragstone.models.weights.pull", pull)
    ran = cli("models", "pull", "someone/model", "--revision", "v2", "--json")
    assert ran.json == {"model": "someone/model", "path": str(tmp_path / "model")}
    assert asked == [("someone/model", "v2")]


def test_a_name_that_is_no_model_name(cli: Cli) -> None:
    ran = cli("models", "pull", "../../etc", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "invalid_input")

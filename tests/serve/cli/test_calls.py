"""How the program is called, fails and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
import typer
from tests.warm import warm_python

from ragstone.core.errors import InputError, ModelError, NotFoundError, RagstoneError, SettingsError
from ragstone.core.jobs import JobState
from ragstone.core.types import Mode
from ragstone.serve.cli import options
from ragstone.serve.cli.exits import exit_code
from ragstone.serve.cli.main import app
from ragstone.serve.cli.reference import reference
from ragstone.serve.cli.render.output import clean, place
from ragstone.settings.retrieval import Fusion, RetrievalSettings

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("sqlalchemy", "fastapi", "numpy", "openvino", "ragstone.settings.tree", "tokenizers", "httpx2")


@pytest.mark.parametrize("arguments", [["--help"], ["search", "--help"], ["documents", "-h"], ["jobs", "-h"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from ragstone.serve.cli.main import main; "
        f"assert main({arguments!r}) == 0; "
        f"sys.exit(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)
    assert ran.stderr.strip() == ""
    assert ran.stdout.startswith("Usage: ragstone")


def test_piped_help_has_no_frames(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    assert ran.out.isascii()


def test_help_on_80_columns_cuts_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "rich_markup_mode", None)
    program: Any = typer.main.get_command(app)
    groups = [program, *(group for group in program.commands.values() if hasattr(group, "commands"))]
    pages = [
        group.make_context("ragstone", [], resilient_parsing=True, terminal_width=78).get_help() for group in groups
    ]
    cut = [line for page in pages for line in page.splitlines()[1:] if line.endswith("...")]
    assert cut == []


def test_the_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written.rstrip() == reference().rstrip(), (
        "update it: python -m ragstone.serve.cli.reference > docs/reference/cli.md"
    )


def test_the_reference_has_every_command() -> None:
    page = reference()
    for registered in app.registered_commands:
        assert f"## ragstone {registered.name}\n" in page
    groups = {
        "documents": ("show", "delete"),
        "sources": ("add", "list", "sync", "pause", "resume", "remove", "kinds"),
        "jobs": ("show", "cancel", "retry", "notices"),
        "kb": ("list", "rename", "delete"),
        "corpus": ("build", "show", "chunk"),
        "models": ("pull",),
    }
    for group, commands in groups.items():
        for command in commands:
            assert f"## ragstone {group} {command}\n" in page


@pytest.mark.parametrize(
    "option", ["--data-dir", "--tenant", "--kb", "--profile", "--config", "--json", "--quiet", "--debug"]
)
def test_every_command_takes_the_common_options(option: str) -> None:
    sections = reference().split("\n## ragstone ")[1:]
    without = [part.split("\n")[0] for part in sections if option not in part]
    assert without == ["corpus"]  # a group that only shows its help


def test_choices_are_those_of_the_engine() -> None:
    assert get_args(options.Mode) == get_args(Mode)
    assert get_args(options.Fusion) == get_args(Fusion)
    assert get_args(options.JobState) == get_args(JobState)
    assert get_args(options.Arms) == get_args(RetrievalSettings.model_fields["arms"].annotation)


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("ask How long do refunds take?", 'words with blanks between them stand in quotes: ragstone ask "QUESTION"'),
        ("chat Hello there", 'words with blanks between them stand in quotes: ragstone chat "MESSAGE"'),
        ("stats wiki", "ragstone stats --help"),
        ("tenants rename a b c", "ragstone tenants rename --help"),
    ],
)
def test_a_question_without_quotes_is_told_of_them(cli: Cli, typed: str, hint: str) -> None:
    ran = cli(*typed.split())
    assert (ran.code, ran.out) == (2, "")
    said, advice = ran.err.splitlines()
    assert said.startswith("error: Got unexpected extra argument(s) (")
    assert advice == f"hint: {hint}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serach", "x"], "No such command 'serach'. Did you mean 'search'"),
        (["search"], "Missing argument 'QUERY'."),
        (["search", "x", "--mode", "slow"], "Invalid value for '--mode': 'slow' is not one of"),
        (["search", "x", "-k", "0"], "-k"),
        (["search", "x", "--zork"], "No such option: --zork"),
        (["kb", "remove"], "No such command 'remove'."),
    ],
)
def test_usage_errors(cli: Cli, arguments: list[str], message: str) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.splitlines()[0]
    assert ran.err.startswith("error: ")
    assert ran.err.splitlines()[1].startswith("hint: ragstone ")
    as_json = cli(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.err == ""
    assert as_json.json["error"]["code"] == "usage"
    assert message in as_json.json["error"]["message"]


def test_options_before_the_command_are_told_their_place(cli: Cli) -> None:
    ran = cli("--tenant", "harbour", "search", "x")
    assert (ran.code, ran.out) == (2, "")
    assert "options stand behind the command" in ran.err


@pytest.mark.parametrize(
    "group", ["documents", "jobs", "conversations", "models", "tenants", "golden", "kb", "sources", "feedback", "keys"]
)
def test_what_a_group_lists_by_itself_it_lists_by_name(cli: Cli, group: str) -> None:
    ran = cli(group, "list", "--json")
    assert (ran.code, ran.out) == ((alone := cli(group, "--json")).code, alone.out)
    assert ran.code in (0, 4)


@pytest.mark.parametrize("arguments", [[], ["corpus"]])
def test_no_command_shows_the_help(cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == 2
    assert ran.out.startswith("Usage: ragstone")


@pytest.mark.parametrize(
    ("error", "code"), [(InputError, 2), (SettingsError, 2), (NotFoundError, 4), (ModelError, 1), (RagstoneError, 1)]
)
def test_exit_codes_of_errors(error: type[RagstoneError], code: int) -> None:
    assert exit_code(error("x")) == code


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_unexpected_error_is_one_line_and_a_traceback_with_debug(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    def broken(_: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("ragstone.engine.engine.open_engine", broken)
    ran = cli("ingest", ".", *flags)
    assert ran.code == 1
    if flags:
        assert ran.json["error"]["code"] == "internal"
        assert ran.out.count("\n") == 1
        assert ran.err == ""
    else:
        assert ran.err.splitlines() == [
            "error: unexpected ValueError: two lines",
            "hint: run it again with --debug to see where",
        ]
    assert "Traceback" in cli("ingest", ".", "--debug", *flags).err


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_interrupt_ends_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragstone.engine.engine.open_engine", interrupted)
    ran = cli("ingest", ".", *flags)
    assert ran.code == 130
    assert "Traceback" not in ran.err
    if flags:
        assert ran.json["error"]["code"] == "interrupted"


def test_an_operating_system_error_names_the_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/control.db")

    monkeypatch.setattr("ragstone.engine.engine.open_engine", refused)
    ran = cli("ingest", ".")
    assert (ran.code, ran.err) == (1, "error: /data/control.db: Permission denied\n")


@pytest.mark.parametrize("words", ["config", "config --json", "nonsense --json", "search --json", "--help"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "ragstone", *words.split()],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=240,
        check=False,
    )
    os.close(write)
    assert ran.stderr == ""


def test_ctrl_c_in_the_middle_of_an_ingest(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    os.mkfifo(tmp_path / "ready")
    (pages / "a.txt").write_text("words")
    # Stops once the engine is open and work is going on: that is when the signal is sent.
    code = (
        "import sys, ragstone.ingest.pipeline as p\n"
        "from ragstone.serve.cli.main import run\n"
        "async def slow(self, task):\n"
        "    open('ready', 'w').close()\n"
        "    import asyncio; await asyncio.Event().wait()\n"
        "p._Run._prepare = slow\n"
        "run(['ingest', 'pages'])"
    )
    process = subprocess.Popen(
        [*warm_python(), "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    (tmp_path / "ready").open().close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (
        130,
        "",
        "interrupted: no document was complete yet\nhint: the same command goes on from there\n",
    )


def test_colours_only_on_a_terminal(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    ran = filled("search", "dog")
    assert "\x1b" not in ran.out
    ran = filled("search", "dog", "--kb", "none")
    assert "\x1b" not in ran.err


def test_control_characters_are_removed_and_line_ends_kept() -> None:
    assert clean("a\x1b[31mb\x9bc\x07\td\ne\x00") == "a[31mbc\td\ne"


@pytest.mark.parametrize(
    ("title", "section", "page", "shown"),
    [
        ("Fares", "Dogs > Large", 3, "Fares · Dogs > Large · page 3"),
        ("Fares", "", None, "Fares"),
        ("Fares", "Fares > Dogs", None, "Fares · Dogs"),
        ("Fares of 2026", "Fares", None, "Fares of 2026"),
    ],
)
def test_place(title: str, section: str, page: int | None, shown: str) -> None:
    assert place(title, section, page) == shown


def test_the_commands_of_a_hint_work_where_the_command_did(filled: Cli, tmp_path: Path) -> None:
    where = ("--data-dir", tmp_path / "data of mine", "--tenant", "acme")
    assert filled("tenants", "create", "acme", *where).code == 0
    ran = filled("documents", "show", "nothing", *where)
    assert ran.code == 4
    typed = f"--data-dir '{tmp_path / 'data of mine'}' --tenant acme"
    assert f"hint: list them with: ragstone documents {typed}\n" in ran.err
    told = filled("documents", "show", "nothing", *where, "--json").json["error"]
    assert told["hint"] == f"list them with: ragstone documents {typed}"

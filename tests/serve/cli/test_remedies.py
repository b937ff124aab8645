"""Remedies: every code has a command that exists, a section in the documentation, and a sentence."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import ragstone
from ragstone.core.errors import NotFoundError, QuotaExceeded
from ragstone.core.remedies import Action, Remedy, advise, render_sentence, render_with
from ragstone.serve.cli.main import app
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.reference import remedies
from ragstone.serve.cli.remedies import STEPS

ROOT = Path(__file__).parents[3]
SOURCES = Path(ragstone.__file__).parent
PROGRAM: Any = typer.main.get_command(app)
COMMAND = re.compile(rf"\bragstone ({'|'.join(sorted(PROGRAM.commands))})\b")
EVERYTHING = (
    *("arms", "claim", "current_model", "kb", "model", "query", "question", "source", "store", "tenant"),
    "topic",
)
WORKS_ELSEWHERE = Common(data_dir=Path("my data"), tenant="acme", kb="tides")


@pytest.mark.parametrize("action", Action)
def test_the_commands_of_a_remedy_exist_and_take_its_options(action: Action) -> None:
    """Each is parsed by the program itself, with the options of the call before it."""
    for step in STEPS[action]:
        if not step.command:
            continue
        for arguments in (dict.fromkeys(EVERYTHING, "x"), {}):
            if not arguments and "{" in re.sub(r"--[\w-]+ \{\w+\}", "", step.command):
                continue  # an argument that cannot be left out
            words = shlex.split(step.fill(arguments, WORKS_ELSEWHERE.list_options()))
            _parse(PROGRAM, words[0], words[1:])
            assert words.count("--data-dir") == 1
            assert words.count("--tenant") == ("tenant" not in step.without)


def _parse(command: Any, name: str, words: list[str], parent: Any = None) -> None:
    inner = getattr(command, "commands", {}).get(words[0]) if words else None
    if inner is None:
        if words and not words[0].startswith("-") and hasattr(command, "commands"):
            raise LookupError(words[0])
        with command.make_context(name, list(words), parent=parent) as context:
            assert not context.args
            return
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        _parse(inner, words[0], words[1:], context)


def test_a_command_that_does_not_exist_is_noticed() -> None:
    """The check above can fail."""
    with pytest.raises(typer.TyperException):
        _parse(PROGRAM, "ragstone", ["doctor", "--mend"])
    with pytest.raises(LookupError, match="nothing"):
        _parse(PROGRAM, "ragstone", ["nothing"])


def test_a_sentence_tells_every_argument_that_a_command_takes() -> None:
    for action, steps in STEPS.items():
        taken = {name for step in steps for name in re.findall(r"\{(?!command)(\w+)\}", step.words + step.command)}
        missing = [name for name in taken if "<x>" not in action.describe({name: "<x>"})]
        assert not missing, action


def test_every_code_has_a_section() -> None:
    page = (ROOT / "docs/reference/remedies.md").read_text()
    assert page == remedies() + "\n", "python -m ragstone.serve.cli.reference remedies > docs/reference/remedies.md"
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == [action.value for action in Action]
    assert set(STEPS) == set(Action)


def test_no_string_below_serve_holds_a_command() -> None:
    """What is below does not know whether its user has a shell; docstrings may name commands."""
    found = [
        f"{path.relative_to(SOURCES)}:{constant.lineno}: {constant.value}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.relative_to(SOURCES).parts[0] != "serve" and COMMAND.search(path.read_text())
        for constant in _strings(ast.parse(path.read_text()))
        if COMMAND.search(constant.value)
    ]
    assert found == []


def _strings(tree: ast.Module) -> list[Any]:
    words = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words
    ]


@pytest.mark.parametrize(
    ("hint", "remedy", "told"),
    [
        ("", Remedy(Action.LIST_JOBS), "list them with: ragstone jobs{}"),
        ("", Remedy(Action.REPAIR_STORES), "ragstone doctor --repair{}"),
        ("it is damaged", Remedy(Action.REPAIR_STORES), "it is damaged: ragstone doctor --repair{}"),
        ("", Remedy(Action.RESUME_TENANT, tenant="b"), "ragstone tenants resume b{} ends that"),
        (
            "choose another name, or",
            Remedy(Action.DELETE_KB, kb="b"),
            "choose another name, or remove it with: ragstone kb delete b{}",
        ),
        ("", Remedy(Action.SEARCH, query="opening hours; rm -r"), "such as: ragstone search 'opening hours; rm -r'{}"),
    ],
)
def test_a_command_has_the_options_of_the_call(hint: str, remedy: Remedy, told: str) -> None:
    with render_with(WORKS_ELSEWHERE.render_remedy):
        assert advise(hint, remedy) == told.format(" --data-dir 'my data' --tenant acme --kb tides")


@pytest.mark.parametrize(
    ("remedy", "told"),
    [
        (
            Remedy(Action.INGEST, kb="tides", tenant="acme"),
            (
                "make it with: ragstone ingest PATH --kb tides --tenant acme{}; "
                "list the knowledge bases with: ragstone kb list{} --tenant acme; "
                "list the tenants with: ragstone tenants{}"
            ),
        ),
        (Remedy(Action.LIST_TENANTS), "list them with: ragstone tenants{}"),
        (Remedy(Action.LIST_KBS), "list them with: ragstone kb list{} --tenant acme"),
    ],
)
def test_a_list_is_asked_for_without_the_name_of_what_is_not_there(remedy: Remedy, told: str) -> None:
    with render_with(WORKS_ELSEWHERE.render_remedy):
        assert advise("", remedy) == told.format(*[" --data-dir 'my data'"] * 3)


def test_an_option_of_the_remedy_goes_before_that_of_the_call() -> None:
    remedy = Remedy(Action.REEMBED, model="new", kb="other", current_model="old")
    with render_with(Common(tenant="acme", kb="tides").render_remedy):
        assert NotFoundError("no", remedy=remedy).advice == (
            "move it with: ragstone reembed --model new --kb other --tenant acme; or set embedding.model to old"
        )


def test_without_a_shell_a_remedy_is_a_sentence() -> None:
    error = QuotaExceeded("full", hint="wait, or", remedy=Remedy(Action.DELETE_KB, kb="tides"))
    assert error.advice == "wait, or delete the knowledge base 'tides'"
    assert render_sentence("", Remedy(Action.LIST_JOBS)) == "list the jobs"
    assert NotFoundError("no", hint="look again").advice == "look again"


def test_a_remedy_is_kept_as_json() -> None:
    remedy = Remedy(Action.REEMBED, model="new", kb="other")
    assert remedy.to_json() == {"action": "reembed", "kb": "other", "model": "new"}
    assert Remedy.from_json(remedy.to_json()) == remedy
    assert Remedy.from_json(None) is None
    assert Remedy.from_json({"action": "of a later version"}) is None

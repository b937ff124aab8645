"""The tenant is bound once: no call below can forget it."""

from __future__ import annotations

import ast
import inspect
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import ragstone
from ragstone import Engine, Workspace

ROOT = Path(ragstone.__file__).parent
MAY_DEFAULT = ("blocking.py", "serve/cli/", "testing/")
"""Where a default tenant may exist: scripts and the command line have one, and so has what tests are built with."""


def part_of(name: str) -> type:
    """Return the class of a workspace's part, which the annotation of its property names."""
    made = vars(Workspace)[name].func
    module = next(
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(Workspace))))  # type: ignore[arg-type]
        if isinstance(node, ast.ImportFrom)
        and node.module
        and made.__annotations__["return"] in {alias.name for alias in node.names}
    )
    found: type = getattr(import_module(module), made.__annotations__["return"])
    return found


PARTS = [name for name, value in vars(Workspace).items() if isinstance(value, cached_property)]
BOUND = {"workspace": Workspace, **{name: part_of(name) for name in PARTS}}


def public_methods(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(value)
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def test_there_are_the_parts_that_the_documentation_names() -> None:
    assert {name for name in PARTS if not name.startswith("_")} == {
        "analytics",
        "archive",
        "articles",
        "audit",
        "collections",
        "conversations",
        "dialogue",
        "documents",
        "embeddings",
        "feedback",
        "jobs",
        "knowledge_bases",
        "receipts",
        "shop",
        "sources",
        "tasks",
    }


@pytest.mark.parametrize("name", BOUND)
def test_no_method_of_a_workspace_takes_a_tenant(name: str) -> None:
    methods = public_methods(BOUND[name])
    assert methods
    assert [method for method, signature in methods.items() if "tenant" in signature.parameters] == []


@pytest.mark.parametrize("name", BOUND)
def test_no_method_of_a_workspace_takes_any_options(name: str) -> None:
    loose = [
        method
        for method, signature in public_methods(BOUND[name]).items()
        if any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    ]
    assert loose == []


def test_a_workspace_needs_a_tenant() -> None:
    tenant = inspect.signature(Engine.workspace).parameters["tenant"]
    assert tenant.default is inspect.Parameter.empty


def defaulted(path: Path) -> list[str]:
    """Return where a function of a module has a default for a parameter called tenant."""
    text = path.read_text(encoding="utf-8")
    if "tenant" not in text:  # reading the syntax of all modules takes seconds
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            plain = [*node.args.posonlyargs, *node.args.args]
            given = [*zip(plain[::-1], node.args.defaults[::-1], strict=False)]
            given += [
                (argument, default)
                for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if default is not None
            ]
            found += [f"{path.relative_to(ROOT)}:{node.name}" for argument, _ in given if argument.arg == "tenant"]
    return found


def test_no_function_has_a_default_tenant() -> None:
    modules = [
        path for path in sorted(ROOT.rglob("*.py")) if not path.relative_to(ROOT).as_posix().startswith(MAY_DEFAULT)
    ]
    assert len(modules) > 300
    assert [place for path in modules for place in defaulted(path)] == []


def test_a_default_tenant_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(
        "async def f(x, tenant=None): ...\ndef g(*, tenant='t', kb): ...\ndef h(tenant): ...\n"
    )
    assert defaulted(tmp_path / "a.py") == ["a.py:f", "a.py:g"]

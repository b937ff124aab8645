"""The three layers of the article design: directives as data, orchestration by the graph, execution by tools."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ragstone.agents.article
from ragstone.agents.article.graph import ORDER
from ragstone.agents.article.team import load_team

FOLDER = Path(ragstone.agents.article.__file__).parent
KNOWLEDGE = ("query", "stores", "ingest", "models", "websearch", "fetch")
"""The parts of Ragstone that find and keep what is known: only tools and the workspace reach them."""


def imports_of(module: Path) -> set[str]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name for name in names if name.startswith("ragstone.")}


@pytest.mark.req("R-ART-15")
def test_orchestration_reaches_the_knowledge_only_through_execution() -> None:
    modules = sorted(FOLDER.glob("*.py"))
    assert {"graph.py", "nodes.py", "turns.py", "verification.py", "panel.py"} <= {module.name for module in modules}
    for module in modules:
        reached = {name for name in imports_of(module) if name.split(".")[1] in KNOWLEDGE}
        assert not reached, f"{module.name} goes around the tools and the workspace: {reached}"


@pytest.mark.req("R-ART-15")
def test_directives_are_data_that_no_code_repeats() -> None:
    team = load_team()
    code = "\n".join(module.read_text(encoding="utf-8") for module in FOLDER.glob("*.py"))
    assert set(team.agents) <= set(ORDER["full"])
    for agent in team.agents.values():
        assert agent.persona not in code
        assert agent.task not in code

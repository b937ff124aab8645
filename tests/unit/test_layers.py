"""What holds data and what searches it know nothing of each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ragstone

ROOT = Path(ragstone.__file__).parent


def imported_by(package: str) -> dict[str, set[str]]:
    """By module of a package: all that it imports from this project, wherever in the file it does."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports by dots"
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
        found[str(path.relative_to(ROOT))] = names
    return found


@pytest.mark.req("R-STO-24")
@pytest.mark.parametrize(
    ("layer", "others"),
    [
        # Where data are kept and changed, and where it is decided what to look for and in which order.
        ("stores", ("query", "answer", "agents", "serve")),
        ("query", ("stores", "ingest", "sqlite3", "sqlalchemy", "psycopg")),
        ("answer", ("stores", "ingest", "sqlite3", "sqlalchemy", "psycopg")),
    ],
)
def test_data_and_retrieval_are_layers_of_their_own(layer: str, others: tuple[str, ...]) -> None:
    modules = imported_by(layer)
    assert modules
    for module, names in modules.items():
        for other in others:
            unwanted = {name for name in names if f"{name}.".startswith((f"ragstone.{other}.", f"{other}."))}
            assert not unwanted, f"{module} imports {unwanted}"

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import ragstone
from ragstone.blocking import Ragstone
from ragstone.engine import Engine


def test_what_the_package_exports() -> None:
    assert ragstone.__all__ == [
        "Answer",
        "AuditEntry",
        "BuildRequest",
        "Citation",
        "Document",
        "Engine",
        "Hit",
        "IngestReport",
        "Item",
        "Ragstone",
        "RagstoneError",
        "SearchResult",
        "Settings",
        "__version__",
        "acting_as",
        "load_settings",
        "open_engine",
    ]
    assert dir(ragstone) == ragstone.__all__


@pytest.mark.parametrize("name", ragstone.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    value = getattr(ragstone, name)
    assert name == "__version__" or value.__name__ == name


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match=r"^module 'ragstone' has no attribute 'Rogstone'$"):
        ragstone.Rogstone  # noqa: B018


@pytest.mark.parametrize("statement", ["import ragstone", "from ragstone import Item, SearchResult"])
def test_importing_the_package_loads_nothing_heavy(statement: str) -> None:
    heavy = ("numpy", "sqlalchemy", "openvino", "pydantic", "alembic", "tokenizers", "openai", "yaml", "rich")
    code = f"import sys; {statement}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _methods(kind: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(value)
        for name, value in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_the_blocking_engine_has_every_method_of_the_engine_and_no_other() -> None:
    engine, blocking = _methods(Engine), _methods(Ragstone)
    assert blocking.keys() == engine.keys()
    for name, signature in engine.items():
        keywords = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        positional = [one.name for one in signature.parameters.values() if one.kind not in keywords]
        given = blocking[name].parameters.values()
        assert [one.name for one in given if one.kind is not one.VAR_KEYWORD] == positional
        returned = signature.return_annotation.replace("AsyncIterator[", "Iterator[")
        returned = {"SearchSession": "BlockingSession"}.get(returned, returned)
        assert blocking[name].return_annotation == returned

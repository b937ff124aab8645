from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import ragstone
from ragstone import Workspace, blocking
from ragstone.engine.archive import Archive
from ragstone.engine.audit import Audit
from ragstone.engine.collections import Collections
from ragstone.engine.conversations import Conversations
from ragstone.engine.documents import Documents
from ragstone.engine.embeddings.embeddings import KbEmbeddings
from ragstone.engine.feedback import Feedback
from ragstone.engine.jobs import Jobs
from ragstone.engine.knowledge_bases import KnowledgeBases
from ragstone.engine.receipts import Receipts
from ragstone.engine.shop.shop import TenantShop
from ragstone.engine.sources import Sources


def test_what_the_package_exports() -> None:
    assert ragstone.__all__ == [
        "Answer",
        "AsyncClient",
        "AuditEntry",
        "BuildRequest",
        "Citation",
        "Client",
        "Document",
        "Engine",
        "Hit",
        "IngestReport",
        "Item",
        "Question",
        "Ragstone",
        "RagstoneError",
        "SearchQuery",
        "SearchResult",
        "Settings",
        "Workspace",
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


def test_searching_does_not_wait_for_the_rules_of_answers() -> None:
    code = "import sys, ragstone.engine.engine, ragstone.engine.workspace; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [
        name for name in done.stdout.split() if name.startswith(("ragstone.answer.ask", "ragstone.answer.verify"))
    ] == []


EXPLICIT = {"search", "ask", "stream", "explain", "session", "erase"}
"""Methods of a workspace that `Ragstone` spells out."""
LEFT_OUT = {"work_and_report"}
"""Takes something to wait for, which is no thing for a script."""


def test_the_blocking_workspace_has_every_method_of_a_workspace_and_its_parts() -> None:
    parts = [Workspace, Documents, KnowledgeBases, Sources, Jobs, Feedback, Conversations]
    parts += [KbEmbeddings, Collections, Receipts, Archive, Audit, TenantShop]
    wanted = {
        value
        for part in parts
        for name, value in vars(part).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in EXPLICIT | LEFT_OUT
    }
    classes = [value for value in vars(blocking).values() if inspect.isclass(value)]
    methods = [value for kind in classes for value in vars(kind).values()]
    assert {one.method for one in methods if isinstance(one, blocking.Blocking)} >= wanted
    assert vars(blocking.BlockingWorkspace).keys() >= EXPLICIT

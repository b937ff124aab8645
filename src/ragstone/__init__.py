"""Ragstone: a self-hosted knowledge engine with proof.

from ragstone import Ragstone

with Ragstone(data_dir="kb") as stone:
    stone.ingest("docs")
    print(stone.ask("When does the ferry leave?").answer)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ragstone.blocking import Ragstone
    from ragstone.client.blocking import Client
    from ragstone.client.client import AsyncClient
    from ragstone.core.answers import Answer, Citation
    from ragstone.core.audit import AuditEntry, acting_as
    from ragstone.core.collections import BuildRequest
    from ragstone.core.documents import IngestReport
    from ragstone.core.errors import RagstoneError
    from ragstone.core.search import Question, SearchQuery, SearchResult
    from ragstone.core.types import Document, Hit, Item
    from ragstone.engine.engine import Engine, open_engine
    from ragstone.engine.workspace import Workspace
    from ragstone.settings.load import load_settings
    from ragstone.settings.tree import Settings

__all__ = [
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

_HOMES = {
    "Answer": "ragstone.core.answers",
    "AuditEntry": "ragstone.core.audit",
    "BuildRequest": "ragstone.core.collections",
    "AsyncClient": "ragstone.client.client",
    "Citation": "ragstone.core.answers",
    "Client": "ragstone.client.blocking",
    "acting_as": "ragstone.core.audit",
    "Ragstone": "ragstone.blocking",
    "load_settings": "ragstone.settings.load",
    "RagstoneError": "ragstone.core.errors",
    "Settings": "ragstone.settings.tree",
    "IngestReport": "ragstone.core.documents",
    "Question": "ragstone.core.search",
    "SearchQuery": "ragstone.core.search",
    "SearchResult": "ragstone.core.search",
    "Engine": "ragstone.engine.engine",
    "Workspace": "ragstone.engine.workspace",
    "open_engine": "ragstone.engine.engine",
}


def __getattr__(name: str) -> Any:
    # Importing the package must cost nothing: each public name is fetched when it is first used.
    if name not in __all__:
        raise AttributeError(f"module 'ragstone' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "ragstone.core.types")), name)


def __dir__() -> list[str]:
    return __all__

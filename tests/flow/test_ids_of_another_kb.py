"""What is asked of one kb says nothing about the ids of another one: they are as unknown as any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import NotFoundError
from ragstone.core.search import SearchQuery
from ragstone.engine.workspace import Workspace
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

UNKNOWN = "0" * 32
Ask = Callable[[Workspace, str], Awaitable[object]]
BY_DOCUMENT: dict[str, Ask] = {
    "explain": lambda workspace, name: workspace.explain(SearchQuery("harbour", kb="here"), name),
    "golden query": lambda workspace, name: workspace.feedback.add_golden("harbour", [name], kb="here"),
}
BY_CHUNK: dict[str, Ask] = {
    "vote": lambda workspace, name: workspace.feedback.vote("harbour", [name], kb="here"),
    "chunk of a collection": lambda workspace, name: workspace.collections.chunk(name, "here"),
}
BY_NAME: dict[str, Ask] = {
    "source": lambda workspace, name: workspace.sources.get(name, kb="here"),
    "turns": lambda workspace, name: workspace.conversations.turns(name, kb="here"),
    "forgotten conversation": lambda workspace, name: workspace.conversations.forget(name, kb="here"),
}


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())


async def fill(engine: Engine, folder: Path) -> Workspace:
    workspace = workspace_of(engine)
    for kb in ("here", "there"):
        item = Item("test", kb, f"test/{kb}", f"The harbour is {kb}.")
        await workspace.documents.ingest_items([item], kb=kb)
    await workspace.sources.add("files", "shelf", {"path": str(folder)}, kb="there")
    await workspace.search(SearchQuery("harbour", kb="there", conversation="talk"))
    return workspace


async def outcome(asked: Awaitable[object], name: str) -> str:
    """What came back, or the error, with the id left out."""
    try:
        return f"returned {await asked}"
    except NotFoundError as error:
        return f"{error.code} {error} {error.advice}".replace(name, "ID")


async def test_an_id_of_another_kb_is_as_unknown_as_any(data_dir: Path, tmp_path: Path) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = await fill(engine, tmp_path)
        hit = (await workspace.search(SearchQuery("harbour", kb="there"))).hits[0]
        given = [
            *((name, ask, hit.document_id, UNKNOWN) for name, ask in BY_DOCUMENT.items()),
            *((name, ask, hit.chunk_id, UNKNOWN) for name, ask in BY_CHUNK.items()),
            ("source", BY_NAME["source"], "shelf", "nothing"),
            ("turns", BY_NAME["turns"], "talk", "nothing"),
            ("forgotten conversation", BY_NAME["forgotten conversation"], "talk", "nothing"),
        ]
        for name, ask, foreign, unknown in given:
            said = await outcome(ask(workspace, foreign), foreign)
            assert said == await outcome(ask(workspace, unknown), unknown), name
        assert len(await workspace.conversations.turns("talk", kb="there")) == 1

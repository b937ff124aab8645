"""Sessions that a client invents, bodies that do not come, and documents of another kb: nothing is gained by them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import NotFoundError
from ragstone.serve.mcp import guard
from ragstone.serve.mcp.guard import IDLE_SECONDS, MOST_BYTES, McpGuard
from ragstone.serve.mcp.resources import DOCUMENTS, ResourceCatalog
from ragstone.serve.mcp.sessions import MOST_SESSIONS
from ragstone.testing.fakes import FakeEmbedder


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class App:
    """Issues a session where none is given, and keeps the bodies that reach it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.next_id = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.bodies.append((await receive())["body"])
        self.next_id += 1
        headers = [(b"mcp-session-id", b"s%d" % self.next_id)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


async def ask(
    app: McpGuard, session: bytes | None = None, parts: tuple[bytes, ...] = (b"{}",), ends: bool = True
) -> int:
    """Send a request in parts and return the status; one that does not end waits for ever."""
    status: list[int] = []
    waiting = [
        {"type": "http.request", "body": part, "more_body": not ends or number < len(parts)}
        for number, part in enumerate(parts, start=1)
    ]

    async def receive() -> Any:
        while not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def send(message: Any) -> None:
        status.extend([message["status"]] if "status" in message else [])

    headers = [(b"mcp-session-id", session)] if session else []
    await app({"type": "http", "headers": headers}, receive, send)
    return status[0]


async def test_only_sessions_that_were_issued_are_known() -> None:
    app = App()
    guarded = McpGuard(app)
    assert await ask(guarded, b"invented") == 404
    assert app.bodies == []
    assert await ask(guarded) == 200
    assert await ask(guarded, b"s1") == 200
    assert await ask(guarded, b"s9") == 404


async def test_a_session_ends_when_nothing_is_asked_of_it() -> None:
    clock = Clock()
    guarded = McpGuard(App(), clock)
    await ask(guarded)
    clock.now = IDLE_SECONDS - 1
    assert await ask(guarded, b"s1") == 200
    clock.now += IDLE_SECONDS
    assert await ask(guarded, b"s1") == 404


async def test_the_oldest_of_too_many_sessions_is_forgotten() -> None:
    guarded = McpGuard(App())
    for _ in range(MOST_SESSIONS + 1):
        await ask(guarded)
    assert await ask(guarded, b"s1") == 404
    assert await ask(guarded, b"s2") == 200


async def test_a_body_reaches_the_application_whole() -> None:
    app = App()
    assert await ask(McpGuard(app), parts=(b"{", b"}")) == 200
    assert app.bodies == [b"{}"]
    assert await ask(McpGuard(app), parts=(b"x" * MOST_BYTES, b"x")) == 413
    assert app.bodies == [b"{}"]


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.0)
    app = App()
    assert await ask(McpGuard(app), parts=(b"{",), ends=False) == 408
    assert app.bodies == []


async def test_so_many_bodies_may_be_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_BODIES", 1)
    guarded = McpGuard(App())
    half_sent = asyncio.create_task(ask(guarded, parts=(b"{",), ends=False))
    await asyncio.sleep(0)
    assert await ask(guarded) == 503
    half_sent.cancel()
    await asyncio.gather(half_sent, return_exceptions=True)
    assert await ask(guarded) == 200


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    async with open_engine(Settings(data_dir=tmp_path)) as opened:
        yield opened


async def test_a_document_of_another_kb_is_like_one_that_there_is_not(engine: Engine) -> None:
    workspace = engine.workspace("default")
    for kb in ("default", "other"):
        await workspace.documents.ingest_items([Item("notes", kb, kb, f"A ferry of {kb}.")], kb=kb)
    catalog = ResourceCatalog(workspace)
    [own] = await workspace.documents.list()
    [others] = await workspace.documents.list(kb="other")
    assert "A ferry of default." in json.dumps((await catalog.read(f"{DOCUMENTS}{own.id}")).model_dump(mode="json"))
    said = []
    for document_id in (others.id, "0" * len(others.id)):
        with pytest.raises(NotFoundError) as refused:
            await catalog.read(f"{DOCUMENTS}{document_id}")
        said.append((str(refused.value).replace(document_id, "ID"), refused.value.advice, refused.value.code))
    assert said[0] == said[1]

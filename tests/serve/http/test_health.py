"""Health tells the truth about each part, soon, and probes cost nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from ragstone import Settings, open_engine
from ragstone.core.errors import ModelUnavailable, StoreBusy
from ragstone.engine.monitoring import health
from ragstone.serve.http import app as app_module
from ragstone.serve.http.app import build_app
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.http.conftest import Service

ALL_WELL = {"ledger": "ok", "index": "ok", "embedder": "ok", "disk": "ok"}


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)


def state_of(service: Service) -> tuple[int, dict[str, Any]]:
    replied = service.client.get("/readyz")
    return replied.status_code, replied.json()


@pytest.mark.req("R-REL-23")
def test_a_service_without_documents_is_ready_and_says_that_it_is_empty(service: Service) -> None:
    assert state_of(service) == (200, {"status": "ok", "components": {**ALL_WELL, "index": "empty"}})
    acme = service.caller("acme")
    assert state_of(service)[1]["components"]["index"] == "empty"
    assert acme("POST", "/v1/search", json={"query": "gate"}).status_code == 404
    acme.upload("The gate closes at nine.")
    assert state_of(service) == (200, {"status": "ok", "components": ALL_WELL})


@pytest.mark.req("R-REL-23")
def test_a_service_starts_with_a_broken_index_and_serves_the_other_tenants(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.serve.http.conftest import Service

    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    keys: dict[str, Any] = {}
    for turn in range(2):
        engine = open_engine(settings)
        with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
            started = Service(client, engine)
            if turn == 0:
                for tenant in ("acme", "globex"):
                    keys[tenant] = started.caller(tenant)
                    keys[tenant].upload("The gate closes at nine.")
                broken = started.run(partial(engine.tenants.get, "acme"))
            else:
                for caller in keys.values():
                    caller.service = started
                assert state_of(started)[0] == 200
                assert state_of(started)[1] == {
                    "status": "degraded",
                    "components": {**ALL_WELL, "index": "store_corrupt"},
                }
                assert keys["globex"]("POST", "/v1/search", json={"query": "gate"}).json()["hits"]
                assert keys["acme"]("POST", "/v1/search", json={"query": "gate"}).status_code == 503
            assert client.portal is not None
            client.portal.call(engine.close)
        if turn == 0:
            (settings.data_dir / "tenants" / broken.id / "ledger.db").write_bytes(b"not a database" * 1000)


def test_a_part_that_fails_is_named_by_its_code(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: object) -> None:
        raise StoreBusy("locked")

    async def missing(*_: object) -> None:
        raise ModelUnavailable("no model")

    service.caller("acme").upload("The gate closes at nine.")
    with monkeypatch.context() as patched:
        patched.setattr(FakeEmbedder, "embed", missing)
        assert state_of(service) == (
            503,
            {"status": "unavailable", "components": {**ALL_WELL, "embedder": "model_unavailable"}},
        )
    assert state_of(service)[0] == 200
    with monkeypatch.context() as patched:
        patched.setattr(type(service.engine.tenants), "all", busy)
        status, body = state_of(service)
        assert (status, body["components"]["ledger"]) == (503, "store_busy")


def test_a_part_that_hangs_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(health, "SECONDS", 0.05)
    monkeypatch.setattr(type(service.engine.tenants), "all", hang)
    status, body = state_of(service)
    assert (status, body["components"]["ledger"], body["components"]["index"]) == (503, "timeout", "timeout")


def test_a_model_that_is_being_loaded_is_waited_for(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = asyncio.Event()

    async def load(*_: object) -> None:
        await loaded.wait()

    monkeypatch.setattr(health, "SECONDS", 0.05)
    monkeypatch.setattr(FakeEmbedder, "embed", load)
    assert state_of(service)[1]["components"]["embedder"] == "loading"
    assert state_of(service)[0] == 503
    service.run(_set(loaded))
    assert state_of(service)[1]["components"]["embedder"] == "ok"


def _set(event: asyncio.Event) -> Any:
    async def work() -> None:
        event.set()

    return work


def test_a_full_or_read_only_disk_is_said_and_reading_goes_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LITTLE_SPACE", 2**62)
    assert (state_of(service)[0], state_of(service)[1]["components"]["disk"]) == (200, "full")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert (state_of(service)[1]["status"], state_of(service)[1]["components"]["disk"]) == ("degraded", "read_only")


def test_probes_are_answered_from_memory(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    all_tenants = type(service.engine.tenants).all

    async def count(book: Any) -> Any:
        asked.append(1)
        return await all_tenants(book)

    monkeypatch.setattr(health, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(type(service.engine.tenants), "all", count)
    assert [state_of(service)[0] for _ in range(20)] == [200] * 20
    assert len(asked) == 2  # for the ledger and for the index


@pytest.fixture
def with_redis(settings: Settings) -> Settings:
    away = {"cache": settings.cache.model_copy(update={"redis": SecretStr("redis://127.0.0.1:1/0")})}
    return settings.model_copy(update=away)


def test_a_cache_that_is_away_does_not_make_the_service_unready(
    with_redis: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.serve.http.conftest import Service

    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    engine = open_engine(with_redis)
    with TestClient(build_app(engine, worker=False)) as client:
        status, body = state_of(Service(client, engine))
        assert (status, body["status"], body["components"]["redis"]) == (200, "degraded", "store_busy")
        assert client.portal is not None
        client.portal.call(engine.close)


async def test_a_worker_that_stops_is_said_and_started_again(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    started: asyncio.Queue[None] = asyncio.Queue()

    class Worker:
        async def run(self) -> None:
            started.put_nowait(None)
            if started.qsize() == 1:
                raise ModelUnavailable("no model")
            await asyncio.sleep(3600)

    restarts = asyncio.Event()

    async def pause(seconds: float) -> None:
        await restarts.wait()

    engine = open_engine(Settings(data_dir=data_dir))
    monkeypatch.setattr(engine, "worker", Worker)
    kept = app_module.KeptWorker(engine)
    sleep = asyncio.sleep
    monkeypatch.setattr(
        app_module.asyncio, "sleep", lambda seconds: pause(seconds) if seconds == 5.0 else sleep(seconds)
    )
    running = asyncio.create_task(kept.run())
    try:
        while kept.state == "ok":
            await sleep(0)
        assert kept.state == "model_unavailable"
        restarts.set()
        while started.qsize() < 2:
            await sleep(0)
        assert kept.state == "ok"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await engine.close()


def test_nothing_is_written_by_a_probe(service: Service, settings: Settings) -> None:
    service.client.get("/readyz")
    service.client.get("/healthz")
    ledgers = list(settings.data_dir.glob("tenants/*"))
    assert ledgers == []
    control = settings.data_dir / "control.db"
    if control.exists():
        with closing(sqlite3.connect(control)) as connection:
            assert connection.execute("SELECT count(*) FROM audit").fetchone() == (0,)

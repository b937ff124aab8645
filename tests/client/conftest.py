"""One service on a port of loopback for all tests of a module."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragstone import Client, Engine, Settings, open_engine
from ragstone.core.background import LoopThread
from ragstone.core.keys import KeyScope, NewApiKey
from ragstone.serve.http.app import build_app
from ragstone.serve.server import run_app
from ragstone.testing.fakes import FakeEmbedder

ALL: tuple[KeyScope, ...] = ("read", "write", "admin")


@dataclass
class LiveService:
    """A service that listens, and what a test needs of it."""

    url: str
    engine: Engine
    thread: LoopThread

    def key(self, tenant: str, *scopes: KeyScope) -> str:
        """Make a key of a tenant, which is made if there is none."""

        async def create() -> str:
            if await self.engine.tenants.get(tenant) is None:
                await self.engine.tenants.create(tenant)
            return (await self.engine.keys.create(NewApiKey(tenant, scopes or ALL))).token

        return self.thread.run(create())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    folder: Path = tmp_path_factory.mktemp("service")
    thread = LoopThread("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        engine, serving, url = thread.run(_start(Settings(data_dir=folder)))
        yield LiveService(url, engine, thread)
        thread.run(_stop(engine, serving))
    thread.stop()


async def _start(settings: Settings) -> tuple[Engine, asyncio.Task[None], str]:
    engine = open_engine(settings)
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def tell(port: int) -> None:
        ready.set_result(port)

    serving = asyncio.create_task(run_app(build_app(engine), "127.0.0.1", 0, tell))
    return engine, serving, f"http://127.0.0.1:{await ready}"


async def _stop(engine: Engine, serving: asyncio.Task[None]) -> None:
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await engine.close()


@pytest.fixture(scope="module")
def key(service: LiveService) -> str:
    return service.key("acme")


@pytest.fixture(scope="module")
def client(service: LiveService, key: str) -> Iterator[Client]:
    with Client(service.url, key) as made:
        yield made

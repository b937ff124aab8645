"""A service in this process, and a client with the key of one tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ragstone import Engine, Settings, open_engine
from ragstone.core.keys import IssuedKey, KeyScope, NewApiKey
from ragstone.serve.http.app import build_app
from ragstone.testing.fakes import FakeEmbedder

ALL: tuple[KeyScope, ...] = ("read", "write", "admin")


@dataclass
class Service:
    """A service that runs, and what a test needs of it."""

    client: TestClient
    engine: Engine

    def key(self, tenant: str = "acme", *scopes: KeyScope, **options: Any) -> IssuedKey:
        """Make a key of a tenant, which is made if there is none."""

        async def create() -> IssuedKey:
            if tenant and await self.engine.tenants.get(tenant) is None:
                await self.engine.tenants.create(tenant)
            return await self.engine.keys.create(NewApiKey(tenant, scopes or ALL, **options))

        return self.run(create)

    def run(self, work: Any) -> Any:
        """Run something of the engine on the loop of the service."""
        assert self.client.portal is not None
        return self.client.portal.call(work)

    def caller(self, tenant: str = "acme", *scopes: KeyScope, **options: Any) -> Caller:
        return Caller(self, self.key(tenant, *scopes, **options).token)


@dataclass
class Caller:
    """A client with a key."""

    service: Service
    token: str

    def __call__(self, method: str, path: str, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        return self.service.client.request(method, path, headers=headers, **options)

    def upload(self, text: str, name: str = "gate.md", **fields: str) -> str:
        """Upload a file and wait until it can be found; return its id."""
        taken = self("POST", "/v1/documents", files={"file": (name, text.encode())}, data=fields)
        assert taken.status_code in (200, 202), taken.text
        document_id = str(taken.json()["document_id"])
        self.service.run(_until_idle(self.service.engine))
        return document_id


def _until_idle(engine: Engine) -> Any:
    async def work() -> None:
        await engine.worker().run(until_idle=True)

    return work


@pytest.fixture
def settings(data_dir: Path) -> Settings:
    return Settings(data_dir=data_dir)


@contextmanager
def open_service(settings: Settings) -> Iterator[Service]:
    """Run a service of these settings without a model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        engine = open_engine(settings)
        with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
            yield Service(client, engine)
            assert client.portal is not None
            client.portal.call(engine.close)


@contextmanager
def articles_without_a_model() -> Iterator[None]:
    """Let articles be queued, although nothing is there to write them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.serve.http.routes.article.require_setup", lambda _: None)
        yield


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    with open_service(settings) as service:
        yield service


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests of a module: each takes a tenant of its own."""
    with open_service(Settings(data_dir=tmp_path_factory.mktemp("shared"))) as service:
        yield service


@pytest.fixture
def acme(service: Service) -> Caller:
    return service.caller("acme")


@pytest.fixture
def globex(service: Service) -> Caller:
    return service.caller("globex")

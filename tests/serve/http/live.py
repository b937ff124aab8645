"""A service that listens, for clients that bring their own HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sse_starlette.sse import AppStatus
from tests.warm import warm_python

from ragstone import Engine, Settings, open_engine
from ragstone.core.keys import IssuedKey, KeyScope, NewApiKey
from ragstone.serve.http.app import build_app
from ragstone.serve.server import run_app
from ragstone.testing.fakes import FakeEmbedder

SECONDS = 60
GUIDES = Path(__file__).parents[3] / "docs" / "howto"
T = TypeVar("T")


@dataclass
class LiveService:
    """Where it listens, and its engine on the loop that it runs on."""

    url: str
    engine: Engine
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something of the engine on its loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def key(self, tenant: str = "acme", *scopes: KeyScope, **options: Any) -> IssuedKey:
        """Make a key of a tenant, which is made if there is none."""

        async def create() -> IssuedKey:
            if await self.engine.tenants.get(tenant) is None:
                await self.engine.tenants.create(tenant)
            return await self.engine.keys.create(NewApiKey(tenant, scopes or ("read",), **options))

        return self.run(create())


@contextmanager
def serve_live(settings: Settings, make_app: Callable[[Engine], Any] | None = None) -> Iterator[LiveService]:
    """Serve in a thread until the block ends."""
    AppStatus.should_exit = False  # a server that has stopped in this process leaves this behind
    ready = threading.Event()
    told: dict[str, Any] = {}

    async def serve() -> None:
        async with open_engine(settings) as engine:
            app = make_app(engine) if make_app else build_app(engine, worker=False)

            async def tell(port: int) -> None:
                told["live"] = LiveService(f"http://127.0.0.1:{port}", engine, asyncio.get_running_loop())
                ready.set()

            told["serving"] = asyncio.create_task(run_app(app, "127.0.0.1", 0, tell))
            await asyncio.gather(told["serving"], return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            assert ready.wait(SECONDS)
            yield told["live"]
        finally:
            told["live"].loop.call_soon_threadsafe(told["serving"].cancel)
            thread.join(SECONDS)
        assert not thread.is_alive()


def run_examples(page: str, live: LiveService, key: str, folder: Path) -> list[str]:
    """Return what the examples of a guide print that call the service, in order."""
    text = (GUIDES / page).read_text(encoding="utf-8").replace("http://localhost:8000", live.url)
    blocks = re.findall(r"^```(sh|py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = {"sh": ["sh", "-euc"], "py": [*warm_python(), "-c"]}
    environment = os.environ | {"KEY": key}
    return [
        subprocess.run(
            [*commands[language], block], cwd=folder, env=environment, check=True, capture_output=True, text=True
        ).stdout
        for language, block in blocks
        if live.url in block
    ]

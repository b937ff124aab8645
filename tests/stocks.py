"""Data folders that are filled once and copied for each test, where what fills them is not the subject."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ragstone.engine.engine import Engine, open_engine
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder


def fill_stock(settings: Settings, fill: Callable[[Engine], Awaitable[object]]) -> Path:
    """Fill a data folder with the help of a fake model; return it."""

    async def run() -> None:
        async with open_engine(settings) as engine:
            await fill(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        asyncio.run(run())
    return settings.data_dir

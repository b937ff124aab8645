from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from tests.doubles.web import WebDouble

from ragstone.fetch.fetcher import Fetcher
from ragstone.settings.tree import FetchSettings

MakeFetcher = Callable[..., Fetcher]


class Patience:
    """Notes how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def web() -> Iterator[WebDouble]:
    with WebDouble() as double:
        yield double


@pytest.fixture
def patience() -> Patience:
    return Patience()


async def loopback(host: str, port: int) -> list[str]:
    """A resolver for which every name is this machine."""
    return ["127.0.0.1"]


@pytest.fixture
async def make_fetcher(patience: Patience) -> AsyncIterator[MakeFetcher]:
    made: list[Fetcher] = []

    def make(**settings: object) -> Fetcher:
        chosen = {"allow": ("127.0.0.0/8",), "timeout": 5.0, "retries": 0} | settings
        made.append(Fetcher(FetchSettings(**chosen), loopback, wait=patience))
        return made[-1]

    yield make
    for fetcher in made:
        await fetcher.close()

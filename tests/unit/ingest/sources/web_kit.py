"""A loopback web server and what a source needs to read from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.doubles.web import WebDouble

from ragstone.core.protocols import Source
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.fetch.fetcher import Fetcher
from ragstone.ingest.sources.config import SourceContext
from ragstone.settings.tree import FetchSettings, LimitSettings


@dataclass(frozen=True)
class Run:
    """All that one run of a source gave."""

    pages: list[Page]

    @property
    def items(self) -> list[Item]:
        return [entry for page in self.pages for entry in page.items if isinstance(entry, Item)]

    @property
    def failures(self) -> list[Failure]:
        return [entry for page in self.pages for entry in page.items if isinstance(entry, Failure)]

    @property
    def ids(self) -> list[str]:
        return [item.external_id for item in self.items]

    @property
    def removed(self) -> list[str]:
        return [gone for page in self.pages for gone in page.removed]

    @property
    def listed(self) -> frozenset[str] | None:
        return self.pages[-1].listed

    @property
    def cursor(self) -> Json:
        return self.pages[-1].cursor


@dataclass
class Site:
    web: WebDouble
    context: SourceContext
    waits: list[float] = field(default_factory=list)

    def url(self, path: str = "/") -> str:
        return self.web.url(path)

    async def run(self, source: Source, cursor: Json = None) -> Run:
        return Run([page async for page in source.fetch(cursor)])


async def _this_machine(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def open_site(**settings: object) -> AsyncIterator[Site]:
    """A server, and a context whose fetcher may reach it and waits for nothing."""
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    chosen = {"allow": ("127.0.0.1",), "timeout": 5.0, "retries": 2, "seconds_per_host": 0.0} | settings
    fetcher = Fetcher(FetchSettings(**chosen), _this_machine, wait=wait)
    with WebDouble() as web:
        yield Site(web, SourceContext(fetcher=fetcher, limits=LimitSettings(), databases={}), waits)
        await fetcher.close()

"""A secret in a source's address is used and rests nowhere; what an earlier version kept of it goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.doubles.web import WebDouble, html, xml

from ragstone import Engine, Settings, open_engine
from ragstone.core.search import SearchQuery
from ragstone.ingest.sources.secrets import SecretMask
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

SECRET = "canary-4711"
FEED = """<rss version="2.0"><channel><item><title>Tides</title><guid>7</guid>
<description>High tide is at nine in the harbour.</description></item></channel></rss>"""


@pytest.fixture
def web() -> Iterator[WebDouble]:
    with WebDouble() as double:
        double.on(f"/page?token={SECRET}", html("<p>The private page on lighthouses.</p>"))
        double.on(f"/feed?token={SECRET}", xml(FEED))
        yield double


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder, web: WebDouble) -> AsyncIterator[Engine]:
    fetch = {"allow": ["127.0.0.1"], "seconds_per_host": 0, "retries": 0}
    async with open_engine(Settings(data_dir=data_dir, fetch=fetch)) as opened:
        yield opened


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOUR_TOKEN", SECRET)


async def add(engine: Engine, web: WebDouble) -> None:
    for kind, path in (("web", "page"), ("feeds", "feed")):
        address = web.url(f"/{path}?token=") + "${HARBOUR_TOKEN}"
        await workspace_of(engine).sources.add(kind, path, {"urls": [address]})


async def sync(engine: Engine) -> None:
    for name in ("page", "feed"):
        await workspace_of(engine).sources.sync(name)
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


def with_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.usefixtures("token")
async def test_no_file_holds_a_secret_that_an_address_has_from_the_environment(
    engine: Engine, web: WebDouble, data_dir: Path
) -> None:
    await add(engine, web)
    await sync(engine)
    page, feed = sorted(await workspace_of(engine).documents.list(), key=lambda one: one.uri, reverse=True)
    assert page.uri == page.metadata["url"] == web.url("/page?token=${HARBOUR_TOKEN}")
    assert feed.external_id == web.url("/feed?token=${HARBOUR_TOKEN}") + "#7"
    assert await asyncio.to_thread(with_secret, data_dir) == []


@pytest.mark.usefixtures("token")
async def test_documents_with_a_secret_in_their_address_keep_their_ids_and_lose_it(
    engine: Engine, web: WebDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(engine, web)
    with monkeypatch.context() as earlier:
        earlier.setattr(SecretMask, "learn", lambda *_: None)
        await sync(engine)
    before = await workspace_of(engine).documents.list()
    assert all(SECRET in one.external_id and SECRET in str(one.metadata) for one in before)
    await sync(engine)
    after = await workspace_of(engine).documents.list()
    assert {one.id for one in after} == {one.id for one in before}
    assert SECRET not in str(after)
    hits = (await workspace_of(engine).search(SearchQuery("lighthouses harbour tide", arms="lexical"))).hits
    assert hits
    assert SECRET not in str(hits)


@pytest.mark.usefixtures("token")
async def test_who_only_names_a_page_cannot_have_the_environment_sent_there(engine: Engine, web: WebDouble) -> None:
    report = await workspace_of(engine).documents.ingest_urls(web.url("/page?token=") + "${HARBOUR_TOKEN}")
    assert report.added == 0
    assert web.requests
    assert not [one for one in web.requests if SECRET in str(one)]

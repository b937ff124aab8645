"""Search results that processes share in Redis: a real server, and engines as two processes have them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, TypeAdapter
from tests.conformance.redis_server import PROGRAM, RedisServer

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import SettingsError
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Hit, PageStart, TableHead
from ragstone.settings.tree import RerankingSettings, SecuritySettings
from ragstone.settings.web import CacheSettings
from ragstone.stores import redis_cache
from ragstone.stores.health.check import examine
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

KEY = SecretStr("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
SECRET_TEXT = "The tide gate opens at nine."
QUERY = SearchQuery("When does the tide gate open?", k=1)

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no package of a Redis server for this platform")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path)
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())


def settings_of(folder: Path, server: RedisServer, **changes: Any) -> Settings:
    return Settings(data_dir=folder, cache=CacheSettings(redis=SecretStr(server.url)), **changes)


async def put(engine: Engine, text: str = SECRET_TEXT, tenant: str = "default") -> None:
    await engine.workspace(tenant).documents.ingest_items([Item("test", "gate", "test/gate", text)])


async def find(engine: Engine, tenant: str = "default") -> SearchResult:
    return await engine.workspace(tenant).search(QUERY)


def is_cached(found: SearchResult) -> bool:
    return found.trace[-1].stage == "cache"


@pytest.mark.req("R-MOD-13", "R-FUT-24")
async def test_what_one_process_has_found_another_gets_for_a_minute(data_dir: Path, server: RedisServer) -> None:
    wanted = settings_of(data_dir, server)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await put(one)
        first = await find(one)
        again = await find(other)
        assert (is_cached(first), is_cached(again)) == (False, True)
        assert (again.hits, again.degraded, again.mode) == (first.hits, (), first.mode)
        with server.client() as client:
            (key,) = client.keys()
            assert 0 < client.pttl(key) <= 60_000
            client.delete(key)  # as when its time is over
        assert not is_cached(await find(other))


@pytest.mark.req("R-MOD-15")
async def test_a_change_is_seen_by_all_at_once(data_dir: Path, server: RedisServer) -> None:
    wanted = settings_of(data_dir, server)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await put(one)
        found = (await find(one)).hits[0]
        await workspace_of(one).documents.delete(found.document_id)
        assert (await find(other)).hits == ()


@pytest.mark.req("R-MOD-16")
async def test_no_tenant_gets_what_another_has_found(data_dir: Path, server: RedisServer) -> None:
    wanted = settings_of(data_dir, server)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        for tenant, text in (("acme", "Acme: the tide gate opens at one."), ("globex", SECRET_TEXT)):
            await put(one, text, tenant)
            await find(one, tenant)
        found = await find(other, "acme")
        assert (is_cached(found), [hit.text for hit in found.hits]) == (True, ["Acme: the tide gate opens at one."])
        assert (await one.erase_tenant("acme")).complete
        assert len(server.values()) == 1, "those of the deleted tenant are gone"


async def test_a_copy_of_the_data_folder_shares_nothing(data_dir: Path, tmp_path: Path, server: RedisServer) -> None:
    """It has the same tenants, and soon other documents."""
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
    shutil.copytree(data_dir, tmp_path / "copy")
    async with open_engine(settings_of(data_dir, server)) as engine:
        await find(engine)
    async with open_engine(settings_of(tmp_path / "copy", server)) as engine:
        assert not is_cached(await find(engine))


async def test_processes_with_other_settings_share_nothing(data_dir: Path, server: RedisServer) -> None:
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
        await find(engine)
    other = settings_of(data_dir, server, reranking=RerankingSettings(kind="none", candidates=7))
    async with open_engine(other) as engine:
        assert not is_cached(await find(engine))


async def test_a_server_that_is_away_costs_only_the_memory(
    data_dir: Path, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = settings_of(data_dir, server)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await put(one)
        await find(one)
        server.stop()
        found = await find(other)
        assert (is_cached(found), found.degraded, len(found.hits)) == (False, (), 1)
        assert "cannot read the cache in Redis" in caplog.text
        cache = other._components.stores.shared_cache
        assert cache is not None
        server.start()
        assert await cache.get("any", "key") is None, "it is left alone for a while"
        cache._rests_until = 0.0
        await cache.put("any", "key", b"value", 60)
        assert await cache.get("any", "key") == b"value"


async def test_a_server_that_hangs_is_not_waited_for(
    data_dir: Path, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_cache, "SECONDS", 0.05)
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
        server.suspend()
        try:
            found = await find(engine)
        finally:
            server.resume()
        assert (found.degraded, len(found.hits)) == ((), 1)


@pytest.mark.parametrize("sealed", [False, True])
async def test_values_are_sealed_where_files_are(data_dir: Path, server: RedisServer, sealed: bool) -> None:
    security = SecuritySettings(key=KEY if sealed else None)
    wanted = settings_of(data_dir, server, security=security)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await put(one)
        await find(one)
        ((key, value),) = server.values().items()
        assert (SECRET_TEXT.encode() in value) is not sealed
        assert b"tide" not in key
        assert is_cached(await find(other))


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"not json", b"\xf5\xd2\xe9\xa0\xb7\xc3\xfe\x91sealed by somebody else"]
)
async def test_a_value_that_is_no_result_is_left_alone(data_dir: Path, server: RedisServer, damage: bytes) -> None:
    wanted = settings_of(data_dir, server, security=SecuritySettings(key=KEY))
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await put(one)
        await find(one)
        with server.client() as client:
            (key,) = client.keys()
            client.set(key, damage)
        found = await find(other)
        assert (is_cached(found), [hit.text for hit in found.hits]) == (False, [SECRET_TEXT])


async def test_an_erasure_removes_cached_results(data_dir: Path, server: RedisServer) -> None:
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
        found = (await find(engine)).hits[0]
        assert len(server.values()) == 1
        (receipt,) = await workspace_of(engine).erase("document", found.document_id)
        assert receipt.complete
        assert server.values() == {}


async def test_an_erasure_says_that_redis_was_away(data_dir: Path, server: RedisServer) -> None:
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
        found = (await find(engine)).hits[0]
        server.stop()
        (receipt,) = await workspace_of(engine).erase("document", found.document_id)
        (unfinished,) = receipt.unfinished
        assert unfinished.startswith("shared cache: Redis does not answer")
        assert "Redis removes them when their time is over" in unfinished


async def test_doctor_says_whether_redis_answers(data_dir: Path, server: RedisServer) -> None:
    async with open_engine(settings_of(data_dir, server)) as engine:
        await put(engine)
        stores = engine._components.stores
        (finding,) = [finding for finding in await examine(stores) if finding.store == "redis"]
        assert (finding.state, finding.detail[:6]) == ("ok", "Redis ")
        server.stop()
        (finding,) = [finding for finding in await examine(stores) if finding.store == "redis"]
        assert (finding.state, finding.repair) == ("warn", "check cache.redis and that the server runs")


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "redis://localhost:port"])
def test_an_address_that_is_none_is_refused_when_the_engine_opens(data_dir: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"cache\.redis is not the address of a Redis server") as refused:
        open_engine(Settings(data_dir=data_dir, cache=CacheSettings(redis=SecretStr(url))))
    assert url not in str(refused.value), "it may hold a password"


def test_the_whole_of_a_result_comes_back() -> None:
    hit = Hit(
        chunk_id="a" * 32,
        document_id="b" * 32,
        title="Gates",
        uri="gates.pdf",
        section="Tides > Gates",
        page=3,
        text=SECRET_TEXT,
        score=0.5,
        scores={"dense": 0.25, "lexical": 7.0},
        metadata={"tags": ["tide", 1, None, {"deep": [True]}]},
        start=5,
        end=33,
        context=f"Before. {SECRET_TEXT}",
        placement=(("index", 4), ("path", ["a", "b"])),
        page_starts=(PageStart(7, 4),),
        table_head=TableHead(0, 3, "| gate |"),
    )
    result = SearchResult("q", "q2", "balanced", (hit,), (), (), 1.5)
    adapter = TypeAdapter(SearchResult)
    assert adapter.validate_json(adapter.dump_json(result)) == result

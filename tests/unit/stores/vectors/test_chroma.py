"""Chroma's settings, files and failures; what it stores and finds is in `tests/conformance/test_chroma.py`."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from tests.conformance import chroma_fork
from tests.doubles.web import Reply, WebDouble, json_reply

from ragstone.core.errors import SettingsError, StoreBusy, StoreCorrupt, StoreError
from ragstone.core.vectors import Isolation, VectorPartition
from ragstone.fetch.calls import RetryPolicy
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.chroma.client import ChromaClient
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points, new_partition

KEY = "sesame-open"
HEARTBEAT = "/api/v2/heartbeat"


def chroma(folder: Path, isolation: Isolation = "collection", **adapter: Any) -> ChromaProvider:
    return ChromaProvider(Adapter(kind="chroma", **adapter), folder, isolation)


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[ChromaProvider]:
    opened = chroma(tmp_path / "vectors" / "chroma")
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ({"options": {"in_memroy": True}}, "options.in_memroy is not an option"),
        ({"options": {"in_memory": "yes"}}, "in_memory is true or false"),
        ({"options": {"timeout": 0}}, "options.timeout is 0"),
        ({"options": {"timeout": True}}, "options.timeout is True"),
        ({"url": "http://h:1", "options": {"in_memory": True}}, "in a folder, in memory or at an address"),
        ({"url": "http://h:1", "path": Path("x")}, "in a folder, in memory or at an address"),
        ({"url": "h:8000"}, "not the address"),
        ({"url": "http://h:99999"}, "not the address"),
        ({"url": "file:///etc/passwd"}, "not the address"),
        ({"url": f"http://me:{KEY}@h:8000"}, "not the address"),
    ],
)
def test_settings_that_cannot_work_are_refused(adapter: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        chroma(tmp_path, **adapter)
    assert refused.value.hint
    assert KEY not in str(refused.value) + refused.value.hint


def test_an_isolation_that_it_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'namespace'") as refused:
        chroma(tmp_path, "namespace")
    assert refused.value.hint == "choose one of: collection, filter"


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)
    with pytest.raises(SettingsError, match="not installed") as refused:
        chroma(tmp_path)
    assert refused.value.hint == "pip install 'ragstone[chroma]'"


@pytest.mark.req("R-STO-37")
def test_what_chroma_lacks_is_declared(tmp_path: Path) -> None:
    capabilities = chroma(tmp_path).capabilities
    assert capabilities.isolation == {"collection", "filter"}
    lacking = (capabilities.hybrid, capabilities.sparse, capabilities.reranking, capabilities.exact)
    assert not any(lacking)


@pytest.mark.req("R-STO-06")
async def test_it_lives_in_its_own_folder_that_nobody_else_may_read(provider: ChromaProvider, tmp_path: Path) -> None:
    place = new_partition()
    await provider.upsert(place, make_points(unit_vectors(3)))
    folder = tmp_path / "vectors" / "chroma"
    assert (folder / "chroma.sqlite3").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    await provider.close()
    elsewhere = chroma(tmp_path / "unused", path=folder)
    assert await elsewhere.count(place) == 3
    await elsewhere.close()
    assert not (tmp_path / "unused").exists()


@pytest.mark.req("R-STO-06")
async def test_what_is_in_memory_is_in_no_file_and_nobody_elses(tmp_path: Path) -> None:
    place = new_partition()
    one, other = (chroma(tmp_path / "none", options={"in_memory": True}) for _ in range(2))
    await one.upsert(place, make_points(unit_vectors(3)))
    assert await one.count(place) == 3
    assert await other.count(place) == 0
    assert not (tmp_path / "none").exists()
    for provider in (one, other):
        await provider.close()


@pytest.mark.req("R-STO-29")
async def test_collections_are_made_with_cosine_distance(tmp_path: Path) -> None:
    place = VectorPartition("t", "s1", 32)
    provider = chroma(tmp_path)
    await provider.open(place)
    await provider.close()
    client = ChromaClient(Adapter(kind="chroma"), tmp_path)
    model = client.run(lambda api: api.get_collection("rs_t_s1"))
    assert model.configuration_json["hnsw"]["space"] == "cosine"
    client.close()


async def test_a_folder_has_one_owner_at_a_time(provider: ChromaProvider, tmp_path: Path) -> None:
    place = new_partition()
    await provider.upsert(place, make_points(unit_vectors(3)))
    second = chroma(tmp_path / "vectors" / "chroma")
    with pytest.raises(StoreBusy, match="in use") as busy:
        await second.count(place)
    assert "store.vectors.url" in busy.value.hint
    await provider.close()
    assert await second.count(place) == 3
    await second.close()


async def test_a_closed_provider_opens_nothing_again(provider: ChromaProvider) -> None:
    await provider.health()
    await provider.close()
    with pytest.raises(StoreError, match="was closed"):
        await provider.health()


async def test_a_dropped_collection_leaves_no_vectors_in_the_folder(provider: ChromaProvider, tmp_path: Path) -> None:
    gone, kept = new_partition(), new_partition()
    for place in (gone, kept):
        await provider.upsert(place, make_points(unit_vectors(1200)))
        await provider.search(place, unit_vectors(1)[0], 1)
    folder = tmp_path / "vectors" / "chroma"
    (folder / "not-a-segment").mkdir()
    assert len(list(folder.glob("*/data_level0.bin"))) == 2
    await provider.drop(gone)
    assert len(list(folder.glob("*/data_level0.bin"))) == 1
    assert (folder / "not-a-segment").is_dir()
    await provider.close()
    left = folder / str(uuid4())
    left.mkdir()
    again = chroma(folder)
    assert (await again.search(kept, unit_vectors(1200)[7], 1))[0].chunk_id == id_of(7)
    assert not left.exists()
    await again.close()


async def test_a_damaged_file_says_so(provider: ChromaProvider, tmp_path: Path) -> None:
    await provider.upsert(new_partition(), make_points(unit_vectors(3)))
    await provider.close()
    (tmp_path / "vectors" / "chroma" / "chroma.sqlite3").write_bytes(b"not a database at all" * 1000)
    damaged = chroma(tmp_path / "vectors" / "chroma")
    with pytest.raises(StoreCorrupt, match="not a database") as corrupt:
        await damaged.health()
    assert "rebuilt from the ledger" in corrupt.value.hint
    await damaged.close()


async def test_neither_environment_nor_dotenv_changes_where_data_go(
    provider: ChromaProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("IS_PERSISTENT=false\nCHROMA_OTEL_COLLECTION_ENDPOINT=http://10.0.0.1:1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHROMA_OTEL_COLLECTION_ENDPOINT", "http://10.0.0.1:1")
    monkeypatch.setenv("ANONYMIZED_TELEMETRY", "true")
    monkeypatch.setenv("PERSIST_DIRECTORY", str(tmp_path / "other"))
    await provider.upsert(new_partition(), make_points(unit_vectors(3)))
    assert (tmp_path / "vectors" / "chroma" / "chroma.sqlite3").is_file()
    assert not (tmp_path / "other").exists()
    settings = provider._chroma.run(lambda api: api._system.settings)
    assert settings.anonymized_telemetry is False
    assert settings.chroma_otel_collection_endpoint == ""


def test_a_process_that_forks_first_may_use_it_in_the_child(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, chroma_fork.__file__, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "5"), done.stderr


async def test_a_server_that_is_not_there_is_said_without_the_key(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        provider = chroma(tmp_path, url=url, api_key=SecretStr(KEY))
        with pytest.raises(StoreBusy, match="cannot be reached") as down:
            await provider.search(new_partition(), unit_vectors(1)[0], 5)
        await provider.close()
    assert url in str(down.value)
    assert "chroma run" in down.value.hint
    assert KEY not in str(down.value) + down.value.hint + repr(provider)


@pytest.mark.parametrize(
    ("status", "kind", "message", "tries"),
    [
        (401, StoreError, "refused the key", 1),
        (403, StoreError, "refused the key", 1),
        (418, StoreError, "answered with 418", 1),
        (429, StoreBusy, "answered with 429", RetryPolicy().attempts),
        (503, StoreBusy, "answered with 503", RetryPolicy().attempts),
    ],
)
async def test_what_a_server_answers_is_put_in_our_words(
    status: int, kind: type[StoreError], message: str, tries: int, tmp_path: Path
) -> None:
    with WebDouble() as web:
        web.on(HEARTBEAT, Reply(f"you sent {KEY}".encode(), status))
        provider = chroma(tmp_path, url=web.url(""), api_key=SecretStr(KEY))
        with pytest.raises(StoreError, match=message) as failed:
            await provider.health()
        await provider.close()
        assert web.paths == [HEARTBEAT] * tries
    assert type(failed.value) is kind
    assert KEY not in str(failed.value)


async def test_a_server_that_recovers_is_asked_again_and_gets_the_key(tmp_path: Path) -> None:
    with WebDouble() as web:
        web.on(HEARTBEAT, Reply(reset=True), Reply(status=500), json_reply({"nanosecond heartbeat": 1}))
        web.on("/api/v2/version", json_reply("1.5"))
        provider = chroma(tmp_path, url=web.url("/"), api_key=SecretStr(KEY))
        assert await provider.health() == (await provider.health())
        await provider.close()
        headers = web.requests[-1].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-chroma-token"] == KEY


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with WebDouble() as web:
        web.on(HEARTBEAT, Reply(hang=True))
        provider = chroma(tmp_path, url=web.url(""), options={"timeout": 0.2})
        with pytest.raises(StoreBusy, match="did not answer in time") as slow:
            await provider.health()
        await provider.close()
    assert "options.timeout" in slow.value.hint


async def test_a_tenant_cannot_reach_another_by_the_id_of_a_point(tmp_path: Path) -> None:
    mine, theirs = new_partition(), new_partition()
    provider = chroma(tmp_path, "filter")
    for place in (mine, theirs):
        await provider.open(place)
    await provider.upsert(theirs, make_points(unit_vectors(1)))
    forged = f"{theirs.tenant_id}:{theirs.space}:{id_of(0)}"
    assert await provider.read(mine, [forged, id_of(0)]) == []
    await provider.delete(mine, [forged, id_of(0)])
    await provider.drop(mine)
    assert await provider.count(theirs) == 1
    await provider.close()


@pytest.mark.parametrize(("losses", "comes_back"), [(1, True), (RetryPolicy().attempts, False)])
def test_a_row_that_is_just_going_is_no_damage_and_one_that_stays_lost_is(
    tmp_path: Path, losses: int, comes_back: bool
) -> None:
    client = ChromaClient(Adapter(kind="chroma"), tmp_path / "chroma")
    asked: list[object] = []

    def work(opened: object) -> str:
        asked.append(opened)
        if len(asked) <= losses:
            raise ValueError("Error executing plan: Internal error: Error finding id")
        return "found"

    try:
        if comes_back:
            assert client.run(work) == "found"
        else:
            with pytest.raises(StoreCorrupt, match="finding id"):
                client.run(work)
    finally:
        client.close()

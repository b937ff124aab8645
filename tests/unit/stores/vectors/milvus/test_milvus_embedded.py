"""Milvus inside this process: one process at a time, nothing open to others, nothing left behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import stat
import threading
from pathlib import Path
from typing import Any

import grpc  # noqa: F401 - before any provider is made, since gRPC settles at its import what a fork may do
import pytest
from pymilvus import MilvusClient

from ragstone.core.errors import StoreBusy, StoreError
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus import provider as milvus
from ragstone.stores.vectors.milvus.provider import MilvusProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points, new_partition


def embedded(folder: Path) -> MilvusProvider:
    return MilvusProvider(Adapter(kind="milvus"), folder, "collection")


async def test_a_second_process_is_told_that_the_folder_is_in_use(tmp_path: Path) -> None:
    one, other = embedded(tmp_path), embedded(tmp_path)
    await one.health()
    with pytest.raises(StoreBusy, match="another process uses") as caught:
        await other.health()
    assert "store.vectors.url" in caught.value.hint
    await one.close()
    assert (await other.health()).detail == f"in this process, at {tmp_path / 'milvus.db'}"
    await other.close()


@pytest.mark.parametrize("name", ["new", "x" * 100])
async def test_nobody_else_can_reach_it(tmp_path: Path, name: str) -> None:
    provider = embedded(tmp_path / name)
    await provider.health()
    assert _mode(tmp_path / name / "milvus.db") == 0o700
    scheme, _, socket = provider._calls._engine.address.partition(":")
    assert scheme == "unix"
    assert _mode(Path(socket).parent) == 0o700
    assert (Path(socket).parent == tmp_path / name / "milvus.db") == (name == "new")
    await provider.close()
    assert not _is_there(socket)
    assert _is_there(str(Path(socket).parent)) == (name == "new")


async def test_closing_ends_its_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    provider = embedded(tmp_path)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(3)))
    await provider.close()
    assert {one.name for one in set(threading.enumerate()) - before if "milvus" in one.name} == set()


async def test_a_file_of_an_older_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.db").write_bytes(b"SQLite format 3\x00")
    provider = MilvusProvider(Adapter(kind="milvus", path=tmp_path / "old.db"), tmp_path, "collection")
    with pytest.raises(StoreError, match=r"old\.db cannot be opened") as caught:
        await provider.health()
    assert "rebuilt from the ledger" in caught.value.hint
    assert (tmp_path / "old.db").read_bytes() == b"SQLite format 3\x00"
    await provider.close()


async def test_a_child_of_a_fork_leaves_it_to_its_parent(tmp_path: Path) -> None:
    provider = embedded(tmp_path)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(3)))

    def refused() -> None:
        with pytest.raises(StoreBusy):
            asyncio.run(provider.count(place))
        asyncio.run(provider.close())

    child = multiprocessing.get_context("fork").Process(target=refused)
    child.start()
    await asyncio.to_thread(child.join, 60)
    hangs = child.is_alive()
    child.kill()
    child.join()
    assert not hangs
    assert child.exitcode == 0
    assert await provider.count(place) == 3
    await provider.close()


async def test_what_is_held_in_memory_is_put_away_when_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus, "LOOSE_EMBEDDED", 20)
    provider = embedded(tmp_path)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(15)))
    assert _files(tmp_path) == 0
    await provider.upsert(place, make_points(unit_vectors(5), first=15))
    assert _files(tmp_path) == 1
    await provider.delete(place, [id_of(0)])
    assert await provider.count(place) == 19
    await provider.close()


async def test_much_that_is_loose_makes_a_write_wait_until_the_order_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server takes the order to put rows away once in a while only; up to a point that can wait."""
    monkeypatch.setattr(milvus, "LOOSE_EMBEDDED", 20)
    monkeypatch.setattr(milvus, "MOST_LOOSE", 40)
    provider = embedded(tmp_path)
    place = new_partition()
    await provider.open(place)
    flush, patience = MilvusClient.flush, 3
    waits: list[float] = []

    def order(client: MilvusClient, *names: Any, **keywords: Any) -> None:
        if len(waits) < patience:
            raise StoreBusy("not so often")
        flush(client, *names, **keywords)

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(MilvusClient, "flush", order)
    monkeypatch.setattr("ragstone.stores.vectors.milvus.provider.asyncio.sleep", wait)
    await provider.upsert(place, make_points(unit_vectors(20)))
    assert (waits, _files(tmp_path)) == ([], 0)
    await provider.upsert(place, make_points(unit_vectors(20), first=20))
    assert (len(waits), _files(tmp_path)) == (patience, 1)
    await provider.close()


def _files(folder: Path) -> int:
    return len(list(folder.rglob("data_*.parquet")))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _is_there(path: str) -> bool:
    return Path(path).exists()

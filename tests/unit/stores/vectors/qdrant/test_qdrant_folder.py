"""Qdrant in this process: one process holds the folder, and what is left of a crash does no harm."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ragstone.core.errors import StoreBusy, StoreCorrupt, StoreError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.vectors import VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.points import collection_of
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points, new_partition

REFUSED = 77
engines = pytest.mark.parametrize("engine", ["local", "edge"])


def provider(folder: Path, engine: str) -> QdrantProvider:
    return QdrantProvider(Adapter(kind="qdrant", options={"engine": engine}), folder, "collection")


async def filled(folder: Path, engine: str, place: VectorPartition) -> QdrantProvider:
    opened = provider(folder, engine)
    await opened.open(place)
    await opened.upsert(place, make_points(unit_vectors(5)))
    return opened


def names_in(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


@engines
async def test_the_second_is_told_to_use_a_server(tmp_path: Path, engine: str) -> None:
    place = new_partition()
    first = await filled(tmp_path, engine, place)
    second = provider(tmp_path, engine)
    with pytest.raises(StoreBusy) as refused:
        await second.count(place)
    assert str(tmp_path) in str(refused.value)
    assert "docker run -p 6333:6333" in refused.value.hint
    await first.close()
    assert await second.count(place) == 5
    await second.close()


@engines
def test_a_forked_child_is_refused_and_takes_nothing_from_its_parent(tmp_path: Path, engine: str) -> None:
    place = new_partition()
    with asyncio.Runner() as runner:
        parent = runner.run(filled(tmp_path, engine, place))
        child = multiprocessing.get_context("fork").Process(target=_use_and_close, args=(parent, place))
        child.start()
        child.join(60)
        child.kill()
        child.join()
        assert child.exitcode == REFUSED
        assert runner.run(parent.count(place)) == 5
        other = provider(tmp_path, engine)
        with pytest.raises(StoreBusy):
            runner.run(other.count(place))
        runner.run(other.close())
        runner.run(parent.close())


def _use_and_close(inherited: QdrantProvider, place: VectorPartition) -> None:
    async def use() -> None:
        try:
            await inherited.count(place)
        finally:
            await inherited.close()

    try:
        asyncio.run(use())
    except StoreBusy:
        sys.exit(REFUSED)


@engines
async def test_the_folder_is_its_owners_alone(tmp_path: Path, engine: str) -> None:
    folder = tmp_path / "deep" / "qdrant"
    opened = await filled(folder, engine, new_partition())
    assert folder.stat().st_mode & 0o777 == 0o700
    await opened.close()


@engines
async def test_closing_ends_its_thread(tmp_path: Path, engine: str) -> None:
    before = set(threading.enumerate())
    opened = await filled(tmp_path, engine, new_partition())
    assert set(threading.enumerate()) != before
    await opened.close()
    assert set(threading.enumerate()) == before


@engines
async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, engine: str) -> None:
    (tmp_path / "file").touch()
    opened = provider(tmp_path / "file" / "qdrant", engine)
    with pytest.raises(StoreError, match="file/qdrant") as refused:
        await opened.health()
    assert refused.value.hint
    await opened.close()


@pytest.mark.parametrize(
    ("damaged", "content"), [("meta.json", b"{"), ("collection/{name}/storage.sqlite", b"no database" * 100)]
)
async def test_a_damaged_folder_says_how_it_is_mended(tmp_path: Path, damaged: str, content: bytes) -> None:
    place = new_partition()
    await (await filled(tmp_path, "local", place)).close()
    (tmp_path / damaged.format(name=collection_of(place))).write_bytes(content)
    again = provider(tmp_path, "local")
    with pytest.raises(StoreCorrupt) as refused:
        await again.count(place)
    assert refused.value.remedy == Remedy(Action.REPAIR_STORES)
    await again.close()


async def test_a_first_start_that_was_killed_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "meta.json").touch()
    opened = await filled(tmp_path, "local", new_partition())
    await opened.close()


async def test_shards_half_made_or_half_gone_are_cleared_away(tmp_path: Path) -> None:
    for name in ("rs_a_b.new", "rs_c_d.old"):
        (tmp_path / name / "segments").mkdir(parents=True)
    place = new_partition()
    opened = await filled(tmp_path, "edge", place)
    assert names_in(tmp_path) == {"ragstone.lock", collection_of(place)}
    await opened.close()


async def test_a_damaged_shard_says_how_it_is_mended(tmp_path: Path) -> None:
    place = new_partition()
    await (await filled(tmp_path, "edge", place)).close()
    (segment,) = (tmp_path / collection_of(place) / "segments").iterdir()
    (segment / "segment.json").write_text("{")
    again = provider(tmp_path, "edge")
    with pytest.raises(StoreError) as refused:
        await again.count(place)
    assert refused.value.remedy == Remedy(Action.REPAIR_STORES)
    await again.close()


async def test_many_points_are_stored_without_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qdrant_client.local.local_collection import LocalCollection
    from qdrant_client.local.qdrant_local import QdrantLocal

    monkeypatch.setattr(LocalCollection, "LARGE_DATA_THRESHOLD", 2)
    monkeypatch.setattr(QdrantLocal, "LARGE_DATA_THRESHOLD", 2)
    place = new_partition()
    await (await filled(tmp_path, "local", place)).close()
    again = provider(tmp_path, "local")
    assert await again.count(place) == 5
    await again.close()


@engines
async def test_a_collection_that_someone_deleted_is_not_made_anew_in_silence(tmp_path: Path, engine: str) -> None:
    place = new_partition()
    opened = await filled(tmp_path, engine, place)
    await opened.drop(place)
    with pytest.raises(StoreError, match="someone deleted it"):
        await opened.upsert(place, make_points(unit_vectors(1)))
    assert await opened.read(place, [id_of(0)]) == []
    await opened.close()


@engines
async def test_equal_vectors_have_equal_scores(tmp_path: Path, engine: str) -> None:
    place = new_partition()
    opened = provider(tmp_path, engine)
    await opened.open(place)
    await opened.upsert(place, make_points(np.repeat(unit_vectors(1), 31, axis=0)))
    for query in unit_vectors(5, seed=3):
        assert len({one.score for one in await opened.search(place, query, 100)}) == 1
    await opened.close()

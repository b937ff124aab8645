"""Vectors in memory: what the settings may say, and what stays the caller's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import SettingsError
from ragstone.core.vectors import Point
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of, make_points, new_partition


@pytest.mark.parametrize(
    "adapter", [{"url": "http://h"}, {"path": Path("x")}, {"dsn": "x"}, {"options": {"timeout": 3}}]
)
def test_it_takes_no_address_and_no_options(adapter: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        MemoryProvider(Adapter(kind="memory", **adapter), tmp_path, "collection")
    assert refused.value.hint


async def test_what_the_caller_changes_later_is_not_stored(tmp_path: Path) -> None:
    provider = MemoryProvider(Adapter(kind="memory"), tmp_path, "collection")
    place, tags = new_partition(), ["x"]
    await provider.upsert(place, [Point(id_of(0), unit_vectors(1)[0], {"tags": tags})])
    tags.append("y")
    (point,) = await provider.read(place, [id_of(0)])
    assert point.payload == {"tags": ["x"]}


async def test_it_forgets_all_when_closed_and_writes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    provider = MemoryProvider(Adapter(kind="memory"), folder, "collection")
    place = new_partition()
    await provider.upsert(place, make_points(unit_vectors(3)))
    assert (await provider.health()).detail == "3 vectors in this process"
    await provider.close()
    assert await provider.count(place) == 0
    assert not folder.exists()

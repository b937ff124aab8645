"""Conformance tests of a provider with local data whose process ends, to inherit.

    from ragstone.testing.suites.provider_persistence import ProviderPersistenceSuite

    class TestMyProviderOnDisk(ProviderPersistenceSuite):
        async def open(self, folder, isolation):
            return MyProvider(Adapter(kind="mine"), folder, isolation)

        def writer(self, folder):
            return [sys.executable, "my_writer.py", str(folder)]

where `my_writer.py` opens the provider with the first isolation and gives it to `write_until_killed`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest

from ragstone.core.errors import StoreError
from ragstone.core.vectors import Point, VectorPartition, VectorProvider
from ragstone.testing.builders import DIMENSION, unit_vectors
from ragstone.testing.suites.provider_cases import (
    OpensProvider,
    all_ids,
    id_of,
    make_points,
    new_partition,
    payloads_by_id,
)

BATCH = 40
KILLED = VectorPartition("killed", "space", DIMENSION)
"""The partition that `write_until_killed` writes to."""
REFUSED = 77
"""The exit code of a forked child that was told that it cannot use the engine."""
PATIENCE = 60.0
"""Seconds after which a child is taken to hang."""


def batch(number: int) -> list[Point]:
    """Return the points that `write_until_killed` writes in its number-th call."""
    return make_points(unit_vectors(BATCH, seed=number), first=number * BATCH)


async def write_until_killed(provider: VectorProvider) -> None:
    """Write batch after batch, and print the number of each that was acknowledged."""
    await provider.open(KILLED)
    for number in count():
        await provider.upsert(KILLED, batch(number))
        print(number, flush=True)  # noqa: T201 - the parent reads it


class ProviderPersistenceSuite(OpensProvider):
    """Inherit beside `ProviderSuite`, and say how a child that writes is started."""

    forks: ClassVar[bool] = True
    """True when a child that was forked after its parent used it may open it; otherwise it must say so, not hang."""

    def writer(self, folder: Path) -> Sequence[str]:
        """Return the command of a process that opens the provider on this folder and calls `write_until_killed`."""
        raise NotImplementedError

    async def test_all_is_there_after_close_and_open(self, tmp_path: Path) -> None:
        partition, gone = new_partition(), new_partition()
        points = make_points(unit_vectors(300))
        provider = await self.open(tmp_path, self.isolations[0])
        for place in (partition, gone):
            await provider.open(place)
            await provider.upsert(place, points)
        await provider.delete(partition, [id_of(0)])
        await provider.drop(gone)
        await provider.close()
        await provider.close()
        again = await self.open(tmp_path, self.isolations[0])
        await again.open(partition)
        assert await all_ids(again, partition) == sorted(point.chunk_id for point in points[1:])
        assert payloads_by_id(await again.read(partition, [id_of(7)])) == payloads_by_id(points[7:8])
        assert (await again.search(partition, points[7].vector, 1))[0].chunk_id == id_of(7)
        assert await again.count(gone) == 0
        await again.close()

    @pytest.mark.parametrize("acknowledged", [15])
    async def test_what_was_acknowledged_survives_kill_9(self, tmp_path: Path, acknowledged: int) -> None:
        numbers = self._write_and_kill(tmp_path, acknowledged)
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= acknowledged
        written = [point for number in numbers for point in batch(number)]
        provider = await self.open(tmp_path, self.isolations[0])
        await provider.open(KILLED)
        read = await provider.read(KILLED, [point.chunk_id for point in written])
        assert payloads_by_id(read) == payloads_by_id(written)
        assert set(await all_ids(provider, KILLED)) >= {point.chunk_id for point in written}
        # And it can be written to again.
        await provider.upsert(KILLED, batch(10_000))
        assert (await provider.search(KILLED, batch(10_000)[0].vector, 1))[0].chunk_id == id_of(10_000 * BATCH)
        await provider.close()

    def _write_and_kill(self, folder: Path, acknowledged: int) -> list[int]:
        with subprocess.Popen(self.writer(folder), stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
            assert child.stdout is not None
            try:
                lines = [child.stdout.readline() for _ in range(acknowledged)]
            finally:
                child.send_signal(signal.SIGKILL)
            lines += child.stdout.readlines()
        return [int(line) for line in lines if line.endswith("\n")]

    def test_a_forked_child_opens_it_anew_or_is_told_that_it_cannot(self, tmp_path: Path) -> None:
        partition = new_partition()
        asyncio.run(self._write(tmp_path, partition))
        child = multiprocessing.get_context("fork").Process(target=self._in_child, args=(tmp_path, partition))
        child.start()
        child.join(PATIENCE)
        hangs = child.is_alive()
        child.kill()
        child.join()
        assert not hangs
        assert child.exitcode == (0 if self.forks else REFUSED)

    def _in_child(self, folder: Path, partition: VectorPartition) -> None:
        try:
            asyncio.run(self._expect(folder, partition))
        except StoreError as error:
            sys.exit(REFUSED if error.hint else 1)

    async def _write(self, folder: Path, partition: VectorPartition) -> None:
        provider = await self.open(folder, self.isolations[0])
        await provider.open(partition)
        await provider.upsert(partition, make_points(unit_vectors(20)))
        await provider.close()

    async def _expect(self, folder: Path, partition: VectorPartition) -> None:
        provider = await self.open(folder, self.isolations[0])
        await provider.open(partition)
        (found,) = await provider.search(partition, unit_vectors(20)[3], 1)
        assert found.chunk_id == id_of(3)
        assert await provider.count(partition) == 20
        await provider.close()

"""The shipped suite against a real Milvus server, and what only a server can do.

A collection for each place takes the server seconds to make: what depends on it is tested, and the rest of the suite
by Milvus Lite; `RAGSTONE_MILVUS=all pytest tests/conformance/test_milvus.py` runs all of it on the server too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc  # noqa: F401 - before any provider is made, since gRPC settles at its import what a fork may do
import pytest
from tests.conformance.isolations import FewIsolations
from tests.conformance.milvus_server import MADE_HERE, run_folder, running, start

from ragstone.core.errors import StoreBusy, StoreError
from ragstone.core.filters import Equals
from ragstone.core.vectors import Isolation, VectorPartition, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus.provider import MilvusProvider
from ragstone.stores.vectors.milvus.rows import scope_of
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import (
    all_ids,
    check_nearest,
    id_of,
    make_points,
    new_partition,
    payloads_by_id,
)
from ragstone.testing.suites.providers import ProviderSuite

pytestmark = pytest.mark.skipif(not MADE_HERE, reason="no package of the Milvus server is made for this platform")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(run_folder(tmp_path_factory.getbasetemp())) as address:
        yield address


def connected(address: str, isolation: Isolation = "filter", **options: Any) -> MilvusProvider:
    return MilvusProvider(Adapter(kind="milvus", url=address, options=options), Path("unused"), isolation)


class TestMilvusServer(FewIsolations, ProviderSuite):
    examples = 15
    isolations = (
        ("collection", "namespace", "filter") if os.environ.get("RAGSTONE_MILVUS") == "all" else ("namespace", "filter")
    )

    @pytest.fixture(autouse=True)
    def _address(self, server: str) -> None:
        self.address = server

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        return connected(self.address, isolation)

    @pytest.mark.req("R-STO-13", "R-FUT-21")
    async def test_the_nearest_come_first_with_their_cosine(self, provider: VectorProvider) -> None:
        await super().test_the_nearest_come_first_with_their_cosine(provider)

    @pytest.mark.req("R-STO-31")
    async def test_the_filter_acts_before_the_cut(self, provider: VectorProvider) -> None:
        await super().test_the_filter_acts_before_the_cut(provider)

    @pytest.mark.req("R-REL-14", "R-TST-52")
    async def test_tenants_and_spaces_are_kept_apart(self, provider: VectorProvider) -> None:
        await super().test_tenants_and_spaces_are_kept_apart(provider)


@pytest.mark.req("R-REL-14", "R-TST-52")
@pytest.mark.parametrize(
    "case",
    [
        TestMilvusServer.test_tenants_and_spaces_are_kept_apart,
        TestMilvusServer.test_a_dropped_place_is_empty_and_may_be_used_again,
        TestMilvusServer.test_a_place_that_was_never_opened_is_empty,
        TestMilvusServer.test_a_place_may_be_opened_again,
        TestMilvusServer.test_the_nearest_come_first_with_their_cosine,
    ],
)
async def test_a_collection_for_each_place(server: str, case: Callable[..., Awaitable[None]]) -> None:
    provider = connected(server, "collection")
    await case(TestMilvusServer(), provider)
    await provider.close()


@pytest.fixture
async def two(server: str) -> AsyncIterator[tuple[MilvusProvider, MilvusProvider]]:
    """Two engines on one server, as two processes would have them."""
    one, other = connected(server), connected(server)
    yield one, other
    await one.close()
    await other.close()


async def test_what_one_process_wrote_the_next_finds_at_once(two: tuple[MilvusProvider, MilvusProvider]) -> None:
    writer, reader = two
    place = new_partition()
    vectors = unit_vectors(20)
    await writer.open(place)
    for number, point in enumerate(make_points(vectors)):
        await writer.upsert(place, [point])
        assert [one.chunk_id for one in await reader.search(place, vectors[number], 1)] == [id_of(number)]
        await writer.delete(place, [id_of(number)])
        assert await reader.search(place, vectors[number], 1) == []


async def test_a_small_share_of_many_fresh_rows_is_found(server: str) -> None:
    """A server gives 5,000 such rows that lie about a coarse index, which would find a tenth of these.

    Some seconds after it put them away it exchanges them for their graph, and a search at that moment may miss some,
    so the whole round may be repeated.
    """
    provider = connected(server, "namespace")
    place = new_partition(384)
    vectors = unit_vectors(6000, 384)
    payloads = [{"rare": number % 100 == 0} for number in range(6000)]
    await provider.open(place)
    for first in range(0, 6000, 1500):
        some = slice(first, first + 1500)
        await provider.upsert(place, make_points(vectors[some], *payloads[some], first=first))
    rare = {id_of(number): vectors[number] for number in range(0, 6000, 100)}

    async def check_round() -> None:
        for query in unit_vectors(5, 384, seed=3):
            check_nearest(await provider.search(place, query, 10, Equals("rare", True)), rare, query, 10)

    try:
        await check_round()
    except AssertionError:
        await asyncio.sleep(2)
        await check_round()
    await provider.close()


async def test_reads_may_wait_for_the_clock_of_the_server(server: str) -> None:
    provider = connected(server, strong_reads=True)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(3)))
    assert len(await provider.search(place, unit_vectors(1)[0], 10)) == 3
    await provider.close()


async def test_a_collection_that_was_released_is_loaded_again(server: str) -> None:
    from pymilvus import MilvusClient

    provider = connected(server, "collection")
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(3)))
    client = MilvusClient(uri=server, dedicated=True)
    client.release_collection(scope_of(place, "collection").collection)
    client.close()
    assert len(await provider.search(place, unit_vectors(1)[0], 10)) == 3
    await provider.close()


async def test_more_than_one_answer_holds_is_listed_in_parts(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.stores.vectors.milvus.provider.PAGE", 20)
    provider = connected(server)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(100)))
    pages = [page async for page in provider.ids(place)]
    assert len(pages) >= 16
    assert sorted(one for page in pages for one in page) == sorted(id_of(number) for number in range(100))
    await provider.close()


async def test_a_place_that_is_gone_is_not_written_to(server: str) -> None:
    for isolation in ("collection", "namespace"):
        provider = connected(server, isolation)
        with pytest.raises(StoreError, match="does not have it") as caught:
            await provider.upsert(new_partition(17), make_points(unit_vectors(1, 17)))
        assert not caught.value.retryable
        await provider.close()


async def test_a_database_that_is_not_there_is_said_to_be_missing(server: str) -> None:
    provider = connected(server, database="nowhere")
    with pytest.raises(StoreError, match="nowhere"):
        await provider.open(new_partition())
    await provider.close()


FORKS = """
import asyncio, os, sys
from pathlib import Path
from ragstone.core.filters import Equals
from ragstone.settings.tree import Adapter
from ragstone.core.vectors import VectorPartition
from ragstone.stores.vectors.milvus.provider import MilvusProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import id_of

place = VectorPartition(sys.argv[2], sys.argv[3], int(sys.argv[4]))
provider = MilvusProvider(Adapter(kind="milvus", url=sys.argv[1]), Path("unused"), "filter")
look = lambda: asyncio.run(provider.search(place, unit_vectors(3)[2], 1))
assert look()[0].chunk_id == id_of(2)
child = os.fork()
found = look()[0].chunk_id
if child == 0:
    asyncio.run(provider.close())
    os._exit(0 if found == id_of(2) else 1)
_, status = os.waitpid(child, 0)
found = look()[0].chunk_id
asyncio.run(provider.close())
sys.exit(os.waitstatus_to_exitcode(status) or found != id_of(2))
"""


async def test_a_child_of_a_fork_opens_it_anew_and_the_parent_goes_on(server: str) -> None:
    provider = connected(server)
    place = new_partition()
    await provider.open(place)
    await provider.upsert(place, make_points(unit_vectors(3)))
    await provider.close()
    # In a process of its own: how gRPC behaves after a fork is settled when it is first imported.
    command = [sys.executable, "-c", FORKS, server, place.tenant_id, place.space, str(place.dimension)]
    done = await asyncio.to_thread(subprocess.run, command, timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_what_was_acknowledged_survives_kill_9_of_the_server(tmp_path: Path) -> None:
    # A server that starts waits until the lease of the one that died has run out, by default for half a minute.
    prepared, process = start(tmp_path / "data", **{"common.session.ttl": 5})
    place = new_partition()
    points = make_points(unit_vectors(300))
    try:
        provider = connected(prepared.address)
        await provider.open(place)
        await provider.upsert(place, points)
        await provider.delete(place, [id_of(0)])
    finally:
        process.kill()
        process.wait()
    await _expect_busy(connected(prepared.address, timeout=2), place)
    again = prepared.start()
    assert again is not None
    try:
        assert await all_ids(provider, place) == sorted(point.chunk_id for point in points[1:])
        assert payloads_by_id(await provider.read(place, [id_of(7)])) == payloads_by_id(points[7:8])
        assert (await provider.search(place, points[7].vector, 1))[0].chunk_id == id_of(7)
        await provider.close()
    finally:
        again.kill()
        again.wait()


async def _expect_busy(provider: MilvusProvider, place: VectorPartition) -> None:
    with pytest.raises(StoreBusy, match="does not answer"):
        await provider.search(place, unit_vectors(1)[0], 1)
    with pytest.raises(StoreBusy):
        await provider.health()
    await provider.close()

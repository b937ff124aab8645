"""A wave that goes to an index elsewhere first: what happens to its documents meanwhile is their own affair."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.ingest.kit import Kit, item

from ragstone.core.errors import PointRefused, RagstoneError, StoreBusy
from ragstone.core.ledger import Transaction
from ragstone.core.types import KnowledgeBase
from ragstone.core.vectors import Point, VectorPartition
from ragstone.ingest import store as store_module
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import Adapter
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.memory import MemoryProvider

NAMES = ("pier", "buoy", "gull")


class Interrupted(DerivedIndex):
    """Something happens to the first document of a wave once the engine has it."""

    what = ""

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        await super().prepare(tenant, kb, staged)
        what, self.what = self.what, ""
        if what == "deleted":
            async with self._ledger.transaction(tenant) as tx:
                await tx.delete(staged[0][0])
        elif what == "kb deleted":
            async with self._ledger.transaction(tenant) as tx:
                await tx.delete_kb(kb.name)
        elif what == "taken over":
            await self._ledger.write(tenant, _supersede, staged[0][0])


def _supersede(connection: Connection, tenant_id: str, document_id: str) -> None:
    """As a newer version that went live leaves it."""
    connection.execute("DELETE FROM chunks WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))
    connection.execute("DELETE FROM versions WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))


class Choosy(MemoryProvider):
    """Refuses the points of some documents, as an engine does with too much metadata."""

    refused: tuple[str, ...] = ()
    errors: Sequence[RagstoneError] = ()
    """Raised by the next calls that write, one each."""

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        if self.errors:
            error, *self.errors = self.errors
            raise error
        for point in points:
            if point.payload["external_id"] in self.refused:
                raise PointRefused(f"the metadata of '{point.payload['uri']}' is more than it takes", hint="shorten it")
        await super().upsert(partition, points)


class FollowedKit(Kit):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.provider = Choosy(Adapter(kind="memory"), folder, "collection")
        self.index = Interrupted(self.ledger, self.provider)
        self.ledger.followers = (self.index,)

    async def held(self) -> int:
        space = (await self.kb()).space
        assert space is not None
        tenant_id = await self.ledger.read("t", lambda _, identity: identity)
        return await self.provider.count(VectorPartition(tenant_id, f"s{space.id}", space.dimension))


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[FollowedKit]:
    kit = FollowedKit(data_dir)
    await kit.run([item("mast")])
    yield kit
    await kit.index.close()
    await kit.ledger.close()


@pytest.mark.parametrize("what", ["deleted", "taken over"])
async def test_a_document_that_goes_meanwhile_takes_no_other_with_it(kit: FollowedKit, what: str) -> None:
    kit.index.what = what
    report = await kit.run([item(name) for name in NAMES])
    assert (report.added, [(one.uri, one.code) for one in report.failed]) == (2, [(item("pier").uri, "gone")])
    assert await kit.names() == ["buoy", "gull", "mast"]


async def test_a_kb_that_goes_meanwhile_leaves_nothing_of_the_wave(kit: FollowedKit) -> None:
    kit.index.what = "kb deleted"
    report = await kit.run([item(name) for name in NAMES])
    assert (report.added, [one.code for one in report.failed]) == (0, ["gone"] * 3)
    assert await kit.ledger.of("t").kbs() == []


async def test_what_is_no_longer_wanted_is_not_left_staged(kit: FollowedKit, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, calls = store_module._select_wanted, []

    async def cancelled_meanwhile(tx: Transaction, wave: Sequence[Prepared]) -> list[Prepared]:
        calls.append(wave)
        return (await wanted(tx, wave))[len(calls) - 1 :]

    monkeypatch.setattr(store_module, "_select_wanted", cancelled_meanwhile)
    report = await kit.run([item(name) for name in NAMES])
    assert (len(calls), report.added, [one.code for one in report.failed]) == (2, 2, ["gone"])
    assert await kit.ledger.read("t", _staged_texts) == []
    assert await kit.held() == 3


@pytest.mark.parametrize("refused", [("buoy",), ("pier", "gull"), NAMES])
async def test_a_document_that_the_index_refuses_takes_no_other_with_it(
    kit: FollowedKit, refused: tuple[str, ...]
) -> None:
    kit.provider.refused = refused
    report = await kit.run([item(name) for name in NAMES])
    taken = sorted({*NAMES, "mast"} - set(refused))
    assert report.added == len(taken) - 1
    assert [(one.uri, one.code, one.hint) for one in report.failed] == [
        (item(name).uri, "point_refused", "shorten it") for name in refused
    ]
    assert (await kit.names(), await kit.held()) == (taken, len(taken))
    assert await kit.ledger.read("t", _staged_texts) == []


@pytest.mark.parametrize("error", [PointRefused("too much metadata"), StoreBusy("the index is away")])
async def test_a_document_that_the_index_never_took_is_none(kit: FollowedKit, error: RagstoneError) -> None:
    mail = b"Subject: Fares\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nNew fares.\n--b\n"
    mail += b"Content-Type: text/plain\nContent-Disposition: attachment; filename=f.txt\n\nTwo crowns.\n--b--\n"
    kit.provider.errors = [error] * 9
    with suppress(StoreBusy):
        await kit.run([item("pier"), item("fares.eml", mail)])
    kit.provider.errors = []
    (live,) = await kit.ledger.of("t").documents(await kit.kb(), status="completed")
    assert live.external_id == "mast"
    assert await kit.ledger.of("t").source_documents(await kit.kb(), "test") == {"mast": (live.id, live.content_hash)}
    assert (await kit.run([item("pier"), item("fares.eml", mail)])).added == 3


async def test_the_live_version_of_a_document_stays_when_its_next_one_is_refused(kit: FollowedKit) -> None:
    kit.provider.refused = ("mast",)
    report = await kit.run([item("mast", "The mast is there."), item("pier")])
    assert (report.added, report.updated, [one.code for one in report.failed]) == (1, 0, ["point_refused"])
    assert await kit.by_word("here") == {"mast", "pier"}
    assert await kit.by_word("there") == set()


async def test_each_job_of_a_wave_with_refused_documents_is_settled_once(kit: FollowedKit) -> None:
    kit.provider.refused = ("pier", "gull")
    alone, shared = JobBatch(), JobBatch(waiting=2)
    settled: list[tuple[JobBatch, int, list[str]]] = []

    async def settle(batch: JobBatch) -> None:
        settled.append((batch, batch.stored, [failure.uri for failure in batch.failures]))

    pairs = (("pier", alone), ("buoy", shared), ("gull", shared))
    await kit.pipeline().run("t", "default", [WorkItem(item(name), batch) for name, batch in pairs], settle=settle)
    assert settled == [(alone, 0, [item("pier").uri]), (shared, 1, [item("gull").uri])]


def _staged_texts(connection: Connection, tenant_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT c.content FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id "
        "WHERE c.tenant_id = ? AND c.version <> d.version",
        (tenant_id,),
    )
    return [text for (text,) in rows]

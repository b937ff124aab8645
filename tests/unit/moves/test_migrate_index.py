"""Another vector database is filled from the ledger, and nothing that is wrong with it stays unnoticed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.moves.sites import Site, site, stock, version

from ragstone.core.errors import InputError, SettingsError
from ragstone.core.types import Candidate
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.testing.builders import put, unit_vectors
from ragstone.transfer.compare.searches import Samples, agree, judge
from ragstone.transfer.reports import MoveReport

Upsert = Callable[[MemoryProvider, VectorPartition, Sequence[Point]], Awaitable[None]]


async def moved(folder: Path) -> MoveReport:
    async with site(folder / "a") as here:
        await stock(here, 20)
        return await here.mover.migrate(Adapter(kind="memory"))


@pytest.mark.req("R-STO-16")
async def test_a_vector_database_is_filled_compared_and_searched(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await stock(here, 20)
        await stock(here, 5, kb="other")
        await stock(here, 3, tenant="second")
        told: list[tuple[str, int, int]] = []
        report = await here.mover.migrate(Adapter(kind="memory"), on_progress=lambda *said: told.append(said))
    assert report.is_equal
    assert [(one.tenant, one.kbs, one.documents, one.chunks, one.written) for one in report.tenants] == [
        ("default", 2, 25, 75, 75),
        ("second", 1, 3, 9, 9),
    ]
    assert [(one.searches, one.agreement) for one in report.tenants] == [(65, 1.0), (9, 1.0)]
    assert report.settings == {"store": {"vectors": {"kind": "memory"}}}
    assert ("fill default/default", 60, 60) in told
    assert ("compare default/default", 60, 60) in told


async def test_every_space_that_may_be_searched_is_filled(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await stock(here, 4)
        book, kb = SqlSpaceBook(here.stores.ledger), await here.kb()
        space = await book.of("default").open(kb, "next-model@1", 8)
        lacking = await book.of("default").lacking(kb, space, 0, 5)
        rows = unit_vectors(5, 8, seed=5)
        await book.of("default").add(space, [(one.number, row) for one, row in zip(lacking, rows, strict=True)])
        (move,) = (await here.mover.migrate(Adapter(kind="memory"))).tenants
        assert (move.chunks, move.written, move.differences.count) == (17, 17, 0)


def broken(change: Callable[[Point], Point | None]) -> Upsert:
    """A database that does something to what it is given."""

    async def upsert(self: MemoryProvider, place: VectorPartition, points: Sequence[Point]) -> None:
        kept = [made for point in points if (made := change(point))]
        await WORKING(self, place, kept)

    return upsert


WORKING = MemoryProvider.upsert


def is_first(point: Point) -> bool:
    return bool(point.payload["external_id"] == "00007" and point.payload["chunk_index"] == 0)


def lose(point: Point) -> Point | None:
    return None if is_first(point) else point


def blur(point: Point) -> Point:
    return point._replace(vector=-point.vector) if is_first(point) else point


def retitle(point: Point) -> Point:
    return point._replace(payload={**point.payload, "title": "x"}) if is_first(point) else point


def add_field(point: Point) -> Point:
    return point._replace(payload={**point.payload, "planted": 1}) if is_first(point) else point


def round_numbers(point: Point) -> Point:
    payload = {**point.payload, "share": int(point.payload["share"])}
    return point._replace(payload=payload) if is_first(point) else point


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lose, "is missing"),
        (blur, "has another vector"),
        (retitle, "differs in title"),
        (add_field, "differs in planted"),
        (round_numbers, "differs in share"),
    ],
)
async def test_one_point_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Point], Point | None], said: str
) -> None:
    monkeypatch.setattr(MemoryProvider, "upsert", broken(change))
    report = await moved(tmp_path)
    assert not report.is_equal
    (move,) = report.tenants
    assert [one for one in move.differences.named if one.endswith(said)]


async def test_an_engine_that_answers_wrongly_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def search(*_: object) -> list[Candidate]:
        return []

    monkeypatch.setattr(MemoryProvider, "search", search)
    (move,) = (await moved(tmp_path)).tenants
    assert move.agreement == 0.0
    assert move.differences.named == ("memory in 'default' found 0 of 500 nearest chunks",)


async def test_points_of_chunks_that_are_no_more_are_removed(tmp_path: Path) -> None:
    async with site(tmp_path / "a", store={"vectors": "memory"}) as here:
        await stock(here, 4)
        derived = here.stores.derived
        assert derived is not None
        here.stores.ledger.followers = ()  # nobody tells it what goes
        async with here.stores.ledger.transaction("default") as tx:
            await tx.delete(version(2).document_id)
        await here.stores.ledger.write("default", _forget_changes)
        (move,) = (await here.mover.migrate(Adapter(kind="memory"))).tenants
        assert (move.chunks, move.differences.count) == (9, 0)
        assert move.remarks == ("3 points of chunks that are no more were removed",)


def _forget_changes(connection: object, tenant_id: str) -> None:
    connection.execute("DELETE FROM changes WHERE tenant_id = ?", (tenant_id,))  # type: ignore[attr-defined]


async def test_what_is_written_during_the_move_is_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path / "a") as here:
        await stock(here, 10)
        written = False

        async def upsert(self: MemoryProvider, place: VectorPartition, points: Sequence[Point]) -> None:
            nonlocal written
            await WORKING(self, place, points)
            if not written:
                written = True
                await _write(here)

        monkeypatch.setattr(MemoryProvider, "upsert", upsert)
        report = await here.mover.migrate(Adapter(kind="memory"))
        assert report.is_equal
        assert report.tenants[0].documents == 10
        assert report.tenants[0].chunks == 30


async def _write(here: Site) -> None:
    """One document more, one that changes, one that goes."""
    await put(here.stores.ledger, version(50), version(1, word="changed"))
    async with here.stores.ledger.transaction("default") as tx:
        await tx.delete(version(2).document_id)


@pytest.mark.parametrize(("gone", "at"), [("second", 1), ("default", 2), ("default", 3)])
async def test_a_tenant_that_is_deleted_during_the_move_leaves_no_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, at: int
) -> None:
    """Before its turn, in it, and after it."""
    writes, left = 0, set()

    async def upsert(self: MemoryProvider, place: VectorPartition, points: Sequence[Point]) -> None:
        nonlocal writes
        writes += 1
        await WORKING(self, place, points)
        if writes == at:
            await here.stores.tenants.delete(gone)

    async def close(self: MemoryProvider) -> None:
        left.update(tenant_id for tenant_id, _ in self._partitions)

    monkeypatch.setattr(MemoryProvider, "upsert", upsert)
    monkeypatch.setattr(MemoryProvider, "close", close)
    async with site(tmp_path / "a") as here:
        for tenant, kb in (("default", "default"), ("default", "other"), ("second", "default")):
            await stock(here, 3, tenant=tenant, kb=kb)
        report = await here.mover.migrate(Adapter(kind="memory"))
        (other,) = await here.stores.tenants.all()
    assert left == {other.id}
    assert report.is_equal
    assert {one.tenant: (one.kbs > 0, one.remarks) for one in report.tenants} == {
        gone: (False, ("the tenant was deleted during the move, and its points were removed",)),
        other.name: (True, ()),
    }


async def test_the_ledgers_own_index_needs_nothing_but_a_look(tmp_path: Path) -> None:
    async with site(tmp_path / "a", store={"vectors": "memory"}) as here:
        await stock(here, 5)
        report = await here.mover.migrate(Adapter(kind="sqlite"))
        assert report.is_equal
        assert (report.tenants[0].written, report.tenants[0].searches) == (0, 15)
        assert report.settings == {"store": {"vectors": {"kind": "sqlite"}}}


async def test_an_unknown_kind_and_an_empty_place_are_refused(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        with pytest.raises(InputError, match="there is no tenant to move yet"):
            await here.mover.migrate(Adapter(kind="memory"))
        await stock(here, 1)
        with pytest.raises(SettingsError, match="Unsupported vector DB provider: faiss"):
            await here.mover.migrate(Adapter(kind="faiss"))


def test_equals_at_the_cut_are_as_good_as_each_other() -> None:
    expected = [Candidate("a", 0.9), Candidate("b", 0.5)]
    assert agree(expected, [Candidate("a", 0.9), Candidate("c", 0.5)]).share == 1.0
    assert agree(expected, [Candidate("a", 0.9), Candidate("c", 0.4)]).share == 0.5
    assert agree(expected, []).share == 0.0
    assert agree([], []).share == 1.0
    assert agree(expected, [Candidate("a", 0.8), Candidate("b", 0.5)]).differences.named == (
        "chunk a scores 0.8000 instead of 0.9000",
    )


def test_an_engine_that_does_not_look_at_everything_may_miss_a_little() -> None:
    expected = [Candidate(str(at), 1 - at / 100) for at in range(20)]
    nearly = agree(expected, expected[:19])
    assert judge(nearly, exact=False, what="it").count == 0
    assert judge(nearly, exact=True, what="it").named == ("it found 19 of 20 nearest chunks",)
    assert judge(agree(expected, expected[:18]), exact=False, what="it").count == 1


def test_samples_are_drawn_from_all_that_was_offered() -> None:
    samples = Samples(most=10)
    for number, vector in enumerate(unit_vectors(1000)):
        samples.offer(str(number), vector)
    numbers = [int(text) for text, _ in samples.chosen]
    assert len(set(numbers)) == 10
    assert max(numbers) > 500

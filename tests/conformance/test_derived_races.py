"""An index outside the ledger ends up as the ledger is, whoever writes at the same time and whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from tests.conformance.derived import open_derived

from ragstone.core.errors import ModelMismatch, PointRefused, RagstoneError, StoreBusy, StoreError
from ragstone.core.filters import Filter, parse_filter
from ragstone.core.search import collect_notes
from ragstone.core.types import Candidate, KnowledgeBase, NewVersion, Vector
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.writes import discard
from ragstone.stores.vectors.derived import follow as derived_follow
from ragstone.stores.vectors.derived.index import CATCH_UP_SECONDS, LEFT_SECONDS, REFUSED_SECONDS, REST_SECONDS
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.stores.vectors.partitions import partition_of
from ragstone.testing.builders import delete, make_version, put, unit_vectors

VECTORS = unit_vectors(4)
QUERY = VECTORS[0]


class Engine(MemoryProvider):
    """Lets a test step in at the moment of a write, and counts what is asked of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Adapter(kind="memory"), folder, "collection")
        self.before_upsert: Callable[[VectorPartition], Awaitable[object]] | None = None
        self.trouble: dict[str, RagstoneError] = {}
        """What goes wrong, by Space; of all Spaces under the empty name."""
        self.opened: list[str] = []
        self.deleted: list[str] = []

    async def open(self, place: VectorPartition) -> None:
        self.opened.append(place.space)
        self._suffer(place)
        await super().open(place)

    async def upsert(self, place: VectorPartition, points: Sequence[Point]) -> None:
        self._suffer(place)
        step, self.before_upsert = self.before_upsert, None
        if step:
            await step(place)
        await super().upsert(place, points)

    async def delete(self, place: VectorPartition, chunk_ids: Sequence[str]) -> None:
        self._suffer(place)
        self.deleted += chunk_ids
        await super().delete(place, chunk_ids)

    async def search(
        self, place: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        self._suffer(place)
        return await super().search(place, vector, k, where)

    def _suffer(self, place: VectorPartition) -> None:
        for name in ("", place.space):
            if name in self.trouble:
                raise self.trouble[name]


class World:
    """Two processes over one store and one engine, and a clock that only the test moves."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(folder)
        self.now = 100.0
        self.one, self.first = open_derived(folder, self.engine)
        self.two, self.second = open_derived(folder, self.engine)
        for index in (self.first, self.second):
            index._clock = lambda: self.now

    async def place(self, kb: KnowledgeBase) -> VectorPartition:
        assert kb.space is not None
        return partition_of(await self.one.read("default", lambda _, tenant_id: tenant_id), kb.space)

    async def texts(self, place: VectorPartition) -> list[object]:
        ids = [one async for page in self.engine.ids(place) for one in page]
        return sorted(str(point.payload["text"]) for point in await self.engine.read(place, ids))

    async def replay(self) -> None:
        """Have whoever settles next start from the beginning of the feed."""
        await self.one.write("default", lambda c, _: c.execute("UPDATE watermarks SET sequence = 0") and None)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.one.close()
    await made.two.close()


def version(name: str, kb: str = "default", tenant: str = "default") -> NewVersion:
    return make_version(name, [f"about {name}"], vectors=VECTORS[1:2], kb=kb, tenant=tenant)


async def stage(ledger: SqliteLedger, kb: KnowledgeBase, new: NewVersion) -> tuple[str, int]:
    async with ledger.transaction("default") as tx:
        return new.document_id, await tx.stage(kb, new)


async def activate(ledger: SqliteLedger, kb: KnowledgeBase, staged: tuple[str, int]) -> None:
    async with ledger.transaction("default") as tx:
        await tx.activate(kb, *staged)


def _never(*_: object) -> None:
    raise AssertionError("the ledger was asked")


@pytest.mark.parametrize("error", [StoreBusy("the engine is away"), StoreError("the engine is full")])
async def test_any_search_catches_up_after_a_settle_that_failed(world: World, error: StoreError) -> None:
    kb = await put(world.one, version("keep"), version("secret"))
    other = await put(world.one, version("b", kb="other"), kb="other")
    place = await world.place(kb)
    await world.first.search("default", kb, QUERY, 5)
    world.engine.trouble[place.space] = error
    await delete(world.one, version("secret").document_id)
    world.engine.trouble.clear()
    assert await world.texts(place) == ["about keep", "about secret"]
    world.now += REST_SECONDS
    await world.first.search("default", other, QUERY, 5)
    assert await world.texts(place) == ["about keep"]


async def leave_undone(world: World) -> tuple[KnowledgeBase, VectorPartition]:
    """Have a process commit and end before the engine hears of it, while another one has followed all before that."""
    kb = await put(world.one, version("keep"), version("secret"))
    await world.first.search("default", kb, QUERY, 5)
    world.two.followers = ()
    await put(world.two, version("new"))
    await delete(world.two, version("secret").document_id)
    place = await world.place(kb)
    assert await world.texts(place) == ["about keep", "about secret"]
    return kb, place


async def test_searches_finish_what_a_process_that_was_killed_left_undone(world: World) -> None:
    kb, place = await leave_undone(world)
    await world.first.search("default", kb, QUERY, 5)
    world.now += LEFT_SECONDS - 0.5
    await world.first.search("default", kb, QUERY, 5)
    assert await world.texts(place) == ["about keep", "about secret"]  # its process may be writing it now
    world.now += 0.5
    assert len(await world.first.search("default", kb, QUERY, 5)) == 2
    assert await world.texts(place) == ["about keep", "about new"]


async def test_searches_leave_to_another_process_what_it_is_writing(world: World) -> None:
    kb = await put(world.one, version("a"))
    await world.first.search("default", kb, QUERY, 5)
    world.two.followers = ()
    world.engine.opened.clear()
    for name in ("b", "c", "d"):
        await put(world.two, version(name))
        await world.first.search("default", kb, QUERY, 5)
        world.now += LEFT_SECONDS
        assert world.engine.opened == []
        await world.second.catch_up("default")
        world.engine.opened.clear()


async def test_the_hourly_clean_up_finishes_what_a_process_that_was_killed_left_undone(world: World) -> None:
    _, place = await leave_undone(world)
    await world.one.clean_up("default", [])  # after an erasure, which looks at its files alone
    assert await world.texts(place) == ["about keep", "about secret"]
    await world.one.clean_up("default")
    assert await world.texts(place) == ["about keep", "about new"]


@pytest.mark.parametrize("what", ["document", "kb", "tenant"])
async def test_what_is_erased_while_it_is_prepared_does_not_stay_there(world: World, what: str) -> None:
    kb = await put(world.one, version("first"))
    place = await world.place(kb)
    staged = await stage(world.one, kb, version("secret"))

    async def erase(_: VectorPartition) -> None:
        if what == "tenant":
            await SqlTenantBook(world.two, [world.second.erase]).delete("default")
            return
        async with world.two.transaction("default") as tx:
            await (tx.delete_kb("default") if what == "kb" else tx.delete(staged[0]))

    world.engine.before_upsert = erase
    await world.first.prepare("default", kb, [staged])
    assert await world.texts(place) == (["about first"] if what == "document" else [])


@pytest.mark.parametrize("how", ["follow", "fill"])
async def test_what_is_erased_while_another_process_writes_it_does_not_stay_there(world: World, how: str) -> None:
    kb = await put(world.one, version("keep"), version("secret"))
    place = await world.place(kb)
    await world.second.catch_up("default")
    await world.replay()

    async def erase(_: VectorPartition) -> None:
        await delete(world.one, version("secret").document_id)

    world.engine.before_upsert = erase
    if how == "follow":
        await world.second.catch_up("default")
    else:
        assert kb.space is not None
        await world.second.fill("default", kb, kb.space)
    assert await world.texts(place) == ["about keep"]
    newest = await world.one.of("default").sequence()
    marks = await world.one.read("default", index_feed.marks, "memory")
    assert [mark.sequence for mark in marks] == [newest]


async def test_a_mark_moves_neither_back_nor_to_another_tenant_of_that_name(world: World) -> None:
    kb = await put(world.one, version("a"), version("b"))
    assert kb.space is not None
    owner = (await world.place(kb)).tenant_id
    for whose, sequence in ((owner, 1), ("another", 9)):
        await world.one.write("default", index_feed.advance, whose, "memory", {kb.space.id: sequence})
    assert [one.sequence for one in await world.one.read("default", index_feed.marks, "memory")] == [2]


async def test_an_engine_that_is_slow_for_one_tenant_does_not_hold_up_another(world: World) -> None:
    other = await put(world.one, version("b", tenant="two"), tenant="two")
    reached, go = asyncio.Event(), asyncio.Event()

    async def wait(_: VectorPartition) -> None:
        reached.set()
        await go.wait()

    world.engine.before_upsert = wait
    slow = asyncio.create_task(put(world.one, version("a")))
    await reached.wait()
    world.first._current.clear()
    found = await asyncio.wait_for(world.first.search("two", other, QUERY, 5), 240)
    assert (len(found), slow.done()) == (1, False)
    go.set()
    await slow


async def test_a_space_that_the_engine_refuses_is_nobody_else_s_trouble(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(world.one, version("a", kb="small"), kb="small")
    kb = await put(world.one, version("b"))
    world.engine.trouble["s1"] = ModelMismatch("the index holds vectors of another length")
    async with world.one.transaction("default") as tx:
        await tx.delete(version("a", kb="small").document_id)
        await tx.delete(version("b").document_id)
    assert await world.texts(await world.place(kb)) == []
    with pytest.raises(ModelMismatch):
        await world.one.catch_up("default")
    monkeypatch.setattr(index_feed, "nearest", _never)
    assert await world.first.search("default", kb, QUERY, 5) == []


async def test_a_point_that_the_engine_refuses_is_trouble_of_its_tenant_alone(world: World) -> None:
    """Its document was live before the store was switched."""
    world.one.followers = ()
    kb = await put(world.one, version("a"))
    other = await put(world.one, version("b", tenant="two"), tenant="two")
    place = await world.place(kb)
    world.engine.trouble[place.space] = PointRefused("the metadata of 'a' is more than the engine takes")
    with collect_notes() as said:
        assert len(await world.first.search("default", kb, QUERY, 5)) == 1
    assert said == [
        "memory is left alone, and the ledger answers in its place: " + str(world.engine.trouble[place.space])
    ]
    world.engine.trouble.clear()
    with collect_notes() as said:
        assert len(await world.first.search("two", other, QUERY, 5)) == 1
    assert said == []
    assert {one.tenant_id for one in world.first._followed} == {
        await world.one.read("two", lambda _, tenant_id: tenant_id)
    }
    world.now += REST_SECONDS
    world.engine.opened.clear()
    await world.first.search("default", kb, QUERY, 5)
    assert world.engine.opened == []  # it would be filled again from the start, and end the same
    world.now += REFUSED_SECONDS - REST_SECONDS
    await world.first.search("default", kb, QUERY, 5)
    assert await world.texts(place) == ["about a"]


async def _restaged(world: World, kb: KnowledgeBase) -> tuple[tuple[str, int], str]:
    """A staged version whose chunk has the id of one that was taken back, as an import that is run again makes it."""
    new = version("again")
    document_id, number = await stage(world.one, kb, new)

    def chunk_id(connection: index_feed.Connection, tenant_id: str) -> str:
        row = connection.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,)).fetchone()
        return str(row[0])

    identity = await world.one.read("default", chunk_id)
    await world.one.write("default", discard, (), kb, document_id, number)
    staged = await stage(world.one, kb, new)

    def rename(connection: index_feed.Connection, tenant_id: str) -> None:
        connection.execute("UPDATE chunks SET id = ? WHERE document_id = ?", (identity, document_id))

    await world.one.write("default", rename)
    return staged, identity


async def test_an_id_that_came_back_is_not_removed_for_what_had_it_before(world: World) -> None:
    kb = await put(world.one, version("a"))
    staged, identity = await _restaged(world, kb)
    await world.first.prepare("default", kb, [staged])
    await world.second.catch_up("default")
    assert identity not in world.engine.deleted
    assert await world.texts(await world.place(kb)) == ["about a", "about again"]


async def test_an_id_that_came_back_is_written_once_more_when_it_goes_live(world: World) -> None:
    kb = await put(world.one, version("a"))
    staged, identity = await _restaged(world, kb)
    await world.first.prepare("default", kb, [staged])
    await world.second.catch_up("default")
    await world.engine.delete(await world.place(kb), [identity])  # as one did who read the feed before
    await activate(world.one, kb, staged)
    assert await world.texts(await world.place(kb)) == ["about a", "about again"]


@pytest.mark.parametrize("when", ["later", "at once"])
async def test_what_was_prepared_and_is_changed_is_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    kb = await put(world.one, version("a"))
    staged = await stage(world.one, kb, version("old"))
    await world.first.prepare("default", kb, [staged])
    if when == "later":
        await activate(world.two, kb, staged)  # whose settle is the first to see it
        await world.first.catch_up("default")
    async with world.one.transaction("default") as tx:
        if when == "at once":
            await tx.activate(kb, *staged)
        await tx.move(staged[0], "new", "test:new")
    monkeypatch.setattr(index_feed, "nearest", _never)
    assert len(await world.first.search("default", kb, QUERY, 5, parse_filter({"external_id": "new"}))) == 1


async def test_only_what_changed_is_marked_and_all_of_it_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("k0", "k1", "k2", "k3")
    for name in names:
        await put(world.one, version("a", kb=name), kb=name)
    await world.second.catch_up("default")
    written: list[object] = []
    write = world.one.write

    async def counted(tenant: str, work: Callable[..., object], *args: object) -> object:
        written.append(work)
        return await write(tenant, work, *args)

    monkeypatch.setattr(world.one, "write", counted)
    async with world.one.transaction("default") as tx:
        await tx.delete(version("a", kb="k0").document_id)
        await tx.delete(version("a", kb="k2").document_id)
    assert written == [index_feed.advance]
    marks = await world.one.read("default", index_feed.marks, "memory")
    assert [mark.sequence for mark in marks] == [6, 2, 6, 4]
    monkeypatch.setattr(derived_follow, "FAR_BEHIND", 1)
    await world.first.catch_up("default")
    marks = await world.one.read("default", index_feed.marks, "memory")
    assert [mark.sequence for mark in marks] == [6, 6, 6, 6]


async def test_the_ledger_answers_for_an_engine_that_cannot_catch_up(world: World) -> None:
    world.engine.trouble[""] = StoreBusy("the engine is away")
    kb = await put(world.one, version("a"))
    await put(world.one, version("b", kb="other"), kb="other")
    world.now += REST_SECONDS
    world.engine.opened.clear()
    searches = [world.first.search("default", kb, QUERY, 5) for _ in range(3)]
    assert [len(found) for found in await asyncio.gather(*searches)] == [1, 1, 1]
    assert len(world.engine.opened) == 1  # nobody asks again at once, nor for the other Space
    world.engine.trouble.clear()
    world.now += REST_SECONDS - 0.5
    assert len(await world.first.search("default", kb, QUERY, 5)) == 1
    assert len(world.engine.opened) == 1
    world.now += 0.5
    assert len(await world.first.search("default", kb, QUERY, 5)) == 1
    assert await world.texts(await world.place(kb)) == ["about a"]


async def test_a_search_that_the_engine_fails_says_so(world: World) -> None:
    kb = await put(world.one, version("a"))
    await world.first.search("default", kb, QUERY, 5)
    world.engine.trouble[""] = StoreBusy("the engine is away")
    with pytest.raises(StoreBusy, match="the engine is away"):
        await world.first.search("default", kb, QUERY, 5)


async def test_an_engine_is_filled_although_no_search_has_the_time_to_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each search would begin anew, and none would ever come to the end."""
    await put(world.one, version("boats"))
    kb = await world.one.of("default").kb("default")
    assert kb is not None
    await world.replay()
    go_on, writing = asyncio.Event(), asyncio.Event()

    async def slowly(_: VectorPartition) -> None:
        writing.set()
        await go_on.wait()

    world.engine.before_upsert = slowly
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await world.second.search("default", kb, QUERY, 5)
    hurried = asyncio.create_task(world.second.search("default", kb, QUERY, 5))
    await writing.wait()
    hurried.cancel()
    world.now += CATCH_UP_SECONDS
    # While it is being filled the ledger answers, and nobody waits.
    assert len(await world.second.search("default", kb, QUERY, 5)) == 1
    under_way = world.second._catching_up[(await world.place(kb)).tenant_id]
    go_on.set()
    await under_way.task
    monkeypatch.setattr(index_feed, "nearest", _never)
    assert len(await world.second.search("default", kb, QUERY, 5)) == 1


async def test_closing_ends_what_is_being_filled(world: World) -> None:
    await put(world.one, version("boats"))
    kb = await world.one.of("default").kb("default")
    assert kb is not None
    await world.replay()
    writing = asyncio.Event()

    async def for_ever(_: VectorPartition) -> None:
        writing.set()
        await asyncio.Event().wait()

    world.engine.before_upsert = for_ever
    asking = asyncio.create_task(world.second.search("default", kb, QUERY, 5))
    await writing.wait()
    asking.cancel()
    await world.second.close()
    assert world.second._catching_up == {}


@pytest.mark.parametrize("trouble", [StoreError("the engine is away"), ValueError("the engine is away")])
async def test_an_engine_that_is_left_alone_is_named_while_the_ledger_answers(world: World, trouble: Exception) -> None:
    await put(world.one, version("boats"))
    kb = await world.one.of("default").kb("default")
    assert kb is not None
    await world.replay()

    async def fail(_: VectorPartition) -> None:
        raise trouble

    world.engine.before_upsert = fail
    for _ in range(2):  # it is asked once, and left alone then
        with collect_notes() as said:
            assert len(await world.second.search("default", kb, QUERY, 5)) == 1
        assert said == ["memory is left alone, and the ledger answers in its place: the engine is away"]
    world.now += REST_SECONDS
    with collect_notes() as said:
        assert len(await world.second.search("default", kb, QUERY, 5)) == 1
    assert said == []


async def test_after_closing_the_ledger_answers_and_nothing_is_begun(world: World) -> None:
    await put(world.one, version("boats"))
    kb = await world.one.of("default").kb("default")
    assert kb is not None
    await world.replay()
    await world.second.close()
    assert len(await world.second.search("default", kb, QUERY, 5)) == 1
    assert world.second._catching_up == {}

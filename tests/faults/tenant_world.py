"""Twenty tenants on one engine, and what each of them does: every answer is held against the model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

import pytest
from tests.faults.tenant_model import COLOURS, EVERYWHERE, KBS, WORDS, Life, Owners, Paper

from ragstone import Engine
from ragstone.core.errors import NotFoundError, RagstoneError, TenantSuspended
from ragstone.core.ids import opaque_id
from ragstone.core.search import Question, SearchQuery
from ragstone.query.context import Arm

TENANTS = 20
SPARE_NAME = "spare"
ADMINISTRATION = ("rename", "suspend", "resume", "leave")
"""What can be done with a tenant although it is suspended."""
T = TypeVar("T")
Call = Callable[[str], Awaitable[Any]]


def first_lives() -> list[Life]:
    """The tenants as they begin: the same names and addresses everywhere, and one text that all have."""
    lives = [Life(f"tenant{number}") for number in range(TENANTS)]
    for life in lives:
        for kb in KBS:
            own = [
                life.write(f"d{slot}", word, colour)
                for slot, (word, colour) in enumerate(zip(WORDS, COLOURS, strict=False))
            ]
            life.keep(kb, *own, Paper("same", EVERYWHERE, "red"))
    return lives


async def settle_in(engine: Engine, lives: list[Life]) -> None:
    """Give an empty engine these tenants."""

    async def arrive(life: Life) -> None:
        for kb in KBS:
            report = await engine.workspace(life.name).documents.ingest_items(map(life.item, life.live(kb)), kb=kb)
            assert report.added == len(life.kbs[kb])

    await asyncio.gather(*map(arrive, lives))


class World:
    """What tenants do, by the name of the method; `number` says who. Its answers must be theirs and complete."""

    def __init__(self, engine: Engine, lives: list[Life]) -> None:
        self.engine = engine
        self.lives = lives
        self.owners = Owners()

    async def act(self, number: int, action: str, *arguments: Any) -> None:
        """Do something for a tenant; while it is suspended, everything must be refused."""
        life = self.lives[number]
        if life.suspended and action not in ADMINISTRATION:
            with pytest.raises(TenantSuspended):
                await getattr(self, action)(life, *arguments)
        else:
            await getattr(self, action)(life, *arguments)

    async def together(self, plans: dict[int, list[tuple[str, tuple[Any, ...]]]]) -> None:
        """Let tenants act at once, each in its own order."""

        async def follow(number: int) -> None:
            for action, arguments in plans[number]:
                await self.act(number, action, *arguments)

        await all_of(*map(follow, plans))

    async def ingest(self, life: Life, kb: str, slot: int, word: str, colour: str) -> None:
        paper = life.write(f"d{slot}", word, colour)
        report = await self._hear(
            life, self.engine.workspace(life.name).documents.ingest_items([life.item(paper)], kb=kb)
        )
        known = paper.uri in life.kbs.get(kb, {})
        life.keep(kb, paper)
        expected = (int(not known), int(known), (), len(life.kbs[kb]))
        assert (report.added, report.updated, report.failed, report.documents) == expected

    async def search(self, life: Life, kb: str, word: str, arms: Arm, colour: str | None) -> None:
        """`word` may be the number of a tenant: then its canary is asked for."""
        query = self.lives[int(word)].canary if word.isdigit() else word
        where = {"colour": colour} if colour else None
        asked = self.engine.workspace(life.name).search(SearchQuery(query, k=100, arms=arms, where=where, kb=kb))
        result = await self._heard(life, asked, kb)
        if result is None:
            return
        self.owners.check(life, replace(result, query="", rewritten_query=""))
        assert result.degraded == ()
        wanted = [one for one in life.live(kb, colour) if arms != "lexical" or one.has(query)]
        found = sorted((hit.uri, hit.text) for hit in result.hits)
        expected = sorted((one.uri, one.text) for one in wanted)
        assert found == expected, f"{life.name} found {found} by {query} ({arms}) instead of {expected}"

    async def ask(self, life: Life, kb: str, word: str) -> None:
        answer = await self._hear(
            life, self.engine.workspace(life.name).ask(Question(f"Where is the {word}?", kb=kb)), kb
        )
        if answer is not None:
            texts = {(one.uri, one.text) for one in life.live(kb)}
            assert {(one.uri, one.quote) for one in answer.citations} <= texts

    async def list_documents(self, life: Life, kb: str, colour: str | None = None) -> None:
        found = await self._documents(life, kb, colour)
        if found is not None:
            expected = {one.uri for one in life.live(kb, colour)}
            assert set(found) == expected, f"{life.name} is shown {found} instead of {expected}"

    async def read(self, life: Life, kb: str) -> None:
        """Every text and every chunk."""
        for uri, identity in (await self._documents(life, kb) or {}).items():
            text = life.kbs[kb][uri].text
            assert await self._hear(life, self.engine.workspace(life.name).documents.text(identity)) == text
            chunks = await self._hear(life, self.engine.workspace(life.name).documents.chunks(identity))
            assert [one.chunk.text for one in chunks] == [text]

    async def explain(self, life: Life, kb: str, colour: str) -> None:
        """Why a document of that colour is found, and why it is not found by the other one."""
        for uri, identity in islice((await self._documents(life, kb, colour) or {}).items(), 1):
            for other in COLOURS:
                asked = self.engine.workspace(life.name).explain(
                    SearchQuery(uri, k=100, where={"colour": other}, kb=kb), identity
                )
                assert (await self._hear(life, asked)).found == (other == colour)

    async def count(self, life: Life) -> None:
        names = {one.name for one in await self._hear(life, self.engine.workspace(life.name).knowledge_bases.list())}
        assert names == set(life.kbs)
        for kb in KBS:
            stats = await self._hear(life, self.engine.workspace(life.name).knowledge_bases.stats(kb=kb), kb)
            if stats is not None:
                assert (stats.documents, stats.chunks) == (len(life.kbs[kb]),) * 2
        collections = await self._hear(life, self.engine.workspace(life.name).knowledge_bases.source_types())
        assert sum(one.documents for one in collections) == sum(map(len, life.kbs.values()))
        if life.exists:
            usage = await self._hear(life, self.engine.tenants.usage(life.name))
            live = sum(map(len, life.kbs.values()))
            assert (usage.stock.documents, usage.queued.documents) == (live, len(life.queued))

    async def delete(self, life: Life, kb: str, slot: int) -> None:
        found = await self._documents(life, kb) or {}
        there = found.get(f"d{slot}", opaque_id())
        deleted = await self.engine.workspace(life.name).documents.delete(there)
        assert deleted == (f"d{slot}" in life.kbs.get(kb, {}))
        life.kbs.get(kb, {}).pop(f"d{slot}", None)

    async def delete_kb(self, life: Life, kb: str) -> None:
        removed = await self.engine.workspace(life.name).knowledge_bases.delete(kb)
        assert removed == life.drop_kb(kb)

    async def upload(self, life: Life, kb: str, word: str) -> None:
        paper = life.write(f"{len(life.marks)}.txt", word)
        asked = self.engine.workspace(life.name).documents.upload(
            paper.text.encode(), paper.uri, title=f"Of {life.canary}", kb=kb
        )
        status = await self._hear(life, asked)
        assert status.status == "pending"
        life.keep(kb)
        life.queued[paper.uri] = kb, paper

    async def list_jobs(self, life: Life) -> None:
        jobs = await self._hear(life, self.engine.workspace(life.name).jobs.list())
        assert {job.uri for job in jobs if job.state == "pending"} == set(life.queued)
        notices = await self._hear(life, self.engine.workspace(life.name).jobs.notices())
        assert {one.kind for one in notices} <= {"completed"}
        counts = await self.engine.workspace(life.name).jobs.counts()
        assert counts.get("pending", 0) == len(life.queued)

    async def pry(self, life: Life, kb: str) -> None:
        """Use ids of others: each must be answered as one that nobody ever had."""
        engine, name = self.engine, life.name
        calls: list[Call] = [
            lambda one: engine.workspace(name).documents.get(one),
            lambda one: engine.workspace(name).documents.text(one),
            lambda one: engine.workspace(name).documents.chunks(one),
            lambda one: engine.workspace(name).documents.delete(one),
            lambda one: engine.workspace(name).erase("document", one),
            lambda one: engine.workspace(name).explain(SearchQuery("ferry", kb=kb), one),
            lambda one: engine.workspace(name).documents.status(one),
            lambda one: engine.workspace(name).jobs.get(one),
            lambda one: engine.workspace(name).jobs.cancel(one),
            lambda one: engine.workspace(name).jobs.retry(one),
        ]
        await engine.workspace(name).knowledge_bases.list()
        unknown = [await outcome(call, opaque_id()) for call in calls]
        for foreign in sorted(self.owners.of_others(life))[:: max(1, len(self.owners.ids) // 5)]:
            assert [await outcome(call, foreign) for call in calls] == unknown
        where = {"document_id": {"in": sorted(self.owners.of_others(life))[:1000]}}
        if kb in life.kbs and where["document_id"]["in"]:
            found = await engine.workspace(name).search(SearchQuery("ferry", where=where, kb=kb))
            assert (found.hits, await engine.workspace(name).documents.list(where=where, kb=kb)) == ((), [])

    async def rename(self, life: Life) -> None:
        old, new = life.name, f"{life.name.partition('-')[0]}{'' if '-' in life.name else '-renamed'}"
        if not await self._known(life, self.engine.tenants.rename(old, new)):
            return
        life.name = new
        with pytest.raises(NotFoundError):
            await self.engine.workspace(old).search(SearchQuery("ferry", kb=KBS[0]))

    async def suspend(self, life: Life) -> None:
        life.suspended = await self._known(life, self.engine.tenants.suspend(life.name))

    async def resume(self, life: Life) -> None:
        await self._known(life, self.engine.tenants.resume(life.name))
        life.suspended = False

    async def leave(self, life: Life) -> None:
        """Delete a tenant; whoever uses its name next begins with nothing."""
        await self._known(life, self.engine.tenants.delete(life.name))
        self.owners.forget(life)
        self.lives[self.lives.index(life)] = Life(life.name)

    async def swap_names(self, first: int, second: int) -> None:
        """Two tenants go by each other's name from now on, while all others look something up."""
        one, other = self.lives[first], self.lives[second]
        if one is other or not (one.exists and other.exists):
            return

        async def swap() -> None:
            for old, new in ((one.name, SPARE_NAME), (other.name, one.name), (SPARE_NAME, other.name)):
                await self.engine.tenants.rename(old, new)

        bystanders = set(range(TENANTS)) - {first, second}
        looking = (self.act(number, "search", KBS[0], "ferry", "hybrid", None) for number in bystanders)
        await all_of(swap(), *looking)
        one.name, other.name = other.name, one.name

    async def work(self) -> None:
        """Do all jobs of all tenants, while those without any look something up."""
        idle = [number for number, life in enumerate(self.lives) if not life.queued]
        working = asyncio.wait_for(self.engine.worker().run(until_idle=True), 240)
        await all_of(working, *(self.act(n, "search", KBS[1], "harbour", "hybrid", None) for n in idle))
        for life in self.lives:
            if not life.suspended:
                for kb, paper in life.queued.values():
                    life.keep(kb, paper)
                life.queued = {}

    async def census(self, number: int) -> None:
        """All that a tenant can see is all that it has."""
        await self.act(number, "count")
        for kb in KBS:
            await self.act(number, "read", kb)
            await self.act(number, "list_documents", kb)
            await self.act(number, "search", kb, str(number), "dense", None)
            await self.act(number, "search", kb, str(number), "lexical", None)
        await self.act(number, "list_jobs")

    async def _documents(self, life: Life, kb: str, colour: str | None = None) -> dict[str, str] | None:
        """Ids by uri; None when there is no such kb."""
        where = {"colour": colour} if colour else None
        found = await self._hear(life, self.engine.workspace(life.name).documents.list(where=where, kb=kb), kb)
        return None if found is None else {one.uri: one.id for one in found}

    async def _hear(self, life: Life, asked: Awaitable[T], kb: str | None = None) -> T | None:
        """An answer, after a look whether all of it is the tenant's own."""
        answer = await self._heard(life, asked, kb)
        self.owners.check(life, answer)
        return answer

    async def _heard(self, life: Life, asked: Awaitable[T], kb: str | None) -> T | None:
        """An answer; None when there is no such kb, which then cannot be found."""
        if kb is None or kb in life.kbs or life.suspended:
            return await asked
        with pytest.raises(NotFoundError):
            await asked
        return None

    async def _known(self, life: Life, asked: Awaitable[object]) -> bool:
        """Whether there is such a tenant yet; if not, it cannot be found."""
        if life.exists:
            await asked
        else:
            with pytest.raises(NotFoundError):
                await asked
        return life.exists


async def outcome(call: Call, identity: str) -> str:
    """What came of a call, without the id that was asked for."""
    try:
        return repr(await call(identity)).replace(identity, "ID")
    except RagstoneError as error:
        return f"{type(error).__name__}: {error} ({error.advice})".replace(identity, "ID")


async def all_of(*tasks: Awaitable[object]) -> None:
    """Run everything to its end, also what runs beside something that fails."""
    for one in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(one, BaseException):
            raise one

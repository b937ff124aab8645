from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ragstone.core.errors import InputError, StoreBusy, TenantSuspended
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Hit, KnowledgeBase
from ragstone.query import session as session_module
from ragstone.query.session import KbSnapshot, SearchSession
from ragstone.settings.retrieval import RetrievalSettings

SNAPSHOT = KbSnapshot("id 1", KnowledgeBase(1, "default", None), RetrievalSettings(), 1)


class Kb:
    """Counts searches; `errors` are raised by the next ones."""

    def __init__(self) -> None:
        self.at = SNAPSHOT
        self.suspended = False
        self.degraded: tuple[str, ...] = ()
        self.made: list[SearchQuery] = []
        self.errors: list[Exception] = []

    async def search(self, asked: SearchQuery) -> SearchResult:
        query = asked.text
        self.made.append(asked)
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop()
        hit = Hit("c", "d", "Ferry", "uri", "", None, query, 0.5, {}, {"tags": ["boat"]}, 0, len(query))
        return SearchResult(query, query, "fast", (hit,), (), self.degraded, float(len(self.made)))

    async def snapshot(self) -> KbSnapshot:
        if self.suspended:
            raise TenantSuspended("suspended")
        return self.at


@pytest.fixture
def kb() -> Kb:
    return Kb()


@pytest.fixture
def session(kb: Kb) -> SearchSession:
    return SearchSession(kb.search, kb.snapshot)


@pytest.mark.req("R-MOD-17")
async def test_no_search_is_made_twice(kb: Kb, session: SearchSession) -> None:
    first = await session.search(SearchQuery("ferry  times", k=3))
    assert await session.search(SearchQuery(" ferry times ", k=3, mode=None)) == first
    assert kb.made == [SearchQuery("ferry  times", k=3)]


async def test_other_options_are_another_search(kb: Kb, session: SearchSession) -> None:
    for options in ({}, {"k": 3}, {"where": {"year": 1}}, {"where": {"year": True}}, {"where": {"year": "1"}}):
        await session.search(SearchQuery("ferry", **options))
    await session.search("Ferry")
    assert len(kb.made) == 6


async def test_of_two_that_ask_at_once_one_searches(kb: Kb, session: SearchSession) -> None:
    first, second = await asyncio.gather(session.search("ferry"), session.search("ferry"))
    assert first == second
    assert len(kb.made) == 1


@pytest.mark.parametrize(
    "changed",
    [
        replace(SNAPSHOT, sequence=2),
        replace(SNAPSHOT, tenant_id="id 2"),
        replace(SNAPSHOT, kb=KnowledgeBase(2, "default", None)),
        replace(SNAPSHOT, settings=RetrievalSettings(k=3)),
    ],
    ids=["commit", "tenant", "kb", "settings"],
)
async def test_whatever_changed_is_searched_anew(kb: Kb, session: SearchSession, changed: KbSnapshot) -> None:
    await session.search("ferry")
    kb.at = changed
    assert (await session.search("ferry")).took_ms == 2
    assert len(session) == 1


async def test_a_suspended_tenant_is_told_nothing_that_is_remembered(kb: Kb, session: SearchSession) -> None:
    await session.search("ferry")
    kb.suspended = True
    with pytest.raises(TenantSuspended):
        await session.search("ferry")


async def test_a_session_keeps_to_its_kb(kb: Kb, session: SearchSession) -> None:
    with pytest.raises(InputError, match="keeps to its kb"):
        await session.search(SearchQuery("ferry", kb="other"))
    assert kb.made == []


async def test_a_degraded_result_is_not_remembered(kb: Kb, session: SearchSession) -> None:
    kb.degraded = ("dense: down",)
    assert (await session.search("ferry")).degraded == ("dense: down",)
    kb.degraded = ()
    assert (await session.search("ferry")).degraded == ()
    assert (len(session), len(kb.made)) == (1, 2)


async def test_what_one_caller_changes_is_not_given_to_the_next(kb: Kb, session: SearchSession) -> None:
    for _ in range(3):
        facts: Any = (await session.search("ferry")).hits[0].metadata
        assert facts == {"tags": ["boat"]}
        facts["tags"].append("poison")
    assert len(kb.made) == 1


async def test_a_failure_is_not_remembered(kb: Kb, session: SearchSession) -> None:
    kb.errors.append(StoreBusy("busy"))
    with pytest.raises(StoreBusy):
        await session.search("ferry")
    assert (await session.search("ferry")).took_ms == 2
    assert len(session) == 1


async def test_a_failure_is_not_remembered_either_when_nobody_waited_for_it(kb: Kb, session: SearchSession) -> None:
    kb.errors.append(StoreBusy("busy"))
    leaving = asyncio.ensure_future(session.search("ferry"))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    for _ in range(3):
        await asyncio.sleep(0)
    assert (await session.search("ferry")).took_ms == 2


async def test_who_leaves_early_does_not_spoil_it_for_others(kb: Kb, session: SearchSession) -> None:
    leaving = asyncio.ensure_future(session.search("ferry"))
    staying = asyncio.ensure_future(session.search("ferry"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).query == "ferry"
    assert len(kb.made) == 1


async def test_a_session_has_an_end_to_its_memory(
    kb: Kb, session: SearchSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MOST_SEARCHES", 2)
    for query in ("one", "two", "three", "one"):
        await session.search(query)
    assert (len(session), len(kb.made)) == (2, 4)

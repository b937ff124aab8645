from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragstone.core.errors import StoreBusy
from ragstone.core.types import SearchResult
from ragstone.query import session as session_module
from ragstone.query.session import Session


class Kb:
    """Counts searches; `errors` are raised by the next ones."""

    def __init__(self) -> None:
        self.number = 1
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[Exception] = []

    async def search(self, query: str, **options: Any) -> SearchResult:
        self.made.append((query, options))
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop()
        return SearchResult(query, query, "fast", (), (), (), float(len(self.made)))

    async def sequence(self) -> int:
        return self.number


@pytest.fixture
def kb() -> Kb:
    return Kb()


@pytest.fixture
def session(kb: Kb) -> Session:
    return Session(kb.search, kb.sequence)


@pytest.mark.req("R-MOD-17")
async def test_no_search_is_made_twice(kb: Kb, session: Session) -> None:
    first = await session.search("ferry  times", k=3)
    assert await session.search(" ferry times ", k=3, mode=None) is first
    assert kb.made == [("ferry  times", {"k": 3})]


async def test_other_options_are_another_search(kb: Kb, session: Session) -> None:
    for options in (
        {},
        {"k": 3},
        {"where": {"year": 1}},
        {"where": {"year": True}},
        {"where": {"year": "1"}},
    ):
        await session.search("ferry", **options)
    await session.search("Ferry")
    assert len(kb.made) == 6


async def test_of_two_that_ask_at_once_one_searches(kb: Kb, session: Session) -> None:
    first, second = await asyncio.gather(session.search("ferry"), session.search("ferry"))
    assert first is second
    assert len(kb.made) == 1


async def test_a_changed_kb_is_searched_anew(kb: Kb, session: Session) -> None:
    first = await session.search("ferry")
    kb.number += 1
    assert await session.search("ferry") is not first
    assert len(kb.made) == 2


async def test_a_failure_is_not_remembered(kb: Kb, session: Session) -> None:
    kb.errors.append(StoreBusy("busy"))
    with pytest.raises(StoreBusy):
        await session.search("ferry")
    assert (await session.search("ferry")).took_ms == 2
    assert len(session) == 1


async def test_who_leaves_early_does_not_spoil_it_for_others(kb: Kb, session: Session) -> None:
    leaving = asyncio.ensure_future(session.search("ferry"))
    staying = asyncio.ensure_future(session.search("ferry"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).query == "ferry"
    assert len(kb.made) == 1


async def test_a_session_has_an_end_to_its_memory(
    kb: Kb, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MOST_SEARCHES", 2)
    for query in ("one", "two", "three", "one"):
        await session.search(query)
    assert (len(session), len(kb.made)) == (2, 4)

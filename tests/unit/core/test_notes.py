"""What is said about a result reaches whoever listens."""

from __future__ import annotations

import asyncio

from ragstone.core.search import add_note, collect_notes


def test_each_thing_is_heard_once_and_in_order() -> None:
    with collect_notes() as said:
        for text in ("slow", "old", "slow"):
            add_note(text)
    assert said == ["slow", "old"]


def test_nobody_has_to_listen() -> None:
    add_note("slow")
    with collect_notes() as said:
        pass
    add_note("slow")
    assert said == []


async def test_tasks_that_are_started_inside_are_heard_by_their_own_listener() -> None:
    async def work(text: str) -> None:
        add_note(text)

    async def listener(text: str) -> list[str]:
        with collect_notes() as said:
            await asyncio.gather(work(text), work("both"))
        return said

    one, other = await asyncio.gather(listener("a"), listener("b"))
    assert (sorted(one), sorted(other)) == (["a", "both"], ["b", "both"])

"""What is said about a result reaches whoever listens."""

from __future__ import annotations

import asyncio

from ragstone.core.notes import listening, remark


def test_each_thing_is_heard_once_and_in_order() -> None:
    with listening() as said:
        for text in ("slow", "old", "slow"):
            remark(text)
    assert said == ["slow", "old"]


def test_nobody_has_to_listen() -> None:
    remark("slow")
    with listening() as said:
        pass
    remark("slow")
    assert said == []


async def test_tasks_that_are_started_inside_are_heard_by_their_own_listener() -> None:
    async def work(text: str) -> None:
        remark(text)

    async def listener(text: str) -> list[str]:
        with listening() as said:
            await asyncio.gather(work(text), work("both"))
        return said

    one, other = await asyncio.gather(listener("a"), listener("b"))
    assert (sorted(one), sorted(other)) == (["a", "both"], ["b", "both"])

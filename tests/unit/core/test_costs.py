"""What models cost is added up for whoever pays."""

from __future__ import annotations

import asyncio

from ragstone.core.model_types import add_cost, collect_costs


def test_a_bill_adds_up_by_kind() -> None:
    with collect_costs() as bill:
        add_cost("embedding", 0.25)
        add_cost("llm", 1.0)
        add_cost("embedding", 0.5)
    assert bill == {"embedding": 0.75, "llm": 1.0}


def test_what_nobody_pays_for_is_not_counted() -> None:
    add_cost("llm", 1.0)
    with collect_costs() as bill:
        pass
    add_cost("llm", 1.0)
    assert bill == {}


def test_nothing_and_less_than_nothing_are_not_written_down() -> None:
    with collect_costs() as bill:
        add_cost("llm", 0.0)
        add_cost("llm", -1.0)
    assert bill == {}


def test_the_innermost_bill_pays() -> None:
    with collect_costs() as outer:
        with collect_costs() as inner:
            add_cost("llm", 2.0)
        add_cost("llm", 1.0)
    assert (inner, outer) == ({"llm": 2.0}, {"llm": 1.0})


async def test_tasks_that_are_started_inside_are_on_the_bill() -> None:
    async def work(usd: float) -> None:
        add_cost("llm", usd)

    async def payer(usd: float) -> dict[str, float]:
        with collect_costs() as bill:
            await asyncio.gather(*(asyncio.create_task(work(usd)) for _ in range(3)))
        return bill

    one, other = await asyncio.gather(payer(1.0), payer(2.0))
    assert (one, other) == ({"llm": 3.0}, {"llm": 6.0})

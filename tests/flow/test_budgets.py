"""Budgets of a month: spared when they run low, and once spent all goes on that costs nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.doubles.openai import OpenAIDouble, chat_reply

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import BudgetSpent, QuotaExceeded, StoreFull
from ragstone.core.model_types import Bill, Embeddings, add_cost, require_budget
from ragstone.core.search import SearchQuery
from ragstone.core.tenants import Quotas
from ragstone.core.types import Role
from ragstone.engine.workspace import Workspace
from ragstone.testing.fakes import FakeEmbedder

SPENT = "10.00 of 10.00 USD of this month are spent: nothing is paid for until 2026-12-01"
NOTE = "budget: {spent} of 10.00 USD of this month are spent: balanced instead of thorough until 2026-12-01"


class PaidEmbedder(FakeEmbedder):
    """A model that costs a cent a call."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        require_budget()
        add_cost("embedding", 0.01, 100)
        return await super().embed(texts, role)


@pytest.fixture
def service() -> AsyncIterator[OpenAIDouble]:
    with OpenAIDouble(lambda _: chat_reply("The ferry leaves at nine [1].", usage=(1000, 100))) as double:
        yield double


@pytest.fixture
async def engine(data_dir: Path, service: OpenAIDouble, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: PaidEmbedder())
    settings = Settings.model_validate(
        {
            "data_dir": data_dir,
            "llm": {"model": "small", "base_url": service.url, "price_in": 2.0, "price_out": 10.0},
            "retrieval": {"transforms": ["rewrite"], "timeout": 30},
            "reranking": {"kind": "llm"},
            "cache": {"search_seconds": 0},
            "enrich": {"summary": "extractive"},
        }
    )
    async with open_engine(settings) as opened:
        opened.tenants._clock = lambda: datetime(2026, 11, 17, 12, tzinfo=UTC)  # type: ignore[attr-defined]
        ferry = Item("notes", "ferry", "ferry", "The ferry leaves at nine.")
        await opened.workspace("acme").documents.ingest_items([ferry])
        yield opened


async def spend(engine: Engine, usd: float) -> Workspace:
    """Set a budget of ten dollars, of which so much is spent."""
    used = (await engine.tenants.usage("acme")).cost
    await engine.tenants.set_quotas("acme", Quotas(cost_per_month=10))
    await engine.tenants.charge_bill("acme", Bill(llm=usd - used))
    return engine.workspace("acme")


async def test_a_budget_that_is_nearly_spent_is_spared(engine: Engine, service: OpenAIDouble) -> None:
    acme = await spend(engine, 5.0)
    before = await acme.search(SearchQuery("ferry", mode="thorough"))
    assert before.mode == "thorough"
    assert not any(note.startswith("budget: ") for note in before.degraded)
    asked = len(service.requests)
    await spend(engine, 9.5)
    spared = await acme.search(SearchQuery("ferry", mode="thorough"))
    assert (spared.mode, len(spared.hits), len(service.requests)) == ("balanced", 1, asked)
    assert spared.degraded == (NOTE.format(spent="9.50"),)
    assert (await acme.search("ferry")).degraded == ()
    answer = await acme.ask("When does the ferry leave?")
    assert len(service.requests) > asked  # there is still something left for an answer
    assert answer.degraded == ()


async def test_a_spent_budget_leaves_out_what_costs_money(engine: Engine, service: OpenAIDouble) -> None:
    acme = await spend(engine, 10.0)
    asked = len(service.requests)
    found = await acme.search(SearchQuery("ferry", mode="thorough"))
    assert [hit.text for hit in found.hits] == ["The ferry leaves at nine."]
    assert found.degraded == (f"dense: {SPENT}", NOTE.format(spent="10.00"))
    answer = await acme.ask("When does the ferry leave?")
    assert (answer.status, answer.citations[0].quote) == ("answered", "The ferry leaves at nine.")
    assert {f"dense: {SPENT}", f"llm: {SPENT}"} <= set(answer.degraded)
    assert (await acme.verify("The ferry leaves at nine.")).evidence
    assert (await acme.research("ferry")).findings
    assert len(service.requests) == asked
    assert (await engine.tenants.usage("acme")).cost == pytest.approx(10.0)


async def test_what_needs_money_is_refused_and_says_when_there_is_some_again(engine: Engine) -> None:
    acme = await spend(engine, 10.0)
    (document,) = await acme.documents.list()
    for asked in (acme.search(SearchQuery("ferry", arms="dense")), acme.embed(["ferry"], "query")):
        with pytest.raises(BudgetSpent, match=r"10.00 of 10.00 USD") as refused:
            await asked
        assert refused.value.retry_after == 13.5 * 24 * 3600
        assert str(refused.value) == SPENT
    await spend(engine, 11.0)
    with pytest.raises(QuotaExceeded):
        await acme.documents.ingest_items([Item("notes", "bus", "bus", "The bus leaves at ten.")])
    assert await acme.documents.get(document.id)


async def test_a_cost_that_cannot_be_written_is_written_later(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, book = engine.workspace("acme"), engine.tenants
    before = (await book.usage("acme")).cost
    charge = book.charge_bill

    async def fail(*_: object) -> None:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(book, "charge_bill", fail)
    assert (await acme.search("ferry")).hits
    monkeypatch.setattr(book, "charge_bill", charge)
    assert (await book.usage("acme")).cost == before
    await acme.search("harbour ferry")
    assert (await book.usage("acme")).cost == pytest.approx(before + 0.03), "two queries, and the unrelated text once"

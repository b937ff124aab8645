"""Budgets, the price table and the projections of the designs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragstone.core.errors import BudgetSpent
from ragstone.core.model_types import add_cost, collect_costs, require_budget
from ragstone.core.tenants import MonthBudget, project_month
from ragstone.models.weights.catalogue import model_info
from ragstone.settings.prices import PriceSettings, is_own

DECEMBER = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spent", "nearly", "wholly"), [(0.0, False, False), (8.9, False, False), (9.0, True, False), (10.0, True, True)]
)
def test_a_budget_knows_how_much_is_left(spent: float, nearly: bool, wholly: bool) -> None:
    budget = MonthBudget(10.0, spent, DECEMBER)
    assert (budget.is_nearly_spent, budget.is_spent) == (nearly, wholly)
    assert budget.note.endswith("balanced instead of thorough until 2027-01-01")
    assert budget.resets_at == datetime(2027, 1, 1, tzinfo=UTC)
    refusal = budget.refusal()
    assert (refusal is not None) == wholly
    assert refusal is None or refusal.retry_after == 60


def test_a_budget_of_nothing_is_spent() -> None:
    assert MonthBudget(0.0, 0.0, DECEMBER).is_spent


def test_nobody_pays_with_a_spent_budget() -> None:
    require_budget()
    with collect_costs():
        require_budget()
    with collect_costs(MonthBudget(1.0, 1.0, DECEMBER).refusal()), pytest.raises(BudgetSpent):
        require_budget()


def test_what_was_used_is_counted_also_if_it_is_free() -> None:
    with collect_costs() as bill:
        add_cost("web", 0.0, units=1)
        add_cost("web", 0.0, units=1)
    assert (bill, bill.units) == ({}, {"web": 2})


@pytest.mark.req("R-OBS-17")
def test_the_price_of_embeddings() -> None:
    price = model_info("text-embedding-3-small").price_per_million
    assert price == 0.02
    assert 10_000 / 1_000_000 * price == pytest.approx(0.0002)
    assert 100 / 1_000_000 * price == pytest.approx(0.000002)


@pytest.mark.req("R-OBS-18")
def test_the_price_of_vectors() -> None:
    prices = PriceSettings()
    assert prices.vector_month("pinecone") * 100_000 == pytest.approx(70.0)
    assert prices.vector_month("pinecone") * 100_000 == pytest.approx(0.096 * 730, rel=0.01)
    assert (prices.vector_month("sqlite"), prices.vector_month("qdrant")) == (0.0, 0.0)
    assert PriceSettings(vectors=10).vector_month("qdrant") == 0.0001


@pytest.mark.req("R-OBS-19")
def test_the_price_of_web_searches() -> None:
    prices = PriceSettings()
    assert (prices.web_query("google") * 1000, prices.free_web_queries("google")) == (5.0, 100)
    assert (prices.web_query("searxng"), prices.free_web_queries("searxng")) == (0.0, 0)
    assert PriceSettings(web=3, web_free_per_day=0).web_query("brave") == 0.003


@pytest.mark.req("R-OBS-20")
def test_the_price_of_reranking_by_an_llm() -> None:
    prices = PriceSettings()
    assert prices.reranking_million(0.0, "https://openrouter.ai/api/v1") == 0.06
    assert prices.reranking_million(0.0, "http://127.0.0.1:8080/v1") == 0.0
    assert prices.reranking_million(2.0, "https://openrouter.ai/api/v1") == 2.0
    assert PriceSettings(reranking=1).reranking_million(2.0, None) == 1


@pytest.mark.parametrize(
    ("address", "own"),
    [
        (None, False),
        ("https://api.openai.com/v1", False),
        ("http://93.184.216.34/v1", False),
        ("http://localhost:11434/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://[::1]:80/v1", True),
    ],
)
def test_an_own_address_costs_nothing(address: str | None, own: bool) -> None:
    assert is_own(address) is own


@pytest.mark.parametrize(
    ("documents", "conversations", "embedding", "vectors", "web", "total"),
    [
        pytest.param(10, 100, 0.02, 2.33, 0.0, 2.35, marks=pytest.mark.req("R-OBS-21")),
        pytest.param(100, 1000, 0.20, 2.33, 1.50, 4.03, marks=pytest.mark.req("R-OBS-22")),
        pytest.param(1000, 10_000, 2.00, 7.00, 15.00, 24.00, marks=pytest.mark.req("R-OBS-23")),
    ],
)
def test_the_projections_of_the_design(
    documents: int, conversations: int, embedding: float, vectors: float, web: float, total: float
) -> None:
    expected = project_month(documents, conversations)
    assert expected.by_kind() == pytest.approx({"embedding": embedding, "vectors": vectors, "web": web})
    assert expected.total == pytest.approx(total)

"""The products that the web is asked about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ragstone.agents.service.analysis import analyze_message
from ragstone.agents.service.enrichment import choose_product, needs_enrichment
from ragstone.agents.service.settings import AgentConfiguration
from ragstone.core.shop import Product

LAMP = Product("lamp", "Glass Lamp", "Home", "Rive", "A lamp of mouth-blown glass on a base of oak, 22 cm high.")
ALLOWED = AgentConfiguration(enable_internet_enrichment=True)
ABOUT = "Tell me about the Glass Lamp"


@pytest.mark.req("R-CSA-10")
@pytest.mark.parametrize(("length", "needs"), [(0, True), (49, True), (50, False), (200, False)])
def test_fewer_than_50_characters_are_too_few(length: int, needs: bool) -> None:
    assert needs_enrichment(replace(LAMP, description="x" * length)) is needs
    assert needs_enrichment(replace(LAMP, description=f"  {'x' * length}\n\n ")) is needs


@pytest.mark.req("R-CSA-11")
@pytest.mark.parametrize(
    ("product", "message", "configuration", "asked"),
    [
        (LAMP, ABOUT, ALLOWED, False),
        (replace(LAMP, description="Made to order."), ABOUT, ALLOWED, True),
        (replace(LAMP, category="Books"), ABOUT, ALLOWED, True),
        (replace(LAMP, category="Perfume"), ABOUT, ALLOWED, True),
        (replace(LAMP, category="Electronics"), ABOUT, ALLOWED, True),
        (LAMP, "Does the Glass Lamp have a dimmer?", ALLOWED, True),
        (LAMP, "Is the Glass Lamp of glass?", ALLOWED, False),
        (replace(LAMP, category="Books"), "How much is the Glass Lamp?", ALLOWED, False),
        (replace(LAMP, category="Books"), ABOUT, AgentConfiguration(), False),
    ],
)
def test_the_web_is_asked_where_a_rule_says_so(
    product: Product, message: str, configuration: AgentConfiguration, asked: bool
) -> None:
    analysis = analyze_message(message, configuration, datetime(2026, 11, 18, tzinfo=UTC))
    assert (choose_product([product], analysis, configuration) is product) is asked

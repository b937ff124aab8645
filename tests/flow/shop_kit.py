"""A small shop for tests of the customer-service agent: documents, goods, services, and pages of the web."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from ragstone import Engine, Item, Settings
from ragstone.core.shop import Product, Service, Window

POLICIES = (
    "# Business Policies\n\n## Return Policy\n\nYou can return unopened products within 30 days of purchase. "
    "Refunds are paid within 5 working days.\n\n## Shipping Policy\n\nOrders over $50 ship free of charge.\n"
)
GUIDE = (
    "# Product Catalogue Guide\n\nFor a romantic evening we recommend a perfume with warm notes. "
    "Keep perfume away from sunlight.\n"
)
SPICE = Product(
    *("spice", "Oriental Spice", "Perfumes", "Maison Rive"),
    *("Warm, sensual notes perfect for evening occasions", Decimal(42), "USD", 12),
)
GOODS = (
    SPICE,
    Product(
        "citrus", "Citrus Morning", "Perfumes", "", "Lemon and bergamot for the office.", Decimal("29.5"), "USD", 0
    ),
    Product("candle", "Beeswax Candle", "Home", "", "It burns for forty hours.", Decimal(9), "USD", None),
)
MASSAGE = Service(
    *("massage", "Swedish massage", "A classic massage.", Decimal(60), "USD", 60),
    tuple(Window(day, time(9), time(11)) for day in range(7)),
)
FACIAL = Service(
    "facial", "Clay facial", "A facial with clay.", Decimal(45), "USD", 45, (Window(5, time(10), time(14)),)
)
WEB_QUERY = "Oriental Spice Perfumes Maison Rive specifications features"
PAGES = [
    {
        "title": "Fragrance composition details - FragranceNet",
        "url": "https://www.fragrancenet.example/oriental-spice",
        "snippet": "Oriental Spice features oud and amber base notes. Oriental Spice sells for $55.",
    },
    {"title": "A review", "url": "https://scents.example/1", "snippet": "Oriental Spice lasts for eight hours."},
    {"title": "Bottles", "url": "https://third.example/", "snippet": "Oriental Spice comes in bottles of 50 ml."},
]
TODAY = date(2030, 1, 7)
"""A Monday that is still to come: free times are those from now on."""
NOON = datetime.combine(TODAY, time(12), UTC)


def shop_settings(data_dir: Path, **more: Any) -> Settings:
    """Settings with a web search that knows one product."""
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    pages = data_dir.parent / "web.json"
    pages.write_text(json.dumps({WEB_QUERY: PAGES, "*": []}), encoding="utf-8")
    return Settings(**{"data_dir": data_dir, "web": {"kind": "fixture", "path": pages}} | more)


async def fill_shop(engine: Engine, tenant: str = "default") -> None:
    """Put documents, goods and services into the shop of a tenant."""
    workspace = engine.workspace(tenant)
    await workspace.documents.ingest_items(
        [
            Item("files", "1", "policies.md", POLICIES, title="Business Policies", media_type="text/markdown"),
            Item("files", "2", "guide.md", GUIDE, title="Product Catalogue Guide", media_type="text/markdown"),
        ]
    )
    for product in GOODS:
        await workspace.shop.put_product(product)
    for service in (MASSAGE, FACIAL):
        await workspace.shop.put_service(service)

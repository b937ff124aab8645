"""A fictional shop for the demo: its documents, products, services, and some bookings."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ragstone.core.shop import Product, Service
from ragstone.core.shop.tables import read_products, read_services

FOLDER = Path(__file__).parent
DOCUMENTS = ("business-faq.pdf", "product-catalogue-guide.pdf", "business-policies.txt", "service-guide.pdf")


CONVERSATIONS = (
    "What is your return policy?",
    "Tell me about the Oriental Spice perfume",
    "What services do you offer?",
    "When can I book a massage?",
    "I want a romantic perfume, what do you recommend?",
)
"""Messages of customers: about a document, a product, services, free times, and one for all sources."""


class DemoBooking(NamedTuple):
    """A booking of the demo: the free slot of that number, from tomorrow on."""

    service_id: str
    slot: int
    customer: str


BOOKINGS = (
    DemoBooking("relaxing-massage", 0, "Ada Brook"),
    DemoBooking("relaxing-massage", 2, "Tom Weller"),
    DemoBooking("deep-tissue-massage", 0, "Mira Sol"),
    DemoBooking("aroma-facial", 1, "Lena Hart"),
)
"""Each is of a slot that is free once those before it are taken."""


def documents() -> tuple[Path, ...]:
    """Return the files of the shop: three PDFs and a text."""
    return tuple(FOLDER / name for name in DOCUMENTS)


def web_pages() -> Path:
    """Return the file with what the web says of some products."""
    return FOLDER / "web.json"


def products() -> list[Product]:
    """Return products of three kinds: described in full, described in a few words, and known brands."""
    return read_products((FOLDER / "products.csv").read_text(encoding="utf-8"))


def services() -> list[Service]:
    """Return the services, massages among them."""
    return read_services((FOLDER / "services.csv").read_text(encoding="utf-8"))

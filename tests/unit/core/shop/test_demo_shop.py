"""The documents and data of the demo shop."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest
from scripts import make_shop

from ragstone.samples import shop

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in make_shop.TEXTS.glob("*.md")}


def pages(name: str) -> list[str]:
    """Return the text of each page of a PDF."""
    with pypdfium2.PdfDocument(shop.FOLDER / name) as document:
        return [" ".join(page.get_textpage().get_text_bounded().split()) for page in document]


def test_the_documents_are_made_from_the_texts(tmp_path: Path) -> None:
    make_shop.main(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(made) == 3
    assert all((shop.FOLDER / name).read_bytes() == content for name, content in made.items())
    assert [path.suffix for path in shop.documents()] == [".pdf", ".pdf", ".txt", ".pdf"]


@pytest.mark.req("R-TST-36")
def test_the_faq_has_twenty_questions_on_several_pages_with_sections() -> None:
    found = pages("business-faq.pdf")
    questions = [line[4:] for line in TEXTS["business-faq"].splitlines() if line.startswith("### ")]
    sections = [line[3:] for line in TEXTS["business-faq"].splitlines() if line.startswith("## ")]
    assert (len(questions), len(found), len(sections)) == (20, 4, 4)
    assert all(question.endswith("?") and question in " ".join(found) for question in questions)
    assert all(any(section in page for page in found) for section in sections)


@pytest.mark.req("R-TST-37")
def test_the_catalogue_guide_says_how_things_are_used_and_cared_for() -> None:
    text = " ".join(pages("product-catalogue-guide.pdf"))
    for said in ("Oriental Spice is our best-known evening perfume", "How to use a perfume", "Care and maintenance"):
        assert said in text


@pytest.mark.req("R-TST-38")
def test_the_policies_are_a_text_with_four_parts() -> None:
    text = (shop.FOLDER / "business-policies.txt").read_text(encoding="utf-8")
    parts = ["RETURN POLICY", "SHIPPING POLICY", "PRIVACY POLICY", "TERMS OF SERVICE"]
    assert [line for line in text.splitlines() if line in parts] == parts


@pytest.mark.req("R-TST-39")
def test_the_service_guide_describes_booking_and_pricing_tiers() -> None:
    found = pages("service-guide.pdf")
    assert "Relaxing massage" in found[0]
    assert "Booking step by step" in found[1]
    assert all(tier in found[2] for tier in ("Pricing tiers", "Single treatments", "Silver card", "Gold card"))


@pytest.mark.req("R-TST-40")
def test_there_are_products_of_three_kinds() -> None:
    products = shop.products()
    assert sum(len(product.description) >= 200 for product in products) >= 5
    assert sum(len(product.description) < 50 for product in products) >= 4
    brands = {product.name: product.brand for product in products if product.brand != "Juniper Lane"}
    assert {"Chanel", "Penguin Classics", "Philips"} <= set(brands.values())
    assert any("HF3519/01" in name for name in brands)
    (spice,) = [product for product in products if product.name == "Oriental Spice"]
    assert (str(spice.price), spice.currency, spice.category) == ("42.00", "USD", "Perfume")


def test_a_massage_can_be_booked() -> None:
    services = {service.id: service for service in shop.services()}
    assert "massage" in services["relaxing-massage"].name.casefold()
    assert all(booking.service_id in services for booking in shop.BOOKINGS)

"""Finding entries of a catalogue by words."""

from __future__ import annotations

from decimal import Decimal

from ragstone.core.clock import now
from ragstone.core.shop import Product, Service
from ragstone.language.catalogue import IndexedWords, index_product, index_service, rank
from ragstone.language.terms import terms_asked

SPICE = Product("spice", "Oriental Spice", "perfume", "Juniper", "Warm notes.", Decimal(42), "USD", 3, now())
ROSE = Product("rose", "Rose Velvet", "perfume", "Juniper", "A romantic perfume of rose.", Decimal(38), "USD", 2, now())
LAMP = Product("lamp", "Desk lamp", "lighting", "Halden", "A lamp for reading.", Decimal(30), "USD", 9, now())


def find(query: str, *products: Product) -> list[str]:
    entries = [(product.id, index_product(product).terms.split()) for product in products]
    return rank(entries, terms_asked(query, []), len(entries), 5)


def test_a_product_that_is_named_comes_alone() -> None:
    assert find("Tell me about the Oriental Spice perfume", SPICE, ROSE, LAMP) == ["spice"]


def test_words_of_the_description_and_the_category_find_it() -> None:
    assert find("a romantic perfume", SPICE, ROSE, LAMP)[0] == "rose"
    assert find("which perfumes do you have", SPICE, ROSE, LAMP) == ["rose", "spice"]


def test_what_no_entry_has_finds_nothing() -> None:
    assert find("bicycle", SPICE, ROSE) == []
    assert find("bicycle") == []


def test_the_words_of_an_entry_are_enclosed_by_blanks_in_its_language() -> None:
    words = index_service(Service("m", "Entspannende Massage", "Eine ruhige Massage für den Rücken und die Schultern."))
    assert words.language == "de"
    assert words.terms.startswith(" ")
    assert words.terms.count("massag") == 4, "thrice for the name, once for the description"
    assert index_product(LAMP) == IndexedWords(index_product(LAMP).terms, "")

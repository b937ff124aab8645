"""What a query is taken for: its type, its names and days, and who is asked."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.unit.query.doubles import KB, Index, Shelf, ask, candidates, make_pipeline

from ragstone.core.search import SearchResult
from ragstone.language.names import MOST_NAMES, find_names, find_spelt_dates, find_spelt_names
from ragstone.query.explain import explain
from ragstone.query.routing.analyse import add_names, analyse
from ragstone.schemas.search import SearchSchema
from ragstone.settings.retrieval import VocabularySettings

SHOP = VocabularySettings(product=("Oriental Spice", "body lotion"), service=("massage", "hair cut"))


@pytest.mark.req("R-QRY-15")
@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("How much is the Oriental Spice?", "product"),
        ("do body lotions come in blue", "product"),
        ("Do you have the iPhone 15 Pro?", "product"),
        ("SKU-12345", "product"),
        ("what sizes are there", "product"),
        ("Can I book a massage?", "service"),
        ("price of hair cuts", "service"),
        ("an appointment on Friday", "service"),
        ("Who founded the company?", "general"),
        ("return policy", "general"),
        ("the massages of the river", "service"),
        ("a spice of the orient", "general"),
    ],
)
def test_a_query_is_about_a_product_a_service_or_neither(query: str, kind: str) -> None:
    assert analyse(query, SHOP).type == kind


def test_without_names_of_its_own_only_common_words_tell() -> None:
    nobody = VocabularySettings()
    assert analyse("tell me about Oriental Spice", nobody).type == "general"
    assert analyse("what does Oriental Spice cost", nobody).type == "product"


@pytest.mark.req("R-QRY-15")
@pytest.mark.parametrize(
    ("query", "entities", "dates"),
    [
        ("Is Oriental Spice in stock?", ("Oriental Spice",), ()),
        ("oriental spices and body lotion", ("Oriental Spice", "body lotion"), ()),
        ("Can I book a massage next Tuesday at 5 pm?", ("massage",), ("next Tuesday", "5 pm")),
        ('Is "blue nile" sold in Berlin today?', ("blue nile", "Berlin"), ("today",)),
        ("Tell me about Arthur Dent's house", ("Arthur Dent",), ()),
        ("What did Marie Curie find in 1903?", ("Marie Curie",), ("1903",)),
        ("free on 2026-05-03 or 3 May 2026 or May 3rd", (), ("2026-05-03", "3 May 2026", "May 3rd")),
        ("moduleControllerCreate in v2", ("moduleControllerCreate", "v2"), ()),
        ("what is there to see", (), ()),
    ],
)
def test_names_and_days_as_they_are_spelt(query: str, entities: tuple[str, ...], dates: tuple[str, ...]) -> None:
    analysis = analyse(query, SHOP)
    assert (analysis.entities, analysis.dates) == (entities, dates)


@pytest.mark.req("R-QRY-15")
@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("How much is the Oriental Spice?", ("documents", "database")),
        ("Can I book a massage?", ("documents",)),
        ("Who founded the company?", ("documents",)),
        ("latest price of Oriental Spice", ("documents", "database", "internet")),
        ("hello!", ()),
    ],
)
def test_who_may_know_is_asked(query: str, sources: tuple[str, ...]) -> None:
    assert analyse(query, SHOP, web=True, database=("product",)).sources == sources


def test_who_is_not_there_is_not_asked() -> None:
    assert analyse("latest price of Oriental Spice", SHOP).sources == ("documents",)


@pytest.mark.req("R-QRY-15")
def test_names_are_known_by_the_kb_s_own_spelling() -> None:
    query = "what does the midnight harbour cost"
    analysis = analyse(query, VocabularySettings())
    assert analysis.entities == ()
    passages = ["Our best: The Midnight Harbour, with oud.", "Midnight harbours are many."]
    assert add_names(analysis, query, passages).entities == ("Midnight Harbour",)
    assert add_names(analysis, query, ["midnight harbour", "Harbour"]) is analysis


def test_a_longer_name_takes_the_place_of_its_parts() -> None:
    analysis = analyse("is the Harbour of Oriental Spice open", SHOP)
    assert analysis.entities == ("Oriental Spice", "Harbour")
    named = add_names(analysis, "is the harbour view open at Harbour View", ["Harbour View is open."])
    assert named.entities == ("Harbour View", "Oriental Spice")


def test_hostile_queries_cost_little_and_name_little() -> None:
    for query in ("A " * 4000, "A1-" * 3000, '"' * 8000, "May 1 " * 1500, "\ud800 Aa" * 1000, "1/" * 4000):
        analysis = analyse(query, SHOP, web=True, database=("product",))
        assert len(analysis.entities) <= MOST_NAMES
        assert len(analysis.dates) <= MOST_NAMES
    assert find_spelt_names("a b", ["A " * 50_000]) == ()


def test_words_that_begin_sentences_are_no_names() -> None:
    assert find_names("Compare Berlin and Paris. The Hague too") == ("Berlin", "Paris", "Hague")
    assert find_names("Please. I. Do.") == ()
    assert find_spelt_dates("may I come at 25:00 or 13:30, 1.2.2026") == ("13:30", "1.2.2026")


@pytest.mark.parametrize("names", [("x",), ("y" * 81,), ("some name",) * 1001])
def test_a_list_of_names_has_limits(names: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        VocabularySettings(product=names)


@pytest.mark.req("R-QRY-15")
async def test_explain_and_json_show_it() -> None:
    analysis = analyse("Is Oriental Spice in stock tomorrow?", SHOP, database=("product",))
    shape = {
        "type": "product",
        "entities": ["Oriental Spice"],
        "dates": ["tomorrow"],
        "sources": ["documents", "database"],
        "mode": None,
        "reason": "",
    }
    shelf, index = Shelf({"a#0": "some words"}), Index(candidates("a#0"))
    told = await explain(shelf, make_pipeline(shelf, index, index), "default", KB, ask(), "a", analysis)
    assert told.stages[0] == {"stage": "analyse", **shape}
    result = SearchResult("q", "q", "fast", (), (), (), 0.0, analysis=analysis)
    assert SearchSchema.of(result).as_json()["analysis"] == shape

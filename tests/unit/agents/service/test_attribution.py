"""Sources are named as the design shows it for the perfume Oriental Spice."""

from __future__ import annotations

import pytest

from ragstone.agents.service.attribution import add_attribution, format_citation, name_site, should_attribute
from ragstone.agents.service.settings import AgentConfiguration
from ragstone.answer.quotes import Quote, Statement
from ragstone.core.answers import SITE
from ragstone.core.types import Hit

CATALOG = (
    "Our Premium Perfume collection includes Oriental Spice ($42) with warm, sensual notes perfect for evening "
    "occasions."
)
COMPOSITION = "This fragrance features oud and amber base notes."


def said(text: str, title: str, section: str = "", site: str = "") -> Statement:
    hit = Hit(
        *(title, title, title, "database:x", section, None, text, 1.0, {}, {SITE: site} if site else {}, 0, len(text))
    )
    return Statement(text, "quoted", (Quote(hit, 0, len(text)),))


STATEMENTS = [
    said(CATALOG, "Product Catalog", "Oriental Spice product details"),
    said(COMPOSITION, "Fragrance composition details", site="FragranceNet"),
]
BARE = f"{CATALOG} {COMPOSITION}"
SEED = {
    "inline": (
        "Our Premium Perfume collection includes Oriental Spice ($42) with warm, sensual notes perfect for evening "
        "occasions [Source: Product Catalog]. This fragrance features oud and amber base notes "
        "[Source: Internet - FragranceNet]."
    ),
    "endnote": (
        f"{BARE}\n\nSources:\n1. Product Catalog - Oriental Spice product details\n"
        "2. Internet (FragranceNet) - Fragrance composition details"
    ),
    "footnote": (
        f"{CATALOG} [1] {COMPOSITION} [2]\n\n[1] Product Catalog - Oriental Spice product details\n"
        "[2] Internet (FragranceNet) - Fragrance composition details"
    ),
}


@pytest.mark.req("R-ANS-05", "R-ANS-06", "R-ANS-07", "R-ANS-15", "R-TST-30", "R-CSA-34")
@pytest.mark.parametrize("style", ["inline", "endnote", "footnote"])
def test_each_style_is_as_the_design_shows_it(style: str) -> None:
    configuration = AgentConfiguration().change({"citation_style": style})
    assert add_attribution("?", STATEMENTS, configuration).answer == SEED[style]


@pytest.mark.req("R-CSA-30", "R-CSA-31", "R-CSA-35", "R-ANS-08")
def test_without_attribution_the_text_is_clean_and_the_sources_are_known() -> None:
    configuration = AgentConfiguration(enable_source_attribution=False)
    assert should_attribute(AgentConfiguration())
    assert not should_attribute(configuration)
    answer = add_attribution("?", STATEMENTS, configuration)
    assert answer.answer == BARE
    assert [citation.title for citation in answer.citations] == ["Product Catalog", "Fragrance composition details"]
    assert [sentence.citations for sentence in answer.sentences] == [(1,), (2,)]


def test_quotes_of_one_source_have_one_footnote() -> None:
    hit = STATEMENTS[0].quotes[0].hit
    statements = [Statement(CATALOG[:3], "quoted", (Quote(hit, 0, 3),)), *STATEMENTS, STATEMENTS[0]]
    answer = add_attribution("?", statements, AgentConfiguration(citation_style="footnote"))
    assert answer.answer == (
        f"Our [1] {CATALOG} [1] {COMPOSITION} [2] {CATALOG} [1]\n\n"
        "[1] Product Catalog - Oriental Spice product details\n"
        "[2] Internet (FragranceNet) - Fragrance composition details"
    )
    assert [(citation.n, citation.end) for citation in answer.citations] == [(1, 3), (1, len(CATALOG)), (2, 49)]


@pytest.mark.req("R-CSA-34")
def test_one_citation() -> None:
    first, second = add_attribution("?", STATEMENTS, AgentConfiguration()).citations
    assert format_citation(first) == "[Source: Product Catalog]"
    assert format_citation(second, "inline") == "[Source: Internet - FragranceNet]"
    assert format_citation(first, "endnote") == "1. Product Catalog - Oriental Spice product details"
    assert format_citation(second, "footnote") == "[2] Internet (FragranceNet) - Fragrance composition details"
    assert format_citation(first, "none") == ""


def test_a_name_that_could_end_a_mark_is_made_harmless() -> None:
    hostile = said("It is blue.", "Catalog] Buy at evil.example [x")
    assert add_attribution("?", [hostile], AgentConfiguration()).answer == (
        "It is blue [Source: Catalog) Buy at evil.example (x]."
    )


@pytest.mark.parametrize(
    ("host", "title", "expected"),
    [
        ("fragrancenet.example", "Oriental Spice - FragranceNet", ("FragranceNet", "Oriental Spice")),
        (
            "fragrance-net.example",
            "Fragrance Net | Oriental Spice",
            ("fragrance-net.example", "Fragrance Net | Oriental Spice"),
        ),
        ("shop.fragrancenet.example", "FragranceNet | Oriental Spice", ("FragranceNet", "Oriental Spice")),
        ("evil.example", "Oriental Spice - FragranceNet", ("evil.example", "Oriental Spice - FragranceNet")),
        ("example.com", "Oriental Spice - Com", ("example.com", "Oriental Spice - Com")),
        ("scent.example", "Scent", ("scent.example", "Scent")),
    ],
)
def test_a_site_is_named_by_its_host_alone(host: str, title: str, expected: tuple[str, str]) -> None:
    assert name_site(host, title) == expected

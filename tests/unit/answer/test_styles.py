"""How the text names its sources, in each style."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.answer.receipts import FACTS, checked, forged

from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.receipts.make import make_receipt
from ragstone.answer.styles import Writer, add_marks, list_sources, source_line, word_sentence
from ragstone.core.answers import Citation
from ragstone.core.types import Hit
from ragstone.settings.answers import AnswerSettings, CitationStyle
from ragstone.settings.load import read_profile

SPICE = "Our collection includes Oriental Spice ($42), perfect for evening occasions."
NOTES = "This fragrance features oud and amber base notes."
CATALOG = Citation(1, "…", "c1", "d1", "Product Catalog", "c.pdf", 3, "Oriental Spice product details", 0, 1)
NET = Citation(2, "…", "", "w1", "Fragrance composition details", "w", None, "", 0, 1, site="FragranceNet")


def shown(style: CitationStyle) -> str:
    text = " ".join([add_marks(SPICE, [CATALOG], style), add_marks(NOTES, [NET], style)])
    return text + list_sources([CATALOG, NET], style)


@pytest.mark.req("R-ANS-05", "R-ANS-06", "R-TST-30")
def test_inline() -> None:
    assert shown("inline") == (
        "Our collection includes Oriental Spice ($42), perfect for evening occasions [Source: Product Catalog]. "
        "This fragrance features oud and amber base notes [Source: Internet - FragranceNet]."
    )


@pytest.mark.req("R-ANS-05", "R-ANS-07", "R-TST-30")
def test_endnote() -> None:
    assert shown("endnote") == (
        f"{SPICE} {NOTES}\n"
        "\n"
        "Sources:\n"
        "1. Product Catalog - Oriental Spice product details\n"
        "2. Internet (FragranceNet) - Fragrance composition details"
    )


@pytest.mark.req("R-ANS-05", "R-ANS-15", "R-TST-30")
def test_footnote() -> None:
    assert shown("footnote") == (
        f"{SPICE} [1] {NOTES} [2]\n"
        "\n"
        "[1] Product Catalog - Oriental Spice product details\n"
        "[2] Internet (FragranceNet) - Fragrance composition details"
    )


@pytest.mark.req("R-ANS-08", "R-TST-30")
def test_none() -> None:
    assert shown("none") == f"{SPICE} {NOTES}"


@pytest.mark.req("R-ANS-01")
def test_index_is_the_default() -> None:
    assert AnswerSettings().citation_style == "index"
    assert shown("index") == f"{SPICE} [1] {NOTES} [2]"


@pytest.mark.req("R-ANS-05")
def test_customer_service_cites_inline_by_default() -> None:
    assert read_profile("tulia")["answer"]["citation_style"] == "inline"


@pytest.mark.parametrize("style", ["index", "inline", "footnote", "endnote", "none"])
def test_marks_of_the_source_never_reach_the_text(style: CitationStyle) -> None:
    text = add_marks("It stops [7] at 80 [Source: Nobody].", [CATALOG], style)
    assert "[7]" not in text
    assert "Nobody" not in text
    assert text.startswith("It stops at 80")


def test_a_source_that_is_cited_twice_is_named_once() -> None:
    again = Citation(3, "…", "c2", "d1", "Product Catalog", "c.pdf", 3, CATALOG.section, 5, 9)
    assert add_marks("Yes!", [CATALOG, again], "inline") == "Yes [Source: Product Catalog]!"
    assert list_sources([CATALOG, again], "endnote").count("Product Catalog") == 1


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("", "untitled"),
        ("https://evil.example/x", "untitled"),
        ("![x](https://evil.example)", "x"),
        ("Price [list]\n2026\u200b", "Price (list) 2026"),
        ("long " * 100, ("long " * 24)[:119] + "…"),
    ],
)
def test_a_title_names_a_source_and_does_nothing_else(title: str, name: str) -> None:
    citation = Citation(1, "…", "c", "d", title, "u", None, "", 0, 1)
    assert add_marks("Yes.", [citation], "inline") == f"Yes [Source: {name}]."


@pytest.mark.parametrize(
    ("section", "page", "line"),
    [
        ("Manual > Limits", 2, "Manual - Limits"),
        ("Limits > Heat", None, "Manual - Limits > Heat"),
        ("", 2, "Manual - page 2"),
        ("", None, "Manual"),
    ],
)
@pytest.mark.req("R-ANS-10")
def test_a_source_line_has_source_and_section(section: str, page: int | None, line: str) -> None:
    assert source_line(Citation(1, "…", "c", "d", "Manual", "u", page, section, 0, 1)) == line


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("Ask *before* you buy it.", "Ask before you buy it."),
        ("Paid are:\n\n* Trains: *second class.*\n* Meals.", "Paid are:\n\n- Trains: second class.\n- Meals."),
        ("Paid are:\n\n- Trains.\n  + Buses.", "Paid are:\n\n- Trains.\n  - Buses."),
        ("It takes *args and **kwargs* as they come.", "It takes *args and **kwargs* as they come."),
        ("It is 2 * 3 * 4, or `*all*` of *.py and *.txt.", "It is 2 * 3 * 4, or `*all*` of *.py and *.txt."),
    ],
)
def test_asterisks_of_markdown_are_not_said(quote: str, said: str) -> None:
    assert word_sentence(quote, "quoted", ()) == said
    assert word_sentence(quote, "supported", ()) == quote


async def test_the_quote_keeps_its_asterisks_and_its_place(make_hit: Callable[..., Hit]) -> None:
    text = "Ask first. Ask your manager *before* you buy it."
    writer = Writer()
    writer.add(Statement(text[11:], "quoted", (Quote(make_hit(text), 11, len(text)),)))
    answer = writer.finish("When do I ask?")
    [cited], [sentence] = answer.citations, answer.sentences
    assert answer.answer == "Ask your manager before you buy it. [1]"
    assert text[cited.start : cited.end] == cited.quote == sentence.text
    made = make_receipt(answer, **FACTS)
    assert (await checked(made, doc=text)).holds
    assert (await checked(forged(made, answer=f"{text[11:]} [1]"), doc=text)).holds, "as earlier versions wrote it"

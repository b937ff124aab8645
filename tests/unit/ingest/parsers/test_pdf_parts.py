"""A long PDF read in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.parsers.pdf.parser import parse_pdf

MakePdf = Callable[..., bytes]


def numbered(page: Any, pages: int) -> None:
    for number in range(1, pages + 1):
        if number != 5:
            page.drawString(72, 700, f"Sentence {number} stands alone on its page.")
        page.showPage()


@pytest.mark.req("R-EXT-15")
def test_the_parts_make_the_whole_and_say_where_to_go_on(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: numbered(page, 1000))
    seen: list[tuple[int | None, str]] = []
    first: int | None = 1
    while first is not None:
        parsed = parse_pdf(content, "a.pdf", ParseOptions(first_page=first, window=300))
        assert parsed == parse_pdf(content, "a.pdf", ParseOptions(first_page=first, window=300))
        assert parsed.metadata["pages"] == 1000
        seen += [(block.page, parsed.text[block.start : block.end]) for block in parsed.blocks]
        first = parsed.next_page
    assert seen == [
        (number, f"Sentence {number} stands alone on its page.") for number in range(1, 1001) if number != 5
    ]


@pytest.mark.parametrize(
    ("first", "window", "pages", "next_page"),
    [
        (1, 0, [1, 2, 3, 4, 6], None),
        (1, 2, [1, 2], 3),
        (3, 2, [3, 4], 5),
        (6, 2, [6], None),
        (1, 6, [1, 2, 3, 4, 6], None),
    ],
)
def test_a_part_has_the_pages_that_were_asked_for(
    make_pdf: MakePdf, first: int, window: int, pages: list[int], next_page: int | None
) -> None:
    content = make_pdf(lambda page: numbered(page, 6))
    parsed = parse_pdf(content, "a.pdf", ParseOptions(first_page=first, window=window))
    assert [block.page for block in parsed.blocks] == pages
    assert parsed.next_page == next_page


def test_a_part_without_text_is_no_failure(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: numbered(page, 6))
    parsed = parse_pdf(content, "a.pdf", ParseOptions(first_page=5, window=1))
    assert (parsed.text, parsed.blocks, parsed.next_page) == ("", (), 6)


def test_a_page_that_is_not_there_is_a_typed_error(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: numbered(page, 6))
    with pytest.raises(ParseError, match=r"a\.pdf has 6 pages; there is no page 7"):
        parse_pdf(content, "a.pdf", ParseOptions(first_page=7, window=2))

"""The names of a table's columns are found by their shape, whatever stands above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragstone.ingest.parsers.draft import Draft
from ragstone.ingest.parsers.office.xlsx import parse_xlsx
from ragstone.ingest.parsers.sheets import add_named_sheet
from ragstone.ingest.parsers.text.structured import parse_csv

NAMES = ["Harbour", "Berths", "Fee", "Master"]
BODY = [["Ansa", "110", "20.50", "Ola"], ["Brevik", "120", "21.50", "Kari"]]
TABLE = "| Harbour | Berths | Fee | Master |\n| --- | --- | --- | --- |\n| Ansa | 110 | 20.50 | Ola |"


def blocks(rows: list[list[str]]) -> list[tuple[str, str]]:
    draft = Draft("a.xlsx")
    add_named_sheet(draft, "Sheet", rows)
    parsed = draft.finish("text/plain")
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks][1:]


def headers(rows: list[list[str]]) -> list[str]:
    return [text.split("\n")[0] for kind, text in blocks(rows) if kind == "table"]


@pytest.mark.parametrize(
    ("above", "notes"),
    [
        ([["Harbours of the coast"]], ["Harbours of the coast"]),
        ([["", "Harbours of the coast", "", ""], ["as of 2026-01-01"]], ["Harbours of the coast", "as of 2026-01-01"]),
        ([["Printed:", "2026-01-01"], ["By:", "Ola"]], ["Printed: 2026-01-01", "By: Ola"]),
        ([["Harbours of 2026"], [], ["All fees per night."], []], ["Harbours of 2026", "All fees per night."]),
    ],
)
def test_what_stands_above_a_table_is_no_header(above: list[list[str]], notes: list[str]) -> None:
    found = blocks([*above, NAMES, *BODY])
    assert [text for kind, text in found if kind == "paragraph"] == notes
    assert found[-1][1].startswith(TABLE)
    text = parse_csv("\n".join(",".join(row) for row in [*above, NAMES, *BODY]).encode(), "a.csv").text
    assert text.startswith("\n\n".join(notes))
    assert TABLE in text


@pytest.mark.parametrize(
    ("upper", "lower", "names"),
    [
        (["Harbour", "Fee", "", "Master"], ["", "Day", "Night", ""], "| Harbour | Fee Day | Fee Night | Master |"),
        (["", "Fee", "", ""], ["Harbour", "Day", "Night", "Week"], "| Harbour | Fee Day | Fee Night | Fee Week |"),
        (["", "Visitors", "", ""], ["Harbour", "2024", "2025", "2026"],
         "| Harbour | Visitors 2024 | Visitors 2025 | Visitors 2026 |"),
    ],
)  # fmt: skip
def test_two_rows_of_names_are_one_header(upper: list[str], lower: list[str], names: str) -> None:
    rows = [["Ansa", "110", "20.50", "31"], ["Brevik", "120", "21.50", "32"]]
    assert headers([["All harbours"], upper, lower, *rows]) == [names]
    assert names in parse_csv("\n".join(";".join(row) for row in [upper, lower, *rows]).encode(), "a.csv").text


def test_a_title_over_the_whole_table_is_no_group() -> None:
    assert headers([["Fees", "", "", ""], NAMES, *BODY]) == ["| Harbour | Berths | Fee | Master |"]


def test_a_first_row_of_words_below_the_names_is_a_row() -> None:
    rows = [["Harbour", "Open", "Fee"], ["Ansa", "yes", "free"], ["Brevik", "no", "20"]]
    assert headers(rows) == ["| Harbour | Open | Fee |"]
    assert "| Ansa | yes | free |" in blocks(rows)[0][1]


def test_rows_go_on_below_an_empty_row_and_totals_stay_under_their_names() -> None:
    found = blocks([NAMES, *BODY, [], ["Corvo", "130", "22.50", "Per"], ["", "", "", ""], ["Total", "360", "", ""]])
    assert [text.split("\n")[0] for _, text in found] == ["| Harbour | Berths | Fee | Master |"] * 3
    assert found[-1][1].endswith("| Total | 360 |  |  |")


def test_another_table_below_has_names_of_its_own() -> None:
    assert headers([NAMES, *BODY, [], ["Ship", "Length"], ["Eider", "31 m"]]) == [
        "| Harbour | Berths | Fee | Master |",
        "| Ship | Length |",
    ]


def test_a_workbook_shows_it_too(make_xlsx: Callable[[Callable[[Any], None]], bytes]) -> None:
    def write(book: Any) -> None:
        for row in (["Harbours 2026"], ["Printed", "2026-01-01"], NAMES, ["Ansa", 110, 20.5, "Ola"]):
            book.active.append(row)
        book.active.merge_cells("A1:D1")

    text = parse_xlsx(make_xlsx(write), "a.xlsx").text
    assert text == (
        "Sheet\n\nHarbours 2026\n\nPrinted 2026-01-01\n\n"
        "| Harbour | Berths | Fee | Master |\n| --- | --- | --- | --- |\n| Ansa | 110 | 20.5 | Ola |"
    )


def test_a_sum_under_its_column_alone_stays_in_the_table() -> None:
    assert blocks([["", *NAMES], *([["", *row] for row in BODY]), [], ["", "", "230"]])[-1][1].endswith(
        "|  | 230 |  |  |"
    )


def test_cells_merged_downwards_say_the_same_in_every_row(make_xlsx: Callable[[Callable[[Any], None]], bytes]) -> None:
    def write(book: Any) -> None:
        sheet = book.active
        for row in (
            ["All harbours"],
            [],
            ["Coast", "Harbour", "Fee", None],
            [None, None, "Day", "Night"],
            ["North", "Ansa", 20, 31],
            [None, "Brevik", 21, 32],
            ["South", "Corvo", 22, 33],
        ):
            sheet.append(row)
        for area in ("A1:D2", "A3:A4", "B3:B4", "C3:D3", "A5:A6"):
            sheet.merge_cells(area)

    assert parse_xlsx(make_xlsx(write), "a.xlsx").text == (
        "Sheet\n\nAll harbours\n\n| Coast | Harbour | Fee Day | Fee Night |\n| --- | --- | --- | --- |\n"
        "| North | Ansa | 20 | 31 |\n| North | Brevik | 21 | 32 |\n| South | Corvo | 22 | 33 |"
    )

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.text.structured import LINES_PER_ROW, parse_csv

TABLE = "| route | price |\n| --- | --- |\n| Sula, north | 12,50 |"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('route,price\n"Sula, north","12,50"\n', "a.csv"),
        ("route;price\r\nSula, north;12,50\r\n", "a.csv"),
        ("route\tprice\nSula, north\t12,50\n", "a.csv"),
        ("route\tprice\nSula, north\t12,50\n", "a.tsv"),
        ("route|price\nSula, north|12,50\n", "a.csv"),
        ("sep=;\nroute;price\nSula, north;12,50\n", "a.csv"),
        ('"route";"price"\n\n"Sula, north";"12,50"\n', "a.csv"),
    ],
)
def test_the_delimiter_is_found(content: str, name: str) -> None:
    parsed = parse_csv(content.encode(), name)
    assert parsed.text == TABLE
    assert [block.kind for block in parsed.blocks] == ["table"]


def test_old_encodings_are_read() -> None:
    parsed = parse_csv("Straße;Größe\nÖlweg;12\n".encode("cp1252"), "a.csv")
    assert parsed.text == "| Straße | Größe |\n| --- | --- |\n| Ölweg | 12 |"
    assert parsed.metadata == {"encoding": "cp1252"}


def test_a_cell_over_several_lines_is_one_cell() -> None:
    parsed = parse_csv(b'a,b\n"one\ntwo ""three""",2\n', "a.csv")
    assert parsed.text == '| a | b |\n| --- | --- |\n| one two "three" | 2 |'


def test_a_quotation_mark_that_is_never_closed_swallows_nothing() -> None:
    rows = [f"{number},word" for number in range(LINES_PER_ROW + 5)]
    parsed = parse_csv("\n".join(["id,text", '0,"open', *rows]).encode(), "a.csv")
    assert '| 0 | "open |\n| 0 | word |' in parsed.text
    assert f"| {LINES_PER_ROW + 4} | word |" in parsed.text
    assert parsed.warnings == ("a quotation mark was never closed; all of them were read as text",)


def test_one_column_is_a_table_too() -> None:
    assert parse_csv(b"name\nAnn\n", "a.csv").text == "| name |\n| --- |\n| Ann |"


@given(st.text(alphabet='ab,;\t|"\n ', min_size=1))
def test_any_table_gives_sound_blocks_or_a_typed_error(text: str) -> None:
    try:
        parsed = parse_csv(text.encode(), "a.csv")
    except ParseError:
        return
    assert broken_rules(parsed) == []

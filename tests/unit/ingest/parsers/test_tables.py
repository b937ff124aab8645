from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragstone.ingest.parsers.draft import Draft, broken_rules
from ragstone.ingest.parsers.tables import GROUP_CHARS, add_row_groups, markdown_table


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([["a", "b"], ["1", "2"]], "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ([["a"], ["1", "2"]], "| a |  |\n| --- | --- |\n| 1 | 2 |"),
        ([["a|b", "c\nd"]], "| a\\|b | c d |\n| --- | --- |"),
        ([["", ""], ["a", "b"], [], ["1", ""]], "| a | b |\n| --- | --- |\n| 1 |  |"),
        ([["", ""]], ""),
        (
            [["F1", "Show what the keys do"], ["F2", "Save the game for later"], ["F3", "Load"]],
            "|  |  |\n| --- | --- |\n| F1 | Show what the keys do |\n| F2 | Save the game for later |\n| F3 | Load |",
        ),
        (
            [["Key", "What it does in the game"], ["F1", "Help"], ["F2", "Load it"]],
            "| Key | What it does in the game |\n| --- | --- |\n| F1 | Help |\n| F2 | Load it |",
        ),
        ([], ""),
    ],
)
def test_rows_become_a_markdown_table(rows: list[list[str]], text: str) -> None:
    assert markdown_table(rows) == text


@given(st.lists(st.lists(st.text(min_size=1, alphabet="ab|\\\n`*"), min_size=1, max_size=4), min_size=1, max_size=4))
def test_no_cell_breaks_out_of_its_row(rows: list[list[str]]) -> None:
    text = markdown_table(rows, has_header=True)
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert sum(token.type == "tr_open" for token in tokens) == len(filled)


def test_row_groups_repeat_the_header_and_lose_no_row() -> None:
    draft = Draft("a.csv")
    rows = [[f"row {number}", "x" * 90] for number in range(40)]
    add_row_groups(draft, [["name", "value"], *rows], page=3)
    parsed = draft.finish("text/csv")
    tables = [parsed.text[block.start : block.end].split("\n") for block in parsed.blocks]
    assert {(block.kind, block.page) for block in parsed.blocks} == {("table", 3)}
    assert len(tables) > 3
    assert all(table[:2] == ["| name | value |", "| --- | --- |"] for table in tables)
    assert all(sum(map(len, table)) <= GROUP_CHARS + 200 for table in tables)
    assert [line for table in tables for line in table[2:]] == [f"| {name} | {value} |" for name, value in rows]
    assert broken_rules(parsed) == []


def test_a_long_header_does_not_multiply_the_file() -> None:
    draft = Draft("a.csv")
    rows = [["h" * 20] * 500, *([["1"] * 500] * 50)]
    add_row_groups(draft, rows)
    size = sum(len(cell) + 3 for row in rows for cell in row)
    assert len(draft.finish("text/csv").text) < 3 * size

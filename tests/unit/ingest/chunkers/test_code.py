"""The code strategy: whole functions under their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.kinds import CodeChunker, common_path
from ragstone.ingest.parsers.code import parse_code
from ragstone.testing.suites.chunkers import document_of

SOURCE = '''import os
import sys

LIMIT = 3


class Harbour:
    """Where ships are."""

    def enter(self, ship):
        ship.slow_down()
        self.ships.append(ship)
        return self.berth_of(ship)

    def leave(self, ship):
        self.ships.remove(ship)
        ship.speed_up()
        return None


def tide(hour):
    return LIMIT * hour
'''


def parsed(source: str = SOURCE, name: str = "harbour.py") -> Parsed:
    return replace(parse_code(source.encode(), name), title=name)


def chunked(document: Parsed, size: int, overlap: int = 0, min_size: int = 1, **options: Any) -> list[Chunk]:
    return CodeChunker(ChunkLimits(WordTokenizer(), size, overlap), min_size, **options).chunk(document)


@pytest.mark.req("R-CHK-10")
def test_a_function_is_a_chunk_under_its_name() -> None:
    chunks = chunked(parsed(), 60)
    assert [(chunk.section, chunk.text.split("\n")[0]) for chunk in chunks] == [
        ((), "import os"),
        ((), "LIMIT = 3"),
        (("Harbour",), "class Harbour:"),
        (("Harbour", "enter"), "    def enter(self, ship):"),
        (("Harbour", "leave"), "    def leave(self, ship):"),
        (("tide",), "def tide(hour):"),
    ]
    assert chunks[3].context == "# harbour.py · Harbour.enter\n\n"
    assert chunks[0].context == "# harbour.py\n\n"


@pytest.mark.req("R-CHK-10")
def test_small_neighbours_share_a_chunk_but_a_class_shares_with_none() -> None:
    chunks = chunked(parsed(), 100, min_size=30)
    assert [(chunk.section, chunk.context) for chunk in chunks] == [
        ((), "# harbour.py\n\n"),
        (("Harbour",), "# harbour.py · Harbour, Harbour.enter, Harbour.leave\n\n"),
        (("tide",), "# harbour.py · tide\n\n"),
    ]
    assert chunks[0].text == "import os\nimport sys\n\nLIMIT = 3"


@pytest.mark.req("R-CHK-10")
def test_only_a_function_larger_than_a_chunk_is_cut_and_at_lines() -> None:
    body = "\n".join(f'    say("Step {number}. It is done.")' for number in range(20))
    source = f"def small():\n    return 1\n\n\ndef large():\n{body}\n\n    return 2\n"
    chunks = chunked(parsed(source), 50, 12)
    assert [chunk.section for chunk in chunks] == [("small",), *[("large",)] * (len(chunks) - 1)]
    assert len(chunks) > 4
    lines = set(source.split("\n"))
    assert all(set(chunk.text.split("\n")) <= lines for chunk in chunks)
    assert all(chunk.context == "# harbour.py · large\n\n" for chunk in chunks[1:])


def test_a_cut_falls_on_a_blank_line_where_there_is_one() -> None:
    source = "def f():\n    a = 1\n    b = 2\n\n    c = 3\n    d = 4\n    e = 5\n"
    assert [chunk.text for chunk in chunked(parsed(source), 16)] == [
        "def f():\n    a = 1\n    b = 2",
        "    c = 3\n    d = 4\n    e = 5",
    ]


def test_context_can_be_turned_off() -> None:
    chunks = chunked(parsed(), 60, context=False)
    assert {chunk.context for chunk in chunks} == {""}
    assert chunks[-1].section == ("tide",)


def test_a_long_list_of_names_is_cut_short() -> None:
    source = "\n".join(f"def f{number}(): pass" for number in range(12))
    [chunk] = chunked(parsed(source), 400, min_size=100)
    assert chunk.context == "# harbour.py · f0, f1, f2, f3, f4, f5, f6, f7, …\n\n"


def test_text_that_is_no_code_is_packed_as_blocks_under_its_headings() -> None:
    document = document_of(
        ("heading", "# A"), ("paragraph", "One two."), ("heading", "# B"), ("paragraph", "Three."), title="T"
    )
    assert [(chunk.text, chunk.section, chunk.context) for chunk in chunked(document, 60, min_size=50)] == [
        ("# A\n\nOne two.", ("A",), "# T\n## A\n\n"),
        ("# B\n\nThree.", ("B",), "# T\n## B\n\n"),
    ]


@pytest.mark.parametrize(
    "symbols", [None, "Harbour", 7, {"a": 1}, [[]], [["0", "A"]], [[0, 1]], [[0, ["A"]]], [None], [[1.5, "A"]]]
)
def test_metadata_of_that_name_that_means_something_else_is_not_believed(symbols: object) -> None:
    document = replace(document_of(("code", "a = 1")), metadata={"symbols": symbols})
    assert [chunk.section for chunk in chunked(document, 60)] == [()]


@pytest.mark.parametrize(
    ("paths", "shared"),
    [
        ([], ()),
        ([()], ()),
        ([(), ("a",)], ("a",)),
        ([("a", "b"), ("a", "c")], ("a",)),
        ([("a",), ("a", "b")], ("a",)),
        ([("a",), ("b",)], ()),
    ],
)
def test_what_paths_have_in_common(paths: list[tuple[str, ...]], shared: tuple[str, ...]) -> None:
    assert common_path(paths) == shared

"""Tables: whole where they fit, in rows with their head as context where they do not."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.ingest.chunkers.models import by_words

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.core.types import Block
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.chunkers.packing import find_table_header
from ragstone.settings.tree import ChunkingSettings
from ragstone.testing.suites.chunkers import document_of, table_of

KEEPING = ["markdown", "paragraph", "recursive", "semantic", "hybrid", "code"]
PROSE = " ".join(f"Sentence {number} says a thing." for number in range(6))


def build(strategy: Any, size: int, overlap: int = 0, **options: Any) -> Chunker:
    settings = ChunkingSettings(strategy=strategy, size=size, overlap=overlap, **options)
    return build_chunker(settings, WordTokenizer(), by_words)


@pytest.mark.parametrize("strategy", KEEPING)
@pytest.mark.parametrize("size", range(50, 90, 3))
@pytest.mark.parametrize("overlap", [0, 20])
def test_a_table_that_fits_is_in_one_chunk_and_in_no_other_by_half(strategy: str, size: int, overlap: int) -> None:
    table = table_of(3)
    document = document_of(("paragraph", PROSE), ("table", table), ("paragraph", PROSE))
    start = document.text.index(table)
    end = start + len(table)
    chunks = build(strategy, size, overlap).chunk(document)
    touching = [chunk for chunk in chunks if chunk.start < end and start < chunk.end]
    assert touching
    assert all(chunk.start <= start and end <= chunk.end for chunk in touching)


@pytest.mark.parametrize("strategy", KEEPING)
def test_a_larger_one_is_cut_between_rows_and_its_parts_know_the_columns(strategy: str) -> None:
    document = document_of(("paragraph", "Before it."), ("table", table_of(12)), ("paragraph", "After it."))
    chunks = [chunk for chunk in build(strategy, 40).chunk(document) if "part" in chunk.text]
    lines = table_of(12).split("\n")
    assert len(chunks) > 2
    assert [line for chunk in chunks for line in chunk.text.split("\n")] == lines
    assert [chunk.context for chunk in chunks] == ["", *["| name | price |\n|---|---|\n"] * (len(chunks) - 1)]


@pytest.mark.parametrize("strategy", ["markdown", "recursive"])
def test_the_head_stands_behind_title_and_section(strategy: str) -> None:
    document = document_of(("heading", "# Prices"), ("table", table_of(12)), title="Shop")
    chunks = build(strategy, 40, 9).chunk(document)
    assert chunks[-1].context == "# Shop\n## Prices\n\n| name | price |\n|---|---|\n"
    assert chunks[-1].text.startswith("| part ")


def test_rows_are_repeated_whole() -> None:
    document = document_of(("table", "\n".join(f"name {row} | It has. Two stops." for row in range(12))))
    chunks = build("markdown", 30, 12).chunk(document)
    assert all(chunk.text.startswith("name ") for chunk in chunks)
    assert all(after.start < before.end for before, after in pairwise(chunks))


def test_no_context_means_no_head_either() -> None:
    chunks = build("markdown", 40, context=False).chunk(document_of(("table", table_of(12))))
    assert {chunk.context for chunk in chunks} == {""}


@pytest.mark.parametrize(
    ("table", "header"),
    [
        ("a | b\n1 | 2", "a | b"),
        ("| a | b |\n| :-- | --- |\n| 1 | 2 |", "| a | b |\n| :-- | --- |"),
        ("Prices of 2024\na | b\n1 | 2", "Prices of 2024\na | b"),
        ("a;b\n1;2", "a;b"),
        ("only", "only"),
        ("| a |\n| - 1 |", "| a |"),
        (f"{'wide ' * 200}| b\n1 | 2", ("wide " * 200)[:400]),
    ],
)
def test_what_the_head_of_a_table_is(table: str, header: str) -> None:
    assert find_table_header(table, Block("table", 0, len(table)))[1] == header


def test_a_part_of_the_head_does_not_get_it_once_more() -> None:
    document = document_of(("table", f"{'name ' * 30}| price\nhook | 2 in all of the shops here now"))
    chunks = build("markdown", 10).chunk(document)
    assert [bool(chunk.context) for chunk in chunks] == [*[False] * (len(chunks) - 1), True]

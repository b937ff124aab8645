"""The recursive strategy: a tree of headings and what stands under them."""

from __future__ import annotations

from typing import Any

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Chunk
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.plain import RecursiveChunker
from ragstone.testing.suites.chunkers import document_of

EXAMPLE = document_of(
    ("heading", "# Introduction"),
    ("paragraph", "Text..."),
    ("heading", "## Background"),
    ("paragraph", "More text..."),
    title="Introduction",
)


def tree(chunks: list[Chunk]) -> list[tuple[str, str, int, int | None]]:
    return [(chunk.kind, chunk.text, chunk.level, chunk.parent) for chunk in chunks]


def chunker(size: int = 100, overlap: int = 0, min_size: int = 0, **options: Any) -> RecursiveChunker:
    return RecursiveChunker(ChunkLimits(WordTokenizer(), size, overlap), min_size, **options)


@pytest.mark.req("R-CHK-06", "R-CHK-07")
def test_the_introduction_and_background_example() -> None:
    assert EXAMPLE.text == "# Introduction\n\nText...\n\n## Background\n\nMore text..."
    assert tree(chunker().chunk(EXAMPLE)) == [
        ("heading", "# Introduction", 1, None),
        ("paragraph", "Text...", 2, 0),
        ("heading", "## Background", 2, 0),
        ("paragraph", "More text...", 3, 2),
    ]


@pytest.mark.req("R-CHK-06")
def test_position_and_section_are_recorded() -> None:
    chunks = chunker().chunk(EXAMPLE)
    assert [chunk.index for chunk in chunks] == [0, 1, 2, 3]
    assert [chunk.section for chunk in chunks] == [(), (), ("Background",), ("Background",)]


def test_siblings_and_leaps_in_depth() -> None:
    document = document_of(
        ("paragraph", "Before."),
        ("heading", "## A"),
        ("heading", "#### B"),
        ("paragraph", "In B."),
        ("heading", "## C"),
        ("paragraph", "In C."),
    )
    assert [(text, level, parent) for _, text, level, parent in tree(chunker().chunk(document))] == [
        ("Before.", 1, None),
        ("## A", 1, None),
        ("#### B", 2, 1),
        ("In B.", 3, 2),
        ("## C", 1, None),
        ("In C.", 2, 4),
    ]


@pytest.mark.req("R-CHK-06")
def test_a_block_that_is_too_large_is_cut_into_paragraphs_then_sentences_then_words() -> None:
    document = document_of(("heading", "# T"), ("paragraph", "One two. Three four.\n\nA b c d e f g h i j k. L m."))
    chunks = chunker(size=8).chunk(document)
    assert tree(chunks) == [
        ("heading", "# T", 1, None),
        ("paragraph", "One two. Three four.", 2, 0),
        ("paragraph", "A b c d e f g h", 2, 0),
        ("paragraph", "i j k. L m.", 2, 0),
    ]


def test_small_blocks_of_one_section_are_joined_up_to_the_minimum() -> None:
    document = document_of(
        ("heading", "# T"),
        ("paragraph", "One two three."),
        ("paragraph", "Four five six seven eight nine."),
        ("paragraph", "Ten eleven twelve thirteen fourteen."),
        ("heading", "## U"),
        ("heading", "### V"),
        ("paragraph", "End."),
    )
    assert tree(chunker(size=15, min_size=6).chunk(document)) == [
        ("paragraph", "# T\n\nOne two three.", 1, None),
        ("paragraph", "Four five six seven eight nine.", 2, 0),
        ("paragraph", "Ten eleven twelve thirteen fourteen.", 2, 0),
        ("paragraph", "## U\n\n### V\n\nEnd.", 2, 0),
    ]


def test_a_bare_heading_is_not_joined_with_its_sibling() -> None:
    document = document_of(("heading", "## A"), ("heading", "## B"), ("paragraph", "In B."))
    assert [text for _, text, _, _ in tree(chunker(min_size=50).chunk(document))] == ["## A", "## B\n\nIn B."]


def test_a_cut_block_repeats_its_own_sentences_only() -> None:
    document = document_of(("paragraph", "A b. C d. E f. G h. I j. K l."), ("paragraph", "Other."))
    assert [chunk.text for chunk in chunker(size=9, overlap=3).chunk(document)] == [
        "A b. C d. E f.",
        "E f. G h. I j.",
        "I j. K l.",
        "Other.",
    ]


@pytest.mark.parametrize(
    ("separators", "expected"),
    [(("\n",), ["a b; c d", "e f"]), (("; ",), ["a b;", "c d\ne f"]), ((), ["a b; c", "d\ne f"])],
)
def test_the_separators_decide_where_it_is_cut(separators: tuple[str, ...], expected: list[str]) -> None:
    size = 5 if separators == ("\n",) else 4
    document = document_of(("paragraph", "a b; c d\ne f"))
    assert [chunk.text for chunk in chunker(size=size, separators=separators).chunk(document)] == expected

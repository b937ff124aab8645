"""The Markdown-contextual strategy: sections, and the path that travels with each chunk."""

from __future__ import annotations

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.packing import MarkdownChunker
from ragstone.testing.suites.chunkers import document_of


def chunker(size: int = 100, overlap: int = 0, min_size: int = 0, *, context: bool = True) -> MarkdownChunker:
    return MarkdownChunker(ChunkLimits(WordTokenizer(), size, overlap), min_size, context)


GUIDE = document_of(
    ("heading", "# Guide"),
    ("paragraph", "Welcome."),
    ("heading", "## Modules"),
    ("heading", "### Hooks"),
    ("paragraph", "A hook reacts."),
    ("list", "- one\n- two"),
    ("heading", "## Shop"),
    ("paragraph", "Buy things."),
    title="Guide",
)


@pytest.mark.req("R-CHK-15", "R-EXT-13", "R-TST-09")
def test_title_and_section_path_stand_before_each_chunk() -> None:
    chunks = chunker().chunk(GUIDE)
    assert [chunk.context for chunk in chunks] == [
        "# Guide\n\n",
        "# Guide\n## Modules > Hooks\n\n",
        "# Guide\n## Shop\n\n",
    ]
    assert chunks[1].contextual == (
        "# Guide\n## Modules > Hooks\n\n## Modules\n\n### Hooks\n\nA hook reacts.\n\n- one\n- two"
    )


@pytest.mark.req("R-EXT-12", "R-TST-09")
def test_the_section_path_is_tracked_in_order() -> None:
    chunks = chunker().chunk(GUIDE)
    assert [chunk.section for chunk in chunks] == [(), ("Modules", "Hooks"), ("Shop",)]
    assert [chunk.page for chunk in chunks] == [1, 3, 7]


@pytest.mark.req("R-CHK-18")
def test_no_headings_no_prefix() -> None:
    document = document_of(("paragraph", "Plain."), ("paragraph", "Text."), title="Named")
    assert [(chunk.text, chunk.context) for chunk in chunker().chunk(document)] == [("Plain.\n\nText.", "")]


def test_context_can_be_turned_off() -> None:
    assert [chunk.context for chunk in chunker(context=False).chunk(GUIDE)] == ["", "", ""]


@pytest.mark.parametrize(
    ("title", "section", "context"),
    [
        ("Other", ("Top", "Sub"), "# Other\n## Top > Sub\n\n"),
        ("", ("Top", "Sub"), "## Top > Sub\n\n"),
        ("Top", ("Sub",), "# Top\n## Sub\n\n"),
        ("Two\nlines", ("Top", "Sub"), "# Two lines\n## Top > Sub\n\n"),
    ],
)
def test_the_title_is_named_once(title: str, section: tuple[str, ...], context: str) -> None:
    document = document_of(("heading", "# Top"), ("heading", "## Sub"), ("paragraph", "Text."), title=title)
    [chunk] = chunker().chunk(document)
    assert (chunk.section, chunk.context) == (section, context)


def test_text_before_the_first_heading_belongs_to_no_section() -> None:
    document = document_of(("paragraph", "Before."), ("heading", "# Later"), ("paragraph", "After."))
    assert [(chunk.text, chunk.context) for chunk in chunker().chunk(document)] == [
        ("Before.", ""),
        ("# Later\n\nAfter.", "## Later\n\n"),
    ]


def test_a_section_is_packed_up_to_the_size_and_its_heading_stays_with_the_text() -> None:
    document = document_of(
        ("heading", "# T"), ("paragraph", "A b c."), ("paragraph", "D e f."), ("paragraph", "G h i.")
    )
    assert [chunk.text for chunk in chunker(size=8).chunk(document)] == ["# T\n\nA b c.", "D e f.\n\nG h i."]


def test_a_heading_is_not_left_alone_before_a_full_paragraph() -> None:
    document = document_of(("heading", "# T"), ("paragraph", "A b c. D e f."))
    assert [chunk.text for chunk in chunker(size=8).chunk(document)] == ["# T\n\nA b c.", "D e f."]


@pytest.mark.parametrize(
    ("kind", "text", "pieces"),
    [
        ("code", "  if a:\n    b c d\n    e f g", ["  if a:\n    b c d", "    e f g"]),
        ("table", "a b c d\ne f g h", ["a b c d\ne f g h"]),
        ("table", "a b c d\ne f g h\ni j", ["a b c d\ne f g h", "i j"]),
        ("list", "- a b. C d.\n- e f\n- g", ["- a b. C d.", "- e f\n- g"]),
    ],
)
def test_code_tables_and_lists_are_whole_or_cut_at_lines(kind: BlockKind, text: str, pieces: list[str]) -> None:
    document = document_of((kind, text))
    assert [chunk.text for chunk in chunker(size=8).chunk(document)] == pieces


@pytest.mark.parametrize(
    ("min_size", "texts"),
    [
        (0, ["# A\n\nOne.", "# B\n\nTwo.", "# C\n\nThree four five six seven."]),
        (5, ["# A\n\nOne.\n\n# B\n\nTwo.", "# C\n\nThree four five six seven."]),
    ],
)
def test_tiny_sections_are_joined_only_when_asked(min_size: int, texts: list[str]) -> None:
    document = document_of(
        ("heading", "# A"),
        ("paragraph", "One."),
        ("heading", "# B"),
        ("paragraph", "Two."),
        ("heading", "# C"),
        ("paragraph", "Three four five six seven."),
    )
    assert [chunk.text for chunk in chunker(size=9, min_size=min_size).chunk(document)] == texts


def test_a_heading_at_the_very_end_is_kept() -> None:
    document = document_of(("paragraph", "Text."), ("heading", "# Last"))
    assert [(chunk.kind, chunk.text) for chunk in chunker().chunk(document)] == [
        ("paragraph", "Text."),
        ("heading", "# Last"),
    ]


def test_sections_never_repeat_each_other() -> None:
    document = document_of(
        ("heading", "# A"), ("paragraph", "One two. Three."), ("heading", "# B"), ("paragraph", "Four.")
    )
    assert [chunk.text for chunk in chunker(size=20, overlap=10).chunk(document)] == [
        "# A\n\nOne two. Three.",
        "# B\n\nFour.",
    ]


def test_an_empty_document_has_no_chunks_even_with_a_minimum() -> None:
    assert chunker(min_size=5).chunk(Parsed("", ())) == []

"""The paper strategy: sections, also of text that has lost its headings."""

from __future__ import annotations

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.paper import PaperChunker, add_section_headings
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.text.text import parse_text
from ragstone.testing.suites.chunkers import document_of

FLAT = """Tides of small harbours
A. Author and B. Writer

Abstract
We measured tides. They rise and fall.

1 Introduction
Harbours have tides.
The Results of others differ.

2. Materials and Methods
2.1 Gauges
We used gauges.

2.2 Salt marshes
They are wet.

3 A new model of silt
3.1 Clay

It settles.
RESULTS:
It rose.

DISCUSSION AND CONCLUSIONS
It fell again.

References
1. Smith, A. Tides. 1999.

2. Jones, B. Gauges

4 Ways to Measure a Harbour

Appendix A Tables
More numbers.
"""


def sections(document: Parsed, size: int = 200, overlap: int = 0) -> list[tuple[tuple[str, ...], str]]:
    chunker = PaperChunker(ChunkLimits(WordTokenizer(), size, overlap))
    return [(chunk.section, chunk.text) for chunk in chunker.chunk(document)]


@pytest.mark.req("R-CHK-11")
def test_the_sections_of_flat_text() -> None:
    assert sections(parse_text(FLAT.encode(), "tides.txt")) == [
        ((), "Tides of small harbours\nA. Author and B. Writer"),
        (("Abstract",), "Abstract\nWe measured tides. They rise and fall."),
        (("Introduction",), "1 Introduction\nHarbours have tides.\nThe Results of others differ."),
        (("Materials and Methods", "Gauges"), "2. Materials and Methods\n2.1 Gauges\nWe used gauges."),
        (("Materials and Methods", "Salt marshes"), "2.2 Salt marshes\nThey are wet."),
        (("A new model of silt", "Clay"), "3 A new model of silt\n3.1 Clay\n\nIt settles."),
        (("Results",), "RESULTS:\nIt rose."),
        (("Discussion and conclusions",), "DISCUSSION AND CONCLUSIONS\nIt fell again."),
        (
            ("References",),
            "References\n1. Smith, A. Tides. 1999.\n\n2. Jones, B. Gauges\n\n4 Ways to Measure a Harbour",
        ),
        (("Appendix A Tables",), "Appendix A Tables\nMore numbers."),
    ]


@pytest.mark.req("R-CHK-11")
def test_no_chunk_holds_two_sections_whatever_its_size() -> None:
    document = parse_text(FLAT.encode(), "tides.txt")
    whole = [text for _, text in sections(document)]
    for size in (8, 12, 30):
        assert all(any(text in one for one in whole) for _, text in sections(document, size, 3))


@pytest.mark.req("R-CHK-11")
def test_headings_of_the_document_are_its_sections() -> None:
    document = document_of(
        ("heading", "# Tides"),
        ("heading", "## 1. INTRODUCTION"),
        ("paragraph", "One."),
        ("heading", "## Silt in harbours"),
        ("paragraph", "Two."),
        title="Tides",
    )
    assert [section for section, _ in sections(document)] == [("Introduction",), ("Silt in harbours",)]


def test_lines_join_the_headings_that_are_there_at_their_depth() -> None:
    document = document_of(
        ("heading", "# Tides"),
        ("paragraph", "Abstract—We measured."),
        ("heading", "## Methods"),
        ("paragraph", "Gauges."),
        ("list", "3. Results"),
        ("paragraph", "It rose."),
        title="Tides",
    )
    assert sections(document) == [
        (("Abstract",), "# Tides\n\nAbstract—We measured."),
        (("Methods",), "## Methods\n\nGauges."),
        (("Results",), "3. Results\n\nIt rose."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1. Open the lid\n2. Close the lid",
        "The methods and\nResults\nare good.",
        "Abstract-based reasoning is fine.",
        "Methods are described below.",
        "NOTE TO READERS",
        "2024 Annual Report",
        "results",
        "Introduction " * 20,
    ],
)
def test_other_text_has_no_sections(text: str) -> None:
    assert [section for section, _ in sections(document_of(("paragraph", text)))] == [()]


def test_a_number_that_is_not_next_names_no_section() -> None:
    document = document_of(
        ("paragraph", "Abstract\nShort."),
        ("paragraph", "1 Introduction\nWhy."),
        ("paragraph", "7 Wonders of the harbour"),
        ("paragraph", "Conclusion\nDone."),
    )
    assert [section for section, _ in sections(document)] == [("Abstract",), ("Introduction",), ("Conclusion",)]


@pytest.mark.parametrize("kind", ["code", "table", "quote"])
def test_other_blocks_are_left_alone(kind: BlockKind) -> None:
    document = document_of((kind, "  Abstract\n  Results"))
    assert add_section_headings(document) == document


def test_the_blocks_stay_sound_and_keep_their_page() -> None:
    document = document_of(("paragraph", "Title."), ("paragraph", "One.\nAbstract\nTwo.\n\nResults"))
    found = add_section_headings(document)
    assert broken_rules(found) == []
    assert [(block.kind, block.page) for block in found.blocks] == [
        ("paragraph", 1),
        ("paragraph", 2),
        ("heading", 2),
        ("paragraph", 2),
        ("heading", 2),
    ]

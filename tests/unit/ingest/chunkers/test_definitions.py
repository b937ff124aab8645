"""Terms with their descriptions: whole where they fit, under the name of the term where they do not."""

from __future__ import annotations

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.core.types import Block
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.parsers.definitions import find_term, format_definition
from ragstone.settings.tree import ChunkingSettings
from ragstone.testing.suites.chunkers import document_of

SENTENCES = " ".join(f"Sentence {number} says a thing." for number in range(6))
ENTRIES = [
    format_definition([f"--option-{number}"], [f"Sets {number}. The default is {number}."]) for number in range(9)
]


def build(size: int, overlap: int) -> Chunker:
    return build_chunker(ChunkingSettings(strategy="markdown", size=size, overlap=overlap), WordTokenizer())


@pytest.mark.parametrize("size", range(30, 60, 7))
@pytest.mark.parametrize("overlap", [0, 12])
def test_no_chunk_holds_part_of_an_entry_that_fits(size: int, overlap: int) -> None:
    document = document_of(("paragraph", SENTENCES), *(("list", entry) for entry in ENTRIES))
    chunks = build(size, overlap).chunk(document)
    for entry in ENTRIES:
        start = document.text.index(entry)
        end = start + len(entry)
        touching = [chunk for chunk in chunks if chunk.start < end and start < chunk.end]
        assert touching
        assert all(chunk.start <= start and end <= chunk.end for chunk in touching)


@pytest.mark.parametrize("overlap", [0, 8])
def test_every_part_of_a_long_entry_is_under_its_term(overlap: int) -> None:
    long = format_definition(["wait (integer)"], [SENTENCES, SENTENCES])
    document = document_of(
        ("heading", "# Options"), ("list", ENTRIES[0]), ("list", long), ("list", ENTRIES[1]), title="Boats"
    )
    chunks = build(20, overlap).chunk(document)
    start, end = document.text.index(long), document.text.index(ENTRIES[1])
    inside = [chunk for chunk in chunks if chunk.start < end and start < chunk.end]
    assert len(inside) > 3
    assert {chunk.section for chunk in inside} == {("Options", "wait (integer)")}
    assert all(start <= chunk.start and chunk.end <= end for chunk in inside)
    assert {chunk.context for chunk in inside} == {"# Boats\n## Options > wait (integer)\n\n"}


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("berth\n  Where a boat lies.", "berth"),
        ("- berth\n  Where a boat lies.", ""),
        ("1. berth\n  Where a boat lies.", ""),
        ("The list goes on:\n  with this.", ""),
        ("berth\nnot indented", ""),
        ("berth", ""),
    ],
)
def test_a_term_is_known_by_the_indent_below_it(text: str, term: str) -> None:
    assert find_term(text, Block("list", 0, len(text))) == term
    assert find_term(text, Block("paragraph", 0, len(text))) == ""

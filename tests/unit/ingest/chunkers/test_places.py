"""What a chunk keeps of where its parts stand: the pages that begin inside it, and the head of its table."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ingest.chunkers.models import by_words

from ragstone.core.documents import page_at, page_starts, table_head
from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Chunk, Parsed, TableHead
from ragstone.ingest.chunkers import build_chunker
from ragstone.settings.tree import ChunkingSettings
from ragstone.testing.suites.chunkers import document_of, table_of

STRATEGIES = ["code", "email", "hybrid", "markdown", "paragraph", "recursive", "semantic", "sentence"]
SENTENCES = [f"On page {number} there is one short sentence." for number in range(1, 6)]


def chunked(strategy: Any, document: Parsed, size: int) -> list[Chunk]:
    settings = ChunkingSettings(strategy=strategy, size=size, overlap=0)
    return list(build_chunker(settings, WordTokenizer(), by_words).chunk(document))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [20, 200])
def test_every_block_of_a_chunk_has_its_own_page(strategy: str, size: int) -> None:
    document = document_of(*[("paragraph", sentence) for sentence in SENTENCES])
    for chunk in chunked(strategy, document, size):
        inside = [block for block in document.blocks if chunk.start <= block.start < chunk.end]
        starts = page_starts(chunk.metadata)
        assert [page_at(block.start, chunk.page, starts) for block in inside] == [b.page for b in inside]


@pytest.mark.parametrize("strategy", ["code", "email", "hybrid", "markdown", "paragraph", "sentence"])
def test_pages_that_share_a_chunk_are_kept(strategy: str) -> None:
    document = document_of(*[("paragraph", sentence) for sentence in SENTENCES])
    (chunk,) = chunked(strategy, document, 200)
    assert (chunk.page, [start.page for start in page_starts(chunk.metadata)]) == (1, [2, 3, 4, 5])


@pytest.mark.parametrize("strategy", ["markdown", "paragraph", "recursive", "semantic", "hybrid", "email"])
def test_the_later_chunks_of_a_table_know_its_head_and_where_it_stands(strategy: str) -> None:
    document = document_of(("paragraph", "Before it."), ("table", table_of(12)))
    first, *later = [chunk for chunk in chunked(strategy, document, 40) if "part" in chunk.text]
    head = TableHead(document.text.index("| name"), 2, "| name | price |\n|---|---|")
    assert table_head(first.metadata) is None
    assert [table_head(chunk.metadata) for chunk in later] == [head] * len(later)
    assert document.text[head.start :].startswith(head.text)


def test_a_head_as_long_as_a_chunk_is_not_kept_with_each_of_them() -> None:
    names = " | ".join(f"a rather long name of column {number}" for number in range(80))
    rows = "\n".join("| " + " | ".join(["value"] * 80) + " |" for _ in range(3))
    document = document_of(("table", f"| {names} |\n|{'---|' * 80}\n{rows}"))
    chunks = chunked("markdown", document, 100)
    assert len(chunks) > 2
    assert all(table_head(chunk.metadata) is None for chunk in chunks)

"""What holds for every strategy and every document: exact offsets, nothing lost, limits kept."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ingest.chunkers.models import by_words

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.chunkers.cutting import Ruler
from ragstone.settings.tree import ChunkingSettings, Strategy
from ragstone.testing.suites.chunkers import document_of

WORDS = st.sampled_from(
    [
        *("One", "two.", "Three!", "Abstract", "1", "2.1", "RESULTS", "|", "---", "- item", "def f():", "x" * 40),
        *("漢字。", "👩\u200d👧", "e\u0301", "🇫🇷", "\u0301", "    ", "\n", "\n\n", "On 1 May", "wrote:", ">"),
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join).map(str.strip).filter(bool)
KINDS: st.SearchStrategy[BlockKind] = st.sampled_from(["paragraph", "list", "code", "table", "quote"])
HEADINGS = st.tuples(st.just("heading"), st.integers(1, 6).map(lambda depth: f"{'#' * depth} Part"))
SYMBOLS = st.lists(st.tuples(st.integers(0, 500), st.sampled_from("AB"), st.sampled_from("mn")).map(list))


@st.composite
def documents(draw: st.DrawFn) -> Parsed:
    blocks = draw(st.lists(st.one_of(HEADINGS, st.tuples(KINDS, TEXTS), st.tuples(KINDS, TEXTS)), max_size=8))
    document = document_of(*blocks, title=draw(st.sampled_from(["", "Part", "A title"])))
    return Parsed(document.text, document.blocks, document.title, metadata={"symbols": draw(SYMBOLS)})


@pytest.mark.req("R-CHK-27")
@pytest.mark.parametrize("strategy", get_args(Strategy))
@settings(deadline=None, max_examples=40)
@given(
    document=documents(),
    unit=st.sampled_from(["tokens", "chars"]),
    size=st.integers(8, 80),
    overlap=st.integers(0, 79),
    min_size=st.integers(0, 60),
)
def test_chunks_are_exact_complete_and_within_the_limits(
    strategy: Strategy, document: Parsed, unit: Literal["tokens", "chars"], size: int, overlap: int, min_size: int
) -> None:
    overlap = min(overlap, size - 1)
    chosen = ChunkingSettings(strategy=strategy, unit=unit, size=size, overlap=overlap, min_size=min_size)
    ruler = Ruler(document.text, WordTokenizer(), unit)
    covered = 0
    chunks = build_chunker(chosen, WordTokenizer(), by_words).chunk(document)
    for chunk in chunks:
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert not document.text[covered : chunk.start].strip()
        assert ruler.size(chunk.start, chunk.end) <= size
        covered = chunk.end
    assert not document.text[covered:].strip()
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        assert ruler.size(after.start, before.end) <= overlap

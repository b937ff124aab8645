"""Every strategy × both units against the shipped suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest
from tests.unit.ingest.chunkers.models import by_words

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.core.types import Chunk, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.settings.tree import ChunkingSettings, Strategy
from ragstone.testing.suites.chunkers import ChunkerSuite

CASES = [
    *product(get_args(Strategy), ("tokens", "chars"), ("0",)),
    *product(("markdown", "recursive", "semantic", "hybrid", "code"), ("tokens", "chars"), ("30",)),
]


class TestChunkers(ChunkerSuite):
    strategy: Any
    unit: Any
    min_size: int

    @pytest.fixture(autouse=True, params=CASES, ids="-".join)
    def choose(self, request: pytest.FixtureRequest) -> None:
        self.strategy, self.unit, min_size = request.param
        self.min_size = int(min_size)

    def make_chunker(self, size: int, overlap: int) -> Chunker:
        settings = ChunkingSettings(
            strategy=self.strategy, unit=self.unit, size=size, overlap=overlap, min_size=self.min_size
        )
        return build_chunker(settings, WordTokenizer(), by_words)

    def measure(self, text: str) -> int:
        return len(text) if self.unit == "chars" else len(WordTokenizer().offsets(text))


class Broken:
    """A chunker with one fault."""

    fingerprint = "broken"

    def __init__(self, fault: Callable[[list[Chunk]], list[Chunk]], size: int, overlap: int) -> None:
        self._fault = fault
        self._whole = build_chunker(
            ChunkingSettings(strategy="sliding_window", unit="chars", size=size, overlap=overlap), WordTokenizer()
        )

    def chunk(self, document: Parsed) -> list[Chunk]:
        return self._fault(self._whole.chunk(document))


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        (lambda chunks: chunks[:-1], "test_nothing_is_lost"),
        (lambda chunks: chunks[::-1], "test_chunks_are_numbered_and_in_order"),
        (
            lambda chunks: [replace(chunk, start=chunk.start + 1) for chunk in chunks],
            "test_text_is_what_stands_at_the_offsets",
        ),
        (
            lambda chunks: [replace(chunk, text=chunk.text + " and so on" * 9) for chunk in chunks],
            "test_no_chunk_is_larger_than_the_size",
        ),
        (
            lambda chunks: [replace(chunk, start=max(0, chunk.start - 9)) for chunk in chunks],
            "test_no_chunk_repeats_more_than_the_overlap",
        ),
        (
            lambda chunks: [replace(chunk, tokens=0) for chunk in chunks],
            "test_every_chunk_counts_its_tokens_and_knows_its_page",
        ),
        (
            lambda chunks: [replace(chunk, parent=chunk.index) for chunk in chunks],
            "test_a_parent_comes_before_its_children_and_stands_above_them",
        ),
        (
            lambda chunks: [replace(chunk, metadata={"path": ("a", "b")}) for chunk in chunks],
            "test_metadata_can_be_stored",
        ),
        (lambda chunks: chunks, "test_the_fingerprint_tells_parameters_apart"),
        (lambda chunks: chunks * 2, "test_a_very_short_document_is_one_chunk"),
    ],
)
def test_the_suite_finds_a_broken_chunker(fault: Callable[[list[Chunk]], list[Chunk]], caught_by: str) -> None:
    class Suite(ChunkerSuite):
        def make_chunker(self, size: int, overlap: int) -> Chunker:
            return Broken(fault, size, overlap)

        def measure(self, text: str) -> int:
            return len(text)

    with pytest.raises(AssertionError):
        getattr(Suite(), caught_by)()

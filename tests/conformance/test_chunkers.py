"""Every strategy × both units against the shipped suite."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from ragstone.core.protocols import Chunker
from ragstone.core.settings import ChunkingSettings
from ragstone.core.tokens import WordTokenizer
from ragstone.ingest.chunkers import STRATEGIES, build_chunker
from ragstone.testing.chunker_suite import ChunkerSuite

CASES = [
    *product(STRATEGIES, ("tokens", "chars"), ("0",)),
    *product(("markdown", "recursive"), ("tokens", "chars"), ("30",)),
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
        return build_chunker(settings, WordTokenizer())

    def measure(self, text: str) -> int:
        return len(text) if self.unit == "chars" else len(WordTokenizer().offsets(text))

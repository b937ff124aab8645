"""CHUNK: text and blocks → spans that fit a model, each with the path of headings it stands under."""

from __future__ import annotations

from collections.abc import Callable

from ragstone.core.protocols import Chunker, Tokenizer
from ragstone.core.settings import ChunkingSettings
from ragstone.ingest.chunkers.limits import Limits
from ragstone.ingest.chunkers.markdown import MarkdownChunker
from ragstone.ingest.chunkers.paragraph import ParagraphChunker
from ragstone.ingest.chunkers.recursive import RecursiveChunker
from ragstone.ingest.chunkers.sentence import SentenceChunker
from ragstone.ingest.chunkers.sliding_window import SlidingWindowChunker

__all__ = [
    "Limits",
    "MarkdownChunker",
    "ParagraphChunker",
    "RecursiveChunker",
    "SentenceChunker",
    "SlidingWindowChunker",
    "build_chunker",
]

STRATEGIES: dict[str, Callable[[Limits, ChunkingSettings], Chunker]] = {
    "markdown": lambda limits, its: MarkdownChunker(limits, its.min_size, its.context),
    "paragraph": lambda limits, its: ParagraphChunker(limits, its.context),
    "recursive": lambda limits, its: RecursiveChunker(limits, its.min_size, its.separators, its.context),
    "sentence": lambda limits, its: SentenceChunker(limits, its.context),
    "sliding_window": lambda limits, its: SlidingWindowChunker(limits, its.context),
}


def build_chunker(settings: ChunkingSettings, tokenizer: Tokenizer) -> Chunker:
    """The chunker that the settings ask for."""
    limits = Limits(tokenizer, settings.size, settings.overlap, settings.unit)
    return STRATEGIES[settings.strategy](limits, settings)

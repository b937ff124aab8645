"""CHUNK: cut a document into spans that fit a model, each with the path of its headings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from ragstone.core.protocols import Chunker, Tokenizer
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.kinds import CodeChunker, EmailChunker
from ragstone.ingest.chunkers.packing import MarkdownChunker
from ragstone.ingest.chunkers.paper import PaperChunker
from ragstone.ingest.chunkers.plain import ParagraphChunker, RecursiveChunker, SentenceChunker, SlidingWindowChunker
from ragstone.ingest.chunkers.semantic import Embed, HybridChunker, SemanticChunker
from ragstone.settings.tree import ChunkingSettings

logger = logging.getLogger(__name__)
FALLBACK_SIZE = 512
FALLBACK_OVERLAP = 50
STRATEGIES: dict[str, Callable[[ChunkLimits, ChunkingSettings], Chunker]] = {
    "code": lambda limits, its: CodeChunker(limits, its.min_size, its.context),
    "email": lambda limits, its: EmailChunker(limits, its.context),
    "markdown": lambda limits, its: MarkdownChunker(limits, its.min_size, its.context),
    "paper": lambda limits, its: PaperChunker(limits, its.context),
    "paragraph": lambda limits, its: ParagraphChunker(limits, its.context),
    "recursive": lambda limits, its: RecursiveChunker(limits, its.min_size, its.separators, its.context),
    "sentence": lambda limits, its: SentenceChunker(limits, its.context),
    "sliding_window": lambda limits, its: SlidingWindowChunker(limits, its.context),
}
"""Strategies that need nothing but the text."""
BY_MEANING: dict[str, Callable[[ChunkLimits, ChunkingSettings, Embed, Chunker], Chunker]] = {
    "semantic": lambda limits, its, embed, fallback: SemanticChunker(
        limits, embed, fallback, its.min_size, its.breakpoint, its.context
    ),
    "hybrid": lambda limits, its, embed, fallback: HybridChunker(
        limits, embed, fallback, its.min_size, its.separators, its.breakpoint, its.context
    ),
}
"""Strategies that also ask a model, and what they do without one."""


def build_chunker(settings: ChunkingSettings, tokenizer: Tokenizer, embed: Embed | None = None) -> Chunker:
    """Return the chunker of the settings; without a model, one that cuts by meaning becomes recursive."""
    limits = ChunkLimits(tokenizer, settings.size, settings.overlap, settings.unit)
    if settings.strategy in STRATEGIES:
        return STRATEGIES[settings.strategy](limits, settings)
    fallback = _fallback(limits, settings)
    if embed is None:
        logger.warning("no model for %s chunking, cutting documents recursively", settings.strategy)
        return fallback
    return BY_MEANING[settings.strategy](limits, settings, embed, fallback)


def _fallback(limits: ChunkLimits, settings: ChunkingSettings) -> RecursiveChunker:
    """Return a chunker that fills its chunks; in place of a semantic one they are smaller, and so easier to find."""
    if settings.strategy == "semantic":
        size = min(limits.size, FALLBACK_SIZE)
        limits = replace(limits, size=size, overlap=min(limits.overlap, FALLBACK_OVERLAP, size - 1))
    return RecursiveChunker(limits, limits.size, settings.separators, settings.context)

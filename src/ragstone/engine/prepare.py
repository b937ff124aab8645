"""How documents are made under some settings: parsers, chunkers and what describes a document, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache

from ragstone.core.protocols import LLM, Chunker, Embedder
from ragstone.core.types import Matrix, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.enrich.summary import summarize
from ragstone.ingest.parsers.options import ParseOptions
from ragstone.ingest.parsers.sandbox.pool import ParserLimits, ParserPool
from ragstone.ingest.prepare import PrepareOptions, Preparer
from ragstone.models import tokenizer_of
from ragstone.settings.tree import ChunkingSettings, Settings

OWN_CHUNKING = {"code": "code", "email": "email", "paper": "paper"}
"""What is cut in a way of its own unless the settings say otherwise."""
PARSERS = 2
"""Files that are read at once, so that a slow one does not hold up all others."""


def make_preparer(
    settings: Settings, embedder: Embedder, llm: LLM | None, model: str
) -> tuple[Preparer, Callable[[], Awaitable[None]]]:
    """What turns items into chunks for a model, and how to close it."""
    limits = settings.limits
    parsers = ParserPool(
        ParserLimits(
            seconds=limits.parse_seconds, memory_mb=limits.parse_memory_mb, pages=limits.pages, file_mb=limits.file_mb
        ),
        workers=max(PARSERS, settings.jobs.workers),
    )
    options = PrepareOptions(
        chunker_for=_chunkers(settings, embedder),
        model=model,
        max_chunks=limits.document_chunks,
        parsing=ParseOptions(
            ocr=settings.extract.ocr == "auto", tables=settings.extract.tables == "auto", unpacked_mb=limits.archive_mb
        ),
        enrich=settings.enrich,
        chunking=repr(sorted((kind, its.model_dump()) for kind, its in settings.chunking_by_source.items())),
    )
    summary = _summary(llm, settings.llm.timeout) if settings.enrich.summary == "llm" else None
    preparer = Preparer(parsers.parse, options, summary)

    async def close() -> None:
        await parsers.close()
        await preparer.close()

    return preparer, close


def _chunkers(settings: Settings, embedder: Embedder) -> Callable[[str], Chunker]:
    """The chunker for a source type; all that have no settings of their own share one."""
    loop = asyncio.get_running_loop()
    tokenizer = tokenizer_of(embedder)

    def embed(texts: Sequence[str]) -> Matrix:
        # Chunkers run on a thread; the model belongs to the loop.
        return asyncio.run_coroutine_threadsafe(embedder.embed(texts, "document"), loop).result().vectors

    @cache
    def build(chosen: ChunkingSettings) -> Chunker:
        return build_chunker(chosen, tokenizer, embed)

    def chunker_for(kind: str) -> Chunker:
        chosen = settings.chunking_by_source.get(kind)
        if chosen is None and kind in OWN_CHUNKING:
            chosen = settings.chunking.model_copy(update={"strategy": OWN_CHUNKING[kind]})
        return build(chosen or settings.chunking)

    return chunker_for


def _summary(llm: LLM | None, seconds: float) -> Callable[[Parsed], Awaitable[str]]:
    async def summary(parsed: Parsed) -> str:
        return (await summarize(parsed, llm, seconds)).text

    return summary

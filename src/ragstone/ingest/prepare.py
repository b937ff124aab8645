"""The stages before the model: EXTRACT, NORMALIZE, CHUNK and ENRICH, in this order."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from ragstone.core.background import let_questions_go_first
from ragstone.core.documents import clean_metadata
from ragstone.core.errors import NoTextSeen, ParserLimit
from ragstone.core.ids import content_hash
from ragstone.core.protocols import LLM, Chunker, Embedder, Tokenizer
from ragstone.core.types import Attachment, Chunk, Document, Failure, Item, Json, Matrix, Metadata, Parsed
from ragstone.ingest import parsers
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.enrich.describe import FINGERPRINT as ENRICH
from ragstone.ingest.enrich.describe import classify, extract_summary, find_keywords, read_excerpt
from ragstone.ingest.enrich.entities import find_entities
from ragstone.ingest.enrich.near_duplicates import bands, signature
from ragstone.ingest.enrich.summary import summarize
from ragstone.ingest.extract import MAIL, ParseFile, PartStore, extract, normalize
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions, printable
from ragstone.ingest.parsers.mail.marks import without_sending
from ragstone.ingest.parsers.sandbox.pool import ParserLimits, ParserPool
from ragstone.ingest.sources.files.walk import name_of
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.work import WorkItem
from ragstone.language.analyzer import FINGERPRINT
from ragstone.language.terms import analyze_chunks
from ragstone.settings.tree import ChunkingSettings, EnrichSettings, Settings

logger = logging.getLogger(__name__)
THREADS = 2
CUT_BY_MEANING = ("semantic", "hybrid")
"""Strategies whose chunks depend on the model."""
INHERITED = ("source", "source_type", "sender", "to", "cc", "date", "subject", "thread_id", "labels", "message_id")
"""Metadata that an attachment inherits from its mail; it has its own title and subject matter."""
OWN_CHUNKING = {"code": "code", "email": "email", "paper": "paper"}
"""Kinds of documents with a strategy of their own, unless the settings say otherwise."""
PARSERS = 2
"""Files that are read at once, so that a slow one does not hold up all others."""
EXTERNAL_ID_BYTES, SOURCE_BYTES = 2000, 500
"""The longest that are stored: PostgreSQL keeps both in one index, whose entries have at most 2,704 bytes."""
Summarize = Callable[[Parsed], Awaitable[str]]
ChunkerFor = Callable[[str], Chunker]
"""The chunker for a source type or, for a kind of file that wants its own, for that kind."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document cut into chunks, waiting for its vectors."""

    work: WorkItem
    content_hash: str
    recipe: str
    parsed: Parsed
    metadata: Metadata
    chunks: tuple[Chunk, ...]
    terms: tuple[str, ...]
    attachments: tuple[Attachment, ...] = ()
    signature: bytes = b""
    bands: tuple[int, ...] = ()
    recipe_key: str = ""
    """Names the content and the recipe: equal keys mean equal chunks."""


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """Everything that decides which chunks the same bytes become."""

    chunker_for: ChunkerFor
    model: str
    max_chunks: int = 100_000
    parsing: ParseOptions = DEFAULT
    enrich: EnrichSettings = field(default_factory=EnrichSettings)
    chunking: str = ""
    """Fingerprint of the chunking settings beyond the default chunker's own."""


class Preparer:
    """Turns items into chunks, and knows when a document need not be made again."""

    def __init__(self, parse: ParseFile, options: PrepareOptions, summarize: Summarize | None = None) -> None:
        self._parse = parse
        self._options = options
        # Apart from the loop's own threads: chunkers may wait for the model, which may need those.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ragstone-prepare")
        self._summarize = summarize
        self.model = options.model
        self.near_duplicates = options.enrich.near_duplicates
        cutting = f"{options.chunker_for('').fingerprint}|{options.chunking}"
        self._fingerprint = "|".join(
            (
                parsers.FINGERPRINT,
                FINGERPRINT,
                cutting,
                f"{ENRICH} {options.enrich.model_dump_json()}",
                f"ocr={options.parsing.ocr} tables={options.parsing.tables}",
                # Chunks that are only embedded with a model stay as they are when the model changes.
                options.model if any(word in cutting for word in CUT_BY_MEANING) else "",
            )
        )

    def is_current(self, item: Item, known: Document | None) -> bool:
        """Return whether the live version was made from this content by this recipe and lacks nothing."""
        return (
            known is not None
            and known.embedded
            and known.content_hash == content_hash(item.content)
            and known.recipe == self.recipe(item)
        )

    def recipe(self, item: Item) -> str:
        """Return a name for the way this item is made into a document."""
        # A file that was only touched keeps its recipe; one with new metadata from its source does not.
        given = {key: value for key, value in item.metadata.items() if key not in ("modified_date", "scraped_date")}
        named = name_of(item)
        return content_hash(json.dumps([self._fingerprint, named, item.title, given], sort_keys=True, default=str))[:32]

    async def prepare(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Prepared:
        """Extract, normalize, chunk and enrich. Raises `ParseError` for an item that cannot be a document."""
        parsed = await self._extract(work, parts, times)
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._threads, self._cut, work, parsed, times)
        if self._summarize:
            with times.measure("enrich", 0):
                summary = await self._summarize(prepared.parsed)
            stated = {"summary": summary} if summary else {}
            prepared = replace(prepared, metadata=clean_metadata({**prepared.metadata, **stated}))
        return prepared

    async def outline(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Prepared:
        """Prepare a document without chunks and without asking a model. Raises as `prepare` does."""
        parsed = await self._extract(work, parts, times)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._outline, work, parsed)

    async def _extract(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Parsed:
        work.note_stage("extract")
        with times.measure("extract"):
            return await extract(
                work.item,
                self._parse,
                self._options.parsing,
                parts,
                lambda done, total: work.note_stage("extract", pages=done, pages_total=total),
            )

    async def close(self) -> None:
        """End the threads after their current work."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _cut(self, work: WorkItem, parsed: Parsed, times: StageTimes) -> Prepared:
        item = work.item
        work.note_stage("normalize")
        with times.measure("normalize"):
            parsed = normalize(item, parsed, detect=self._options.enrich.language)
        work.note_stage("chunk")
        with times.measure("chunk") as out:
            chunks = self._chunk(item, parsed)
            out.append(len(chunks))
        work.note_stage("enrich", chunks_total=len(chunks))
        with times.measure("enrich", len(chunks)):
            found = enrich(parsed, self._options.enrich)
            terms = analyze_chunks([chunk.contextual for chunk in chunks], str(parsed.metadata.get("language") or ""))
            signed = signature(without_sending(parsed)) if self.near_duplicates != "off" else b""
        hashed, recipe = content_hash(item.content), self.recipe(item)
        return Prepared(
            # While it waits for the model, a document does not keep its original in memory.
            work=replace(work, item=replace(item, content=b"")),
            content_hash=hashed,
            recipe=recipe,
            recipe_key=recipe_key(hashed, recipe),
            parsed=replace(parsed, attachments=()),
            # Symbols are for the chunker only.
            metadata=clean_metadata(
                {**found, **{key: value for key, value in parsed.metadata.items() if key != "symbols"}}
            ),
            chunks=chunks,
            terms=terms,
            attachments=parsed.attachments,
            signature=signed,
            bands=bands(signed) if signed else (),
        )

    def _outline(self, work: WorkItem, parsed: Parsed) -> Prepared:
        parsed = normalize(work.item, parsed, detect=False)
        if not parsed.text.strip():
            raise NoTextSeen(f"{work.item.uri} holds no text")
        signed = signature(without_sending(parsed)) if self.near_duplicates == "skip" else b""
        return Prepared(
            *(replace(work, item=replace(work.item, content=b"")), "", "", parsed, parsed.metadata),
            chunks=(),
            terms=(),
            attachments=parsed.attachments,
            signature=signed,
            bands=bands(signed) if signed else (),
        )

    def _chunk(self, item: Item, parsed: Parsed) -> tuple[Chunk, ...]:
        chunks = tuple(self._options.chunker_for(chunking_kind(item, parsed)).chunk(parsed))
        if not chunks:
            raise NoTextSeen(f"{item.uri} holds no text")
        most = self._options.max_chunks
        if len(chunks) > most:
            raise ParserLimit(
                f"{item.uri} would make {len(chunks)} chunks; limits.document_chunks allows {most}",
                hint="split the file, or raise the limit",
            )
        return chunks


def enrich(parsed: Parsed, settings: EnrichSettings) -> dict[str, Json]:
    """Return the metadata found in a normalized document, without keys for what was not found or is known already.

    A summary by an LLM is not made here, since it waits for a service: see `summarize`.
    """
    excerpt = read_excerpt(parsed)
    found: dict[str, Json] = {
        "keywords": find_keywords(excerpt, settings.keywords),
        "entities": find_entities(excerpt, settings.entities),
    }
    if settings.content_type and not parsed.metadata.get("content_type"):
        found["content_type"] = classify(parsed, excerpt)
    if settings.summary == "extractive":
        found["summary"] = extract_summary(excerpt)
    return {key: value for key, value in found.items() if value}


def chunking_kind(item: Item, parsed: Parsed) -> str:
    """Return the kind that selects the chunker: `code` or `email` by the content, else the source type."""
    if parsed.media_type == MAIL:
        return "email"
    if parsed.blocks and all(block.kind == "code" for block in parsed.blocks):
        return "code"
    source_type: Json = item.metadata.get("source_type", "")
    if source_type == "email":
        return "files"  # an attachment
    return source_type if isinstance(source_type, str) else ""


def recipe_key(hashed: str, recipe: str) -> str:
    """Return a name for content together with the recipe of its document."""
    return content_hash(f"{hashed}|{recipe}")[:32]


def find_unusable(item: Item) -> Failure | None:
    """Return why an item cannot be a document, whatever its content; None if it can."""
    identity = (("source", item.source, SOURCE_BYTES), ("external id", item.external_id, EXTERNAL_ID_BYTES))
    for what, value, most in (*identity, ("uri", item.uri, None)):
        encoded = value.encode("utf-8", "replace")
        problem = "" if value else "is missing"
        if encoded.decode() != value:
            problem = "is not valid Unicode"
        if "\x00" in value:
            problem = "holds a NUL character"  # not every database can store it
        if most is not None and len(encoded) > most:
            problem = f"has {len(encoded):,} bytes; at most {most:,} can be stored"
        if problem:
            shown = printable(item.uri or item.external_id)
            return Failure(shown, "invalid_input", f"the {what} of '{shown}' {problem}", external_id=item.external_id)
    return None


def defect_failure(uri: str, error: Exception) -> Failure:
    """Return the failure of a document that raised an unexpected error, and log the error."""
    logger.error("cannot prepare %s", uri, exc_info=error)
    return Failure(uri, "internal", f"{uri} met a defect: {type(error).__name__}: {error!s:.200}")


def attachment_items(parent: Prepared, parent_id: str) -> list[Item]:
    """Return the attachments of a document as items that name their parent."""
    item = parent.work.item
    given = {key: parent.metadata[key] for key in INHERITED if key in parent.metadata}
    return [
        Item(
            source=item.source,
            external_id=f"{item.external_id}#{number}:{attachment.name}",
            uri=f"{item.uri}#{attachment.name}",
            content=attachment.content,
            metadata={**given, "filename": attachment.name, "parent_doc_id": parent_id, "attachment": True},
            modified_at=item.modified_at,
            media_type=attachment.media_type,
            read=item.read,
        )
        for number, attachment in enumerate(parent.attachments, start=1)
    ]


def make_preparer(
    settings: Settings, embedder: Embedder, tokenizer: Tokenizer, llm: LLM | None, model: str
) -> tuple[Preparer, Callable[[], Awaitable[None]]]:
    """Return the preparer of these settings for a model, and the function that closes it."""
    limits = settings.limits
    pool = ParserPool(
        ParserLimits(
            seconds=limits.parse_seconds, memory_mb=limits.parse_memory_mb, pages=limits.pages, file_mb=limits.file_mb
        ),
        workers=max(PARSERS, settings.jobs.workers),
    )
    options = PrepareOptions(
        chunker_for=_choose_chunkers(settings, embedder, tokenizer),
        model=model,
        max_chunks=limits.document_chunks,
        parsing=ParseOptions(
            ocr=settings.extract.ocr == "auto", tables=settings.extract.tables == "auto", unpacked_mb=limits.archive_mb
        ),
        enrich=settings.enrich,
        chunking=repr(sorted((kind, its.model_dump()) for kind, its in settings.chunking_by_source.items())),
    )

    async def summary(parsed: Parsed) -> str:
        return (await summarize(parsed, llm, settings.llm.timeout)).text

    preparer = Preparer(pool.parse, options, summary if settings.enrich.summary == "llm" else None)

    async def close() -> None:
        await pool.close()
        await preparer.close()

    return preparer, close


def _choose_chunkers(settings: Settings, embedder: Embedder, tokenizer: Tokenizer) -> Callable[[str], Chunker]:
    """Return a function that gives the chunker for a source type; those without settings of their own share one."""
    loop = asyncio.get_running_loop()

    def embed(texts: Sequence[str]) -> Matrix:
        # Chunkers run on a thread; the model belongs to the loop.
        with let_questions_go_first():
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

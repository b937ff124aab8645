"""The stages before the model: EXTRACT, NORMALIZE, CHUNK and ENRICH, in this order."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from ragstone.core.documents import clean_metadata
from ragstone.core.errors import NoTextSeen, ParserLimit
from ragstone.core.ids import content_hash
from ragstone.core.protocols import Chunker
from ragstone.core.types import Attachment, Chunk, Document, Failure, Item, Json, Metadata, Parsed
from ragstone.ingest import parsers
from ragstone.ingest.enrich import FINGERPRINT as ENRICH
from ragstone.ingest.enrich import enrich
from ragstone.ingest.enrich.near_duplicates import bands, signature
from ragstone.ingest.extract import MAIL, ParseFile, PartStore, extract
from ragstone.ingest.normalize import normalize
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.cleaning import printable
from ragstone.ingest.report import StageTimes, note_stage
from ragstone.ingest.work import WorkItem
from ragstone.language.analyzer import FINGERPRINT, analyze
from ragstone.settings.tree import EnrichSettings

logger = logging.getLogger(__name__)
THREADS = 2
CUT_BY_MEANING = ("semantic", "hybrid")
"""Strategies whose chunks depend on the model."""
INHERITED = (
    "source",
    "source_type",
    "sender",
    "to",
    "cc",
    "date",
    "subject",
    "thread_id",
    "labels",
    "message_id",
)
"""What an attachment has from its mail; what it is about, it says itself."""
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
    """Names the content and the way: equal names mean equal chunks."""


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """How documents are made: all that decides what becomes of the same bytes."""

    chunker_for: ChunkerFor
    model: str
    max_chunks: int = 100_000
    parsing: ParseOptions = DEFAULT
    enrich: EnrichSettings = field(default_factory=EnrichSettings)
    chunking: str = ""
    """Fingerprint of the chunking settings beyond the default chunker's own."""


class Preparer:
    """Turns items into chunks; knows when there is nothing to do."""

    def __init__(self, parse: ParseFile, options: PrepareOptions, summarize: Summarize | None = None) -> None:
        self._parse = parse
        self._options = options
        # Chunkers may wait for the model, which may want the loop's own threads: these are apart from them.
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
                # What is only embedded with a model is its Space's business, and stays as it is when that changes.
                options.model if any(word in cutting for word in CUT_BY_MEANING) else "",
            )
        )

    def is_current(self, item: Item, known: Document | None) -> bool:
        """Whether the live version was made from this content in this way and lacks nothing."""
        return (
            known is not None
            and known.embedded
            and known.content_hash == content_hash(item.content)
            and known.recipe == self.recipe(item)
        )

    def recipe(self, item: Item) -> str:
        """Names the way this item is made into a document."""
        # A file that was only touched keeps its recipe; one with new metadata from its source does not.
        given = {
            key: value for key, value in item.metadata.items() if key not in ("modified_date", "scraped_date")
        }
        return content_hash(
            json.dumps([self._fingerprint, item.uri, item.title, given], sort_keys=True, default=str)
        )[:32]

    async def prepare(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Prepared:
        """Extract the text, cut it, analyse it. Raises `ParseError` for what cannot be a document."""
        parsed = await self._extract(work, parts, times)
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._threads, self._cut, work, parsed, times)
        if self._summarize:
            with times.measure("enrich", 0):
                summary = await self._summarize(prepared.parsed)
            said = {"summary": summary} if summary else {}
            prepared = replace(prepared, metadata=clean_metadata({**prepared.metadata, **said}))
        return prepared

    async def outline(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Prepared:
        """What it would be made of, not cut and without what a model says. Raises as `prepare` does."""
        parsed = await self._extract(work, parts, times)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._outline, work, parsed)

    async def _extract(self, work: WorkItem, parts: PartStore, times: StageTimes) -> Parsed:
        note_stage(work, "extract")
        with times.measure("extract"):
            return await extract(
                work.item,
                self._parse,
                self._options.parsing,
                parts,
                lambda done, total: note_stage(work, "extract", pages=done, pages_total=total),
            )

    async def close(self) -> None:
        """Let go of the threads; what they do still ends."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _cut(self, work: WorkItem, parsed: Parsed, times: StageTimes) -> Prepared:
        item = work.item
        note_stage(work, "normalize")
        with times.measure("normalize"):
            normalized = normalize(item, parsed, detect=self._options.enrich.language)
            parsed, metadata = normalized.parsed, normalized.metadata
        note_stage(work, "chunk")
        with times.measure("chunk") as out:
            chunks = self._chunk(item, parsed)
            out.append(len(chunks))
        note_stage(work, "enrich", chunks_total=len(chunks))
        with times.measure("enrich", len(chunks)):
            found = enrich(parsed, self._options.enrich)
            terms = tuple(" ".join(analyze(chunk.contextual)) for chunk in chunks)
            signed = signature(parsed.text) if self.near_duplicates != "off" else b""
        hashed, recipe = content_hash(item.content), self.recipe(item)
        return Prepared(
            # What waits for the model need not be kept twice.
            work=replace(work, item=replace(item, content=b"")),
            content_hash=hashed,
            recipe=recipe,
            recipe_key=recipe_key(hashed, recipe),
            parsed=replace(parsed, attachments=()),
            metadata=clean_metadata({**found, **_without_symbols(metadata)}),
            chunks=chunks,
            terms=terms,
            attachments=parsed.attachments,
            signature=signed,
            bands=bands(signed) if signed else (),
        )

    def _outline(self, work: WorkItem, parsed: Parsed) -> Prepared:
        normalized = normalize(work.item, parsed, detect=False)
        parsed = normalized.parsed
        if not parsed.text.strip():
            raise NoTextSeen(f"{work.item.uri} holds no text")
        signed = signature(parsed.text) if self.near_duplicates == "skip" else b""
        return Prepared(
            *(replace(work, item=replace(work.item, content=b"")), "", "", parsed, normalized.metadata),
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


def _without_symbols(metadata: Metadata) -> Metadata:
    """Without what only the chunker needed."""
    return {key: value for key, value in metadata.items() if key != "symbols"}


def chunking_kind(item: Item, parsed: Parsed) -> str:
    """What a document is to be cut as: source code and mail by what they are, others by where they come from."""
    if parsed.media_type == MAIL:
        return "email"
    if parsed.blocks and all(block.kind == "code" for block in parsed.blocks):
        return "code"
    source_type: Json = item.metadata.get("source_type", "")
    if source_type == "email":
        return "files"  # it came with a mail, and is none
    return source_type if isinstance(source_type, str) else ""


def recipe_key(hashed: str, recipe: str) -> str:
    """Names content together with the way a document is made of it."""
    return content_hash(f"{hashed}|{recipe}")[:32]


def find_unusable(item: Item) -> Failure | None:
    """Why an item cannot be a document of its own whatever it holds; None when it can."""
    for what, value in (("source", item.source), ("external id", item.external_id), ("uri", item.uri)):
        problem = "" if value else "is missing"
        if value.encode("utf-8", "replace").decode() != value:
            problem = "is not valid Unicode"
        if "\x00" in value:
            problem = "holds a NUL character"  # which not every database can keep
        if problem:
            shown = printable(item.uri or item.external_id)
            return Failure(shown, "invalid_input", f"the {what} of '{shown}' {problem}")
    return None


def defect_failure(uri: str, error: Exception) -> Failure:
    """What is said of a document that showed a defect of ours; the log has it whole."""
    logger.error("%s could not be prepared", uri, exc_info=error)
    return Failure(uri, "internal", f"{uri} met a defect: {type(error).__name__}: {error!s:.200}")


def attachment_items(parent: Prepared, parent_id: str) -> list[Item]:
    """The items that a document's attachments are: each says what it came in with."""
    item = parent.work.item
    given = {key: parent.metadata[key] for key in INHERITED if key in parent.metadata}
    return [
        Item(
            source=item.source,
            external_id=f"{item.external_id}#{number}:{one.name}",
            uri=f"{item.uri}#{one.name}",
            content=one.content,
            metadata={**given, "filename": one.name, "parent_doc_id": parent_id, "attachment": True},
            modified_at=item.modified_at,
            media_type=one.media_type,
            read=item.read,
        )
        for number, one in enumerate(parent.attachments, start=1)
    ]

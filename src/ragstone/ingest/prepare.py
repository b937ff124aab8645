"""The stages before the model: extract, normalize, chunk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ragstone.core.analyzer import FINGERPRINT, analyze
from ragstone.core.errors import EmptyDocument, ParserLimit
from ragstone.core.ids import content_hash
from ragstone.core.metadata import clean_metadata
from ragstone.core.protocols import Chunker
from ragstone.core.types import Chunk, Document, Failure, Item, Metadata, Parsed
from ragstone.ingest import parsers
from ragstone.ingest.parsers.cleaning import one_line, printable
from ragstone.ingest.parsers.draft import MAX_TITLE, Draft

ParseFile = Callable[[bytes, str], Awaitable[Parsed]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document cut into chunks, waiting for its vectors."""

    item: Item
    content_hash: str
    recipe: str
    parsed: Parsed
    metadata: Metadata
    chunks: tuple[Chunk, ...]
    terms: tuple[str, ...]
    known: bool
    """Whether an earlier version of it is live."""


class Preparer:
    """Turns items into chunks; knows when there is nothing to do."""

    def __init__(self, parse: ParseFile, chunker: Chunker, model: str, max_chunks: int) -> None:
        self._parse = parse
        self._chunker = chunker
        self._max_chunks = max_chunks
        self.model = model
        self._way = f"{parsers.FINGERPRINT}|{FINGERPRINT}|{chunker.fingerprint}|{model}"

    def is_current(self, item: Item, known: Document | None) -> bool:
        """Whether the live version was made from this content in this way and lacks nothing."""
        return (
            known is not None
            and known.embedded
            and known.content_hash == content_hash(item.content)
            and known.recipe == self._recipe(item)
        )

    async def prepare(self, item: Item, known: bool) -> Prepared:
        """Extract the text, cut it, analyse it. Raises `ParseError` for what cannot be a document."""
        if isinstance(item.content, bytes):
            parsed = await self._parse(item.content, item.uri)
        else:
            parsed = plain_text(item.content, item.uri, item.title)
        return await asyncio.to_thread(self._cut, item, parsed, known)

    def _cut(self, item: Item, parsed: Parsed, known: bool) -> Prepared:
        title = one_line(item.title)[:MAX_TITLE] or parsed.title or item.uri.rsplit("/", 1)[-1]
        parsed = replace(parsed, title=title)
        chunks = tuple(self._chunker.chunk(parsed))
        if not chunks:
            raise EmptyDocument(f"{item.uri} holds no text")
        if len(chunks) > self._max_chunks:
            raise ParserLimit(
                f"{item.uri} would make {len(chunks)} chunks; limits.document_chunks allows {self._max_chunks}",
                hint="split the file, or raise the limit",
            )
        return Prepared(
            item=replace(item, content=b""),  # what waits for the model need not be kept twice
            content_hash=content_hash(item.content),
            recipe=self._recipe(item),
            parsed=parsed,
            metadata=clean_metadata({**parsed.metadata, **item.metadata}),
            chunks=chunks,
            terms=tuple(" ".join(analyze(chunk.contextual)) for chunk in chunks),
            known=known,
        )

    def _recipe(self, item: Item) -> str:
        # A file that was only touched keeps its recipe; one with new metadata from its source does not.
        given = {key: value for key, value in item.metadata.items() if key != "modified_date"}
        return content_hash(
            json.dumps([self._way, item.uri, item.title, given], sort_keys=True, default=str)
        )[:32]


def unusable(item: Item) -> Failure | None:
    """Why an item cannot be a document of its own whatever it holds; None when it can."""
    for what, value in (("source", item.source), ("external id", item.external_id), ("uri", item.uri)):
        problem = "" if value else "is missing"
        if value.encode("utf-8", "replace").decode() != value:
            problem = "is not valid Unicode"
        if problem:
            shown = printable(item.uri or item.external_id)
            return Failure(shown, "invalid_input", f"the {what} of '{shown}' {problem}")
    return None


def plain_text(text: str, name: str, title: str = "") -> Parsed:
    """Text that is already text: a title stands above it, paragraphs are what blank lines keep apart."""
    draft = Draft(name)
    if title:
        draft.add("heading", title, level=1, label=title)
    for paragraph in text.replace("\r\n", "\n").split("\n\n"):
        draft.add("paragraph", paragraph)
    return draft.finish("text/plain", title=title)

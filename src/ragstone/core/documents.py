"""Facts of documents and chunks: metadata, records under the names of the designs, places in the text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from ragstone.core.clock import canonical, canonical_text
from ragstone.core.errors import InputError
from ragstone.core.filters import FIELD, canonical_number
from ragstone.core.search import Stage
from ragstone.core.types import Failure, Json, LiveChunk, Metadata, PageStart, TableHead

FILENAME = 255
TITLE = 255
CATEGORY = 100
FILE_PATH = 500
FILE_TYPE = 20
SECTION_TITLE = 255
SAID_BY_US = (
    "source",
    "connector",
    "parent_doc_id",
    "attachment",
    "hidden_characters",
    "near_duplicate_of",
    "near_duplicate_similarity",
)
"""Metadata on where a document is from and what was found out about it: neither its file nor its uploader says it."""
_NAMED = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}


PATH_TYPES = ("files", "upload", "corpus")
"""Source types of documents whose origin is their path."""


def origin_of(metadata: Metadata, connector: str, uri: str) -> str:
    """Return the `source` of a document: its connector's word for it, its path, its site, or the connector's name.

    Documents that were stored before connectors had to say it have the connector's name in its place.
    """
    stored, source_type, domain = (metadata.get(name) for name in ("source", "source_type", "domain"))
    if isinstance(stored, str) and stored not in ("", connector):
        return stored
    if source_type in PATH_TYPES:
        return uri
    return domain if source_type == "web" and isinstance(domain, str) and domain else connector


def checked_facts(title: str, metadata: Metadata) -> None:
    """Raise `InputError` for what is longer than it may be, is not what its name says, or is not for people to say."""
    within("the title", title, TITLE)
    for key in SAID_BY_US:
        if key in metadata:
            raise InputError(f"only Ragstone says '{key}' of a document", hint="leave it out of the metadata")
    if metadata.get("source_type", "upload") != "upload":
        raise InputError("the 'source_type' of what is uploaded is 'upload'", hint="leave it out of the metadata")
    for key, limit in (("description", None), ("category", CATEGORY)):
        value = metadata.get(key, "")
        if not isinstance(value, str):
            raise InputError(f"'{key}' is {type(value).__name__}, and has to be text")
        if limit is not None:
            within(f"'{key}'", value, limit)
    tags = metadata.get("tags", [])
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise InputError("'tags' has to be a list of texts", hint='such as ["fares", "ferry"]')


def within(what: str, text: str, most: int) -> str:
    """Return the text, or raise `InputError` when it is too long to be kept."""
    if len(text) > most:
        raise InputError(f"{what} has {len(text):,} characters; at most {most} are kept", hint="shorten it")
    return text


def filename_of(metadata: Metadata, uri: str) -> str:
    """Return the name a file came under, or the end of its address."""
    name = metadata.get("filename")
    return (name if isinstance(name, str) and name else uri.rsplit("/", 1)[-1])[:FILENAME]


def file_type_of(filename: str, media_type: str) -> str:
    """Return the ending of the name, or else what the content was found to be."""
    suffix = PurePosixPath(filename).suffix.lower().lstrip(".")
    return (suffix or _NAMED.get(media_type) or media_type.rsplit("/", 1)[-1])[:FILE_TYPE]


def text_of(metadata: Metadata, key: str, most: int | None = None) -> str:
    """Return a text, or nothing: files may say anything under any name."""
    value = metadata.get(key)
    return value[:most] if isinstance(value, str) else ""


def tags_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """Tags as a list, also where a file has a single one."""
    tags = metadata.get("tags")
    if isinstance(tags, str):
        return (tags,) if tags else ()
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A content that came in for a document."""

    job_id: str
    status: str
    content_hash: str
    file_size: int
    error: str
    uploaded_at: datetime
    processed_at: datetime | None
    is_live: bool
    """True for the one that searches find."""
    is_kept: bool
    """True while its file can be downloaded."""


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """The file that a document was made from, as it came in."""

    filename: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FileKind:
    """A file and the format it was read as."""

    uri: str
    media_type: str


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of an ingest run."""

    added: int
    updated: int
    unchanged: int
    failed: tuple[Failure, ...]
    documents: int
    chunks: int
    seconds: float
    warnings: tuple[str, ...] = ()
    skipped_chunks: int = 0
    """Chunks stored without a vector because the model refused them."""
    degraded: tuple[str, ...] = ()
    removed: int = 0
    """Documents that their source no longer has."""
    moved: int = 0
    duplicates: int = 0
    """Documents left out because they are nearly the same as another."""
    stages: tuple[Stage, ...] = ()
    skipped: int = 0
    """Pictures that nobody asked for by name, or without words."""
    files: tuple[FileKind, ...] = ()
    """The files that a dry run read, with their formats."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds that passed because of each stage, side by side or not; together they are the time of the run."""


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk of a live document."""

    id: str
    document_id: str
    content: str
    chunk_index: int
    token_count: int
    embedding_model: str
    """The model of its vector in the live Space; empty when it has none."""
    embedding_id: str
    """By which the vector is known in every store; empty when there is none."""
    page_number: int | None
    section_title: str
    metadata: Metadata
    created_at: datetime | None
    """When its version went live."""


def placement(live: LiveChunk) -> dict[str, Json]:
    """Return a chunk's source and its place in the document, as far as the chunk itself tells."""
    said = live.metadata
    return {
        "sourceFile": filename_of(said, live.uri),
        "chunkIndex": live.chunk.index,
        "totalChunks": live.total,
        "position": live.chunk.index,
        "hierarchy_level": live.chunk.level,
        "parent_id": live.document_id,
        "source_type": said.get("source_type") or live.source,
        "timestamp": said.get("date") or (canonical(live.updated_at) if live.updated_at else None),
        "url": said.get("url") or live.uri,
    }


def chunk_records(chunks: Sequence[LiveChunk], models: Mapping[str, str]) -> list[ChunkRecord]:
    """Return all chunks of a document; `models` are those of the chunks that have a vector, by chunk id."""
    ids = {live.chunk.index: live.id for live in chunks}
    return [_record(live, ids, models.get(live.id, "")) for live in chunks]


def _record(live: LiveChunk, ids: Mapping[int, str], model: str) -> ChunkRecord:
    chunk = live.chunk
    above = ids.get(chunk.parent, live.document_id) if chunk.parent is not None else live.document_id
    return ChunkRecord(
        id=live.id,
        document_id=live.document_id,
        content=chunk.text,
        chunk_index=chunk.index,
        token_count=chunk.tokens,
        embedding_model=model,
        embedding_id=live.id if model else "",
        page_number=chunk.page,
        section_title=chunk.section[-1][:SECTION_TITLE] if chunk.section else "",
        metadata={
            "author": None,
            "content_type": chunk.kind,
            "topic_shift_score": None,
            **placement(live),
            **live.metadata,
            **chunk.metadata,
            "source": origin_of(live.metadata, live.source, live.uri),
            "connector": live.source,
            "parent_id": above,
        },
        created_at=live.updated_at,
    )


PAGE_STARTS = "page_starts"
TABLE_HEAD = "table_head"


def place_metadata(pages: Sequence[PageStart], head: TableHead | None) -> dict[str, Json]:
    """Return the stored form of both; empty for most chunks."""
    found: dict[str, Json] = {}
    if pages:
        found[PAGE_STARTS] = [list(page) for page in pages]
    if head:
        found[TABLE_HEAD] = [head.start, head.page, head.text]
    return found


def page_starts(metadata: Metadata) -> tuple[PageStart, ...]:
    """Return the starts of pages inside a chunk; none for a chunk stored before these were kept."""
    return tuple(PageStart(start, page) for start, page in metadata.get(PAGE_STARTS, ()))


def table_head(metadata: Metadata) -> TableHead | None:
    """Return the head of the table that a chunk begins in the middle of."""
    kept = metadata.get(TABLE_HEAD)
    return TableHead(*kept) if kept else None


def without_places(metadata: Metadata) -> dict[str, Json]:
    """Return the metadata that is about what a chunk says."""
    return {name: value for name, value in metadata.items() if name not in (PAGE_STARTS, TABLE_HEAD)}


def page_at(place: int, first: int | None, starts: Sequence[PageStart]) -> int | None:
    """Return the page of a place in the document, in a chunk that begins on page `first`."""
    return next((page.page for page in reversed(starts) if page.start <= place), first)


MAX_BYTES = 64 * 1024
GIVEN_BYTES = 48 * 1024
"""Bytes of metadata that may be given with an upload: what is found in the document is stored beside it."""
MAX_DEPTH = 32


def clean_metadata(raw: Mapping[Any, Any], most: int = MAX_BYTES) -> Metadata:
    """Return a copy that can be stored and filtered; refuse what cannot."""
    cleaned = {_key(key): _value(key, value) for key, value in raw.items()}
    if len(json.dumps(cleaned)) > most:
        longest = max(cleaned, key=lambda key: len(json.dumps(cleaned[key])))
        raise InputError(f"metadata is larger than {most // 1024} KiB", hint=f"shorten '{longest}'")
    return cleaned


def _key(key: Any) -> str:
    if not isinstance(key, str) or not FIELD.fullmatch(key):
        raise InputError(
            f"metadata key {key!r:.80} is not a field name",
            hint="letters, digits, '_', '.' and '-', starting with a letter",
        )
    return key


def _value(key: str, value: Any, depth: int = 1) -> Any:
    if depth > MAX_DEPTH:
        raise InputError(f"metadata '{key}' is nested more than {MAX_DEPTH} deep")
    match value:
        case datetime() | date():
            return canonical(value)
        case str():
            return canonical_text(value.encode("utf-8", "replace").decode())
        case None | bool():
            return value
        case int():
            return canonical_number(value)
        case float() if value == value and abs(value) != float("inf"):
            return value
        case list() | tuple():
            return [_value(key, item, depth + 1) for item in value]
        case Mapping():
            return {_key(inner): _value(inner, item, depth + 1) for inner, item in value.items()}
    raise InputError(f"metadata '{key}' holds {type(value).__name__}, which is not JSON")

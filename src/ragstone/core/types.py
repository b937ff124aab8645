"""Frozen values that travel between the stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragstone.core.clock import ReadTime
from ragstone.core.errors import RagstoneError
from ragstone.core.remedies import Remedy, advise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]
else:
    # Parser children and `--help` read this module: they must not pay for numpy.
    Vector = Matrix = Any

Json = Any
"""A JSON value. Checked where it enters (settings, HTTP, metadata), not at each use."""
Metadata = Mapping[str, Json]

BlockKind = Literal["heading", "paragraph", "list", "code", "table", "quote"]
Role = Literal["query", "document"]
Mode = Literal["fast", "balanced", "thorough"]
RouteKind = Literal["none", "retrieve", "web"]
SpaceState = Literal["building", "live", "retired"]


@dataclass(frozen=True, slots=True)
class Block:
    """A structural part of a document: `text[start:end]` of its `Parsed`."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    """Heading depth, 1 to 6; 0 for everything else."""
    label: str = ""
    """A heading's words without markup."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside another one: it becomes a document of its own."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file turned into text. Blocks are in order and apart; only white space lies outside them."""

    text: str
    blocks: tuple[Block, ...]
    title: str = ""
    media_type: str = "text/plain"
    metadata: Metadata = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    next_page: int | None = None
    """The page to continue reading at; None at the end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document: `text` is exactly `document.text[start:end]`."""

    index: int
    text: str
    start: int
    end: int
    context: str = ""
    """Text that is put before the chunk's own to form the contextual version; empty when there is none."""
    page: int | None = None
    section: tuple[str, ...] = ()
    parent: int | None = None
    """Index of the chunk this one stands under."""
    level: int = 0
    kind: BlockKind = "paragraph"
    tokens: int = 0
    metadata: Metadata = field(default_factory=dict)

    @property
    def contextual(self) -> str:
        """Return the text that is embedded and indexed by word."""
        return self.context + self.text


@dataclass(frozen=True, slots=True)
class Item:
    """Something a source offers: where it is from, and its bytes or its text."""

    source: str
    external_id: str
    uri: str
    content: bytes | str
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    modified_at: datetime | None = None
    media_type: str = ""
    """The media type that its origin gives; empty when the name and the bytes must tell."""
    read: ReadTime | None = field(default=None, compare=False)
    """When its content was about to be read; None until somebody takes it in."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what a source has, and where to go on after it."""

    items: tuple[Item | Failure, ...]
    cursor: Json = None
    """Kept in the transaction that queues these items; None for a source that lists everything each time."""
    removed: tuple[str, ...] = ()
    """External ids that the source says are gone."""
    listed: frozenset[str] | None = None
    """All external ids there are, from a source that can tell; documents of others are removed at the end."""
    leaving: tuple[str, ...] = ()
    """External ids that a later page removes: equal content under another one is a document that moved."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the ledger knows it."""

    id: str
    kb: str
    source: str
    external_id: str
    uri: str
    title: str
    content_hash: str
    version: int
    """The live version; 0 while there is none."""
    chunks: int
    tokens: int
    media_type: str
    metadata: Metadata
    recipe: str
    """Fingerprint of what made the live version: another chunker or model means another run."""
    embedded: bool
    """False while the live version is searchable by word only."""
    modified_at: datetime | None
    created_at: datetime
    updated_at: datetime


class LiveContent(NamedTuple):
    """The content that the live version of a document was made from."""

    content_hash: str
    read: ReadTime


@dataclass(frozen=True, slots=True)
class NewVersion:
    """All of a document version, ready to be staged."""

    document_id: str
    source: str
    external_id: str
    uri: str
    title: str
    content_hash: str
    text: str
    media_type: str
    metadata: Metadata
    recipe: str
    modified_at: datetime | None
    chunks: tuple[Chunk, ...]
    terms: tuple[str, ...]
    """The analysed contextual text of each chunk, terms apart by one blank: what every BM25 index stores."""
    vectors: Matrix | None
    """One row per chunk in the kb's live Space; None when no model of that Space could be reached."""
    parent_id: str = ""
    """The document this one came in with, such as the mail of an attachment; it goes when that one goes."""
    signature: bytes = b""
    """By which near duplicates are known."""
    bands: tuple[int, ...] = ()
    """Parts of the signature; documents that share one are compared."""
    read: ReadTime = field(default_factory=ReadTime)


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space of a kb: its vectors are comparable with each other and with nothing else."""

    id: int
    model: str
    dimension: int
    generation: int
    state: SpaceState


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """A named scope inside a tenant."""

    id: int
    name: str
    space: Space | None
    """The live Space; None until something has been embedded."""
    languages: tuple[str, ...] = ()
    """Languages other than English that its documents were analysed by, in order of arrival."""


class Candidate(NamedTuple):
    """An id and score that an index found. It counts only once it is read back from the ledger."""

    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class LiveChunk:
    """A chunk read back from the ledger under tenant and live checks."""

    id: str
    document_id: str
    version: int
    chunk: Chunk
    title: str
    uri: str
    source: str
    metadata: Metadata
    total: int = 0
    """The number of chunks of its document."""
    updated_at: datetime | None = None
    """When the document's live version became that."""


class PageStart(NamedTuple):
    """The start of a page in the document's text."""

    start: int
    page: int


class TableHead(NamedTuple):
    """The row that names a table's columns, and what its table says before it."""

    start: int
    """Of the text, in the document."""
    page: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, why, and where it stands."""

    chunk_id: str
    document_id: str
    title: str
    uri: str
    section: str
    page: int | None
    text: str
    score: float
    scores: Mapping[str, float]
    metadata: Metadata
    start: int
    end: int
    context: str = ""
    """The text around the passage, the passage included, where the settings ask for it."""
    placement: tuple[tuple[str, Json], ...] = ()
    """Its origin and its place in the document, for programs: models are not shown it."""
    page_starts: tuple[PageStart, ...] = ()
    """The pages that begin inside the passage: `page` is the one that it begins on."""
    table_head: TableHead | None = None
    """Of the table that the passage begins in the middle of."""
    relevance: float | None = None
    """The chance that it is relevant, from 0 to 1, comparable between queries; None for what no kb holds."""


SKIPPED = "skipped"
"""The code of what is no failure: nobody asked for it by name, or there is nothing in it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that could not be ingested, and why."""

    uri: str
    code: str
    error: str
    hint: str = ""
    """The advice about it, in words."""
    remedy: Remedy | None = None
    """The same as data."""
    external_id: str = field(default="", compare=False)
    """Of a file that could not be read, or of what in it could not: what it held before is not gone."""

    @property
    def advice(self) -> str:
        """Return what to do about it, in the words of the surface that is in use."""
        return advise(self.hint, self.remedy)


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of live content."""

    documents: int
    chunks: int
    tokens: int
    unembedded: int
    """Documents that are searchable by word only."""
    sequence: int
    """The last commit's place in the change feed."""
    bytes: int
    model: str


def failure_of(uri: str, error: RagstoneError, said: str = "", external_id: str = "") -> Failure:
    """Why this item could not be taken in, and what to do about it; `said` in place of the error's own words."""
    return Failure(uri, error.code, said or str(error), error.hint, error.remedy, external_id)

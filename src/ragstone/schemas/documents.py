"""Documents, their chunks, and how they were taken in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from ragstone.core.documents import file_type_of, filename_of
from ragstone.core.jobs import DocumentStatus, Status
from ragstone.core.types import BlockKind, Document, Json, LiveChunk
from ragstone.schemas.jobs import JobSchema
from ragstone.schemas.schema import Moment, Schema
from ragstone.schemas.search import StageSchema


class FailureSchema(Schema):
    """An item that could not be ingested, and why."""

    uri: str
    code: str
    error: str
    advice: str = Field(alias="hint")

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a failure."""
        return {**data, "hint": data.get("advice", "")}


class IngestSchema(Schema):
    """The outcome of an ingest run; `documents` and `chunks` count what the kb holds after it."""

    added: int
    updated: int
    unchanged: int
    failed: list[FailureSchema]
    documents: int
    chunks: int
    seconds: float
    warnings: list[str]
    skipped_chunks: int
    degraded: list[str]
    removed: int
    moved: int
    duplicates: int
    skipped: int
    stages: list[StageSchema]


class TimedSchema(Schema):
    """When a round began."""

    at: Moment


class IngestRoundSchema(IngestSchema, TimedSchema):
    """The outcome of one round of a watched folder."""


class FileKindSchema(Schema):
    """A file and the format it was read as."""

    uri: str
    media_type: str


class DryRunSchema(IngestSchema):
    """The expected outcome of an ingest run, with the files that were read for it."""

    dry_run: bool
    files: list[FileKindSchema]


class DocumentSchema(Schema):
    """A document as the ledger knows it, without its text."""

    id: str
    kb: str
    source: str
    external_id: str
    uri: str
    title: str
    media_type: str
    version: int
    chunks: int
    tokens: int
    embedded: bool
    content_hash: str
    metadata: dict[str, Json]
    modified_at: Moment | None
    created_at: Moment
    updated_at: Moment


class DocumentPageSchema(Schema):
    """A page of documents; `next` is what to pass as `after` for the following page, null on the last."""

    documents: list[DocumentSchema]
    next: str | None


class ListedDocumentSchema(DocumentSchema):
    """A document with its status and the type of its file."""

    status: Status
    file_type: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a document."""
        file_type = file_type_of(filename_of(source.metadata, source.uri), source.media_type)
        return super().of(source, file_type=file_type, **values)


class ListedPageSchema(Schema):
    """A page of documents; `next` is what to pass as `after` for the following page, null on the last."""

    documents: list[ListedDocumentSchema]
    next: str | None


class DocumentVersionSchema(Schema):
    """A content that came in for a document; `is_live` is the one that searches find."""

    job_id: str
    status: Status
    content_hash: str
    file_size: int
    error: str
    uploaded_at: Moment
    processed_at: Moment | None
    is_live: bool
    is_kept: bool


class DocumentVersionsSchema(Schema):
    """The contents that came in for a document, newest first."""

    document_id: str
    versions: list[DocumentVersionSchema]


class ChunkSchema(Schema):
    """One live chunk of a document."""

    chunk_id: str
    index: int
    kind: BlockKind
    section: str
    page: int | None
    start: int
    end: int
    tokens: int
    context: str
    text: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a live chunk."""
        section = " > ".join(source.chunk.section)
        return super().of(source.chunk, chunk_id=source.id, section=section, **values)


class DocumentDetailSchema(DocumentSchema):
    """A document with its text and its chunks, and what is known of it as an uploaded file."""

    filename: str
    file_type: str
    file_size: int | None
    file_path: str
    status: Status
    processing_error: str
    description: str
    category: str
    tags: list[str]
    chunk_count: int
    total_tokens: int
    uploaded_at: Moment | None
    processed_at: Moment | None
    embedding_model: str
    text: str
    chunk_list: list[ChunkSchema]

    @classmethod
    def of_document(cls, document: Document, status: DocumentStatus, text: str, chunks: Sequence[LiveChunk]) -> Self:
        """Build the shape of a live document."""
        known = {*DocumentSchema.model_fields, "text", "chunk_list"}
        of_file = {name: getattr(status, name) for name in cls.model_fields if name not in known}
        return cls.of(document, **of_file, text=text, chunk_list=chunks)


class DocumentStatusSchema(Schema):
    """The state of a document, and its newest job."""

    document_id: str
    job_id: str | None
    status: Status
    uri: str
    title: str
    chunk_count: int
    total_tokens: int
    processed_at: Moment | None
    processing_error: str
    job: JobSchema | None
    filename: str
    file_type: str
    file_size: int | None
    file_path: str
    description: str
    category: str
    tags: list[str]
    uploaded_at: Moment | None
    embedding_model: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a document's status."""
        return super().of(source, job_id=source.job.id if source.job else None, **values)


class QueuedDocumentsSchema(Schema):
    """Documents that a worker takes in later."""

    queued: list[DocumentStatusSchema]
    failed: list[FailureSchema]


class ChunkRecordSchema(Schema):
    """One live chunk of a document under the names that other systems use."""

    id: str
    document_id: str
    content: str
    chunk_index: int
    token_count: int
    embedding_model: str
    embedding_id: str
    page_number: int | None
    section_title: str
    metadata: dict[str, Json]
    created_at: Moment | None


class DocumentChunksSchema(Schema):
    """The chunks of a document."""

    document_id: str
    chunks: list[ChunkRecordSchema]


class DeletedDocumentsSchema(Schema):
    """Documents that were deleted, and ids that no document has."""

    deleted: list[str]
    not_found: list[str]

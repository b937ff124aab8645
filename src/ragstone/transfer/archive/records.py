"""Documents, chunks and sources as lines of an archive, and back again with every field checked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import get_args

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.documents import clean_metadata
from ragstone.core.errors import RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.jobs import SourceRecord
from ragstone.core.types import BlockKind, Chunk, Json, Metadata
from ragstone.schemas.settings import mask_secrets
from ragstone.stores.ledger.snapshots import ChunkSnapshot, DocumentSnapshot, Halves, KeptFile
from ragstone.transfer.archive.format import Facts, refusal

LARGEST_COUNT = 2**31 - 1
LARGEST_VERSION = 2**30
"""More than any document has seen, and far enough below what a column holds for the versions that follow."""
REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
KINDS: tuple[BlockKind, ...] = get_args(BlockKind)
DOCUMENT = (
    *("id", "source", "external_id", "uri", "title", "content_hash", "version", "media_type", "metadata", "recipe"),
    *(
        "embedded",
        "modified_at",
        "created_at",
        "updated_at",
        "parent_id",
        "signature",
        "bands",
        "chunks",
        "file",
        "text",
    ),
)
"""Fields of a document in an archive, in their order."""


def pack_line(value: Json) -> bytes:
    """Return a value as one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"


def document_line(document: DocumentSnapshot) -> bytes:
    """Return a document with its text as a line; the file it was uploaded as is named and lies beside it."""
    given = {
        "metadata": dict(document.metadata),
        "signature": document.signature.hex(),
        "chunks": len(document.chunks),
        "file": asdict(document.file) if document.file else None,
    }
    return pack_line({name: given.get(name, getattr(document, name)) for name in DOCUMENT})


def chunk_line(document_id: str, whole: ChunkSnapshot) -> bytes:
    """Return a chunk as a line, with the id of its document."""
    return pack_line({"id": whole.id, "document_id": document_id, **asdict(whole.chunk)})


def secrets_of(record: SourceRecord, secret_keys: Collection[str]) -> list[str]:
    """Return settings of a source that are not for an archive: secrets, and addresses with a password in them.

    A mere reference to the environment, such as `${PASSWORD}`, tells nothing.
    """
    return [
        name
        for name, value in record.config.items()
        if (mask_secrets(value, name) != value or (name in secret_keys and value is not None))
        and not (isinstance(value, str) and REFERENCE.fullmatch(value))
    ]


def source_line(record: SourceRecord, secrets: Collection[str]) -> bytes:
    """Return a source as a line, with the names of its secrets instead of their values."""
    return pack_line(
        {
            "name": record.name,
            "kind": record.kind,
            "config": {key: value for key, value in record.config.items() if key not in secrets},
            "secrets": list(secrets),
            "schedule": record.schedule,
            "cursor": record.cursor,
            "paused": record.paused,
            "created_at": canonical(record.created_at),
        }
    )


def read_document(facts: Facts, chunks: Sequence[Facts], vectors: Mapping[int, Halves]) -> DocumentSnapshot:
    """Return the document of a line, with chunks that were read before it."""
    text = facts.text("text")
    document_id = facts.identity("id")
    made = tuple(_chunk(line, document_id, at, text, len(chunks)) for at, line in enumerate(chunks))
    if len({chunk.id for chunk in made}) != len(made):
        raise refusal(f"{facts.what} has the id of a chunk twice")
    return DocumentSnapshot(
        id=document_id,
        source=facts.text("source", most=255),
        external_id=facts.text("external_id"),
        uri=facts.text("uri"),
        title=facts.text("title"),
        content_hash=facts.text("content_hash", most=64),
        version=facts.number("version", least=1, most=LARGEST_VERSION),
        media_type=facts.text("media_type", most=127),
        metadata=_metadata(facts),
        recipe=facts.text("recipe", most=64),
        embedded=facts.flag("embedded"),
        modified_at=facts.optional_moment("modified_at"),
        created_at=facts.moment("created_at"),
        updated_at=facts.moment("updated_at"),
        parent_id=facts.identity("parent_id", needed=False),
        signature=facts.octets("signature"),
        bands=tuple(facts.numbers("bands")),
        text=text,
        chunks=made,
        vectors=vectors,
        file=None if facts.value.get("file") is None else _file(facts.object("file")),
    )


def read_source(facts: Facts, kb: str) -> tuple[SourceRecord, list[str]]:
    """Return a source, and the names of the secrets that it lacks."""
    try:
        name = check_name(facts.text("name"), "source")
    except RagstoneError as error:
        raise refusal(str(error)) from error
    created = parse_moment(facts.moment("created_at"))
    assert created is not None
    return (
        SourceRecord(
            id="",
            kb=kb,
            name=name,
            kind=facts.text("kind", most=63),
            config=facts.object("config").value,
            schedule=facts.text("schedule", most=127),
            cursor=facts.value.get("cursor"),
            paused=facts.flag("paused"),
            next_run_at=None,
            last_run_at=None,
            last_error="",
            created_at=created,
        ),
        facts.texts("secrets"),
    )


def _chunk(facts: Facts, document_id: str, at: int, text: str, count: int) -> ChunkSnapshot:
    if facts.text("document_id") != document_id or facts.number("index") != at:
        raise refusal(f"{facts.what} is not the chunk that stands in its place")
    end = facts.number("end", most=len(text))
    start = facts.number("start", most=end)
    content = facts.text("text")
    if text[start:end] != content:
        raise refusal(f"{facts.what} is not what its document says there")
    chunk = Chunk(
        index=at,
        text=content,
        start=start,
        end=end,
        context=facts.text("context"),
        page=facts.optional_number("page", most=LARGEST_COUNT),
        section=tuple(facts.texts("section")),
        parent=facts.optional_number("parent", most=count - 1),
        level=facts.number("level", most=LARGEST_COUNT),
        kind=facts.choice("kind", KINDS),
        tokens=facts.number("tokens", most=LARGEST_COUNT),
        metadata=facts.object("metadata").value,
    )
    return ChunkSnapshot(facts.identity("id"), chunk)


def _metadata(facts: Facts) -> Metadata:
    try:
        return clean_metadata(facts.object("metadata").value)
    except RagstoneError as error:
        raise refusal(f"{facts.what}: {error}") from error


def _file(facts: Facts) -> KeptFile:
    return KeptFile(
        name=facts.text("name", most=64),
        uri=facts.text("uri"),
        content_hash=facts.text("content_hash", most=64),
        size=facts.number("size"),
        facts=facts.object("facts").value,
        created_at=facts.moment("created_at"),
        finished_at=facts.optional_moment("finished_at"),
    )

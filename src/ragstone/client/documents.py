"""Documents of a service."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ragstone.client.connection import RemotePart, path_of, write_json
from ragstone.core.documents import ChunkRecord, DocumentVersion, IngestReport, OriginalFile
from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.jobs import DocumentStatus, Status
from ragstone.core.types import Document, Metadata
from ragstone.schemas.documents import (
    ChunkRecordSchema,
    DocumentSchema,
    DocumentStatusSchema,
    DocumentVersionSchema,
    IngestSchema,
)


class RemoteDocuments(RemotePart):
    """Documents: uploaded, listed, read, deleted."""

    async def upload(
        self,
        content: bytes | Path | IO[bytes],
        filename: str = "",
        *,
        title: str = "",
        metadata: Metadata | None = None,
        external_id: str | None = None,
        kb: str | None = None,
    ) -> DocumentStatus:
        """Upload a file; a worker does the rest. When this returns, the file is stored safely.

        A path or an open file is read while it is sent. Without a name the file has that of its path.
        """
        form = {"title": title, "metadata": write_json(dict(metadata or {}))}
        form |= {name: value for name, value in (("external_id", external_id), ("kb", kb)) if value is not None}
        with open_content(content) as file:
            name = filename or Path(str(getattr(file, "name", ""))).name
            data = await self._connection.upload("/v1/documents", name, file, form)
        return DocumentStatusSchema.read_as(DocumentStatus, data)

    async def ingest_urls(self, *urls: str, kb: str | None = None) -> IngestReport:
        """Ingest web pages; the service fetches them."""
        data = await self._connection.post("/v1/documents/urls", {"urls": list(urls), "kb": kb})
        return IngestSchema.read_as(IngestReport, data)

    async def list(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        status: Status | None = None,
        file_type: str | None = None,
        after: str = "",
        limit: int = 100,
        kb: str | None = None,
    ) -> Sequence[Document]:
        """Return a page of documents in order of id, starting behind `after`; those that can be found, or of a status.

        A `file_type` is as the name of the file ends: `pdf`, `txt`, `docx` and others.
        """
        chosen = None if where is None else write_json(where)
        params = {"where": chosen, "status": status, "file_type": file_type, "after": after, "limit": limit, "kb": kb}
        data = await self._connection.get("/v1/documents", **params)
        return [DocumentSchema.read_as(Document, document) for document in data["documents"]]

    async def original(self, document_id: str) -> OriginalFile:
        """Return the file that a document was made from, or raise `NotFoundError` where it is not kept."""
        name, _, content = await self._connection.get_file(path_of("documents", document_id, "file"))
        return OriginalFile(name, content)

    async def versions(self, document_id: str) -> Sequence[DocumentVersion]:
        """Return the contents that came in for a document, newest first; none for what no job brought."""
        data = await self._connection.get(path_of("documents", document_id, "versions"))
        return [DocumentVersionSchema.read_as(DocumentVersion, version) for version in data["versions"]]

    async def text(self, document_id: str) -> str:
        """Return the text that citation offsets point into."""
        return await self._connection.get_text(path_of("documents", document_id, "text"))

    async def chunk_records(self, document_id: str) -> Sequence[ChunkRecord]:
        """Return the live chunks of a document."""
        data = await self._connection.get(path_of("documents", document_id, "chunks"))
        return [ChunkRecordSchema.read_as(ChunkRecord, chunk) for chunk in data["chunks"]]

    async def status(self, document_id: str) -> DocumentStatus:
        """Return the state of a document and its newest job."""
        data = await self._connection.get(path_of("documents", document_id))
        return DocumentStatusSchema.read_as(DocumentStatus, data)

    async def delete(self, document_id: str) -> bool:
        """Remove a document with everything derived from it; False when there is none."""
        return bool(await self.delete_many(document_id))

    async def delete_many(self, *document_ids: str) -> Sequence[str]:
        """Remove documents one by one; return the ids of those that there were."""
        deleted: list[str] = []
        for document_id in document_ids:
            try:
                data = await self._connection.delete(path_of("documents", document_id))
            except NotFoundError:
                continue
            deleted += data["deleted"]
        return deleted


@contextmanager
def open_content(content: bytes | Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """Open what is to be uploaded; a file that is open already stays open."""
    if isinstance(content, bytes):
        yield io.BytesIO(content)
    elif isinstance(content, Path):
        try:
            file = content.open("rb")
        except OSError as error:
            raise InputError(f"cannot read {content}: {error.strerror}") from error
        with file:
            yield file
    elif _is_text(content):
        raise InputError("the file is open as text", hint='open it as bytes: open(path, "rb")')
    else:
        yield content


def _is_text(file: object) -> bool:
    return isinstance(file, io.TextIOBase)

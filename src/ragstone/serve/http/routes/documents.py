"""Documents: uploaded, listed, read, deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, UploadFile
from starlette.responses import PlainTextResponse, Response

from ragstone.core.errors import InputError
from ragstone.core.jobs import ACTIVE, Status
from ragstone.schemas.documents import (
    DeletedDocumentsSchema,
    DocumentChunksSchema,
    DocumentStatusSchema,
    DocumentVersionsSchema,
    IngestSchema,
    ListedDocumentSchema,
    ListedPageSchema,
)
from ragstone.schemas.erasure import ErasureReceiptSchema
from ragstone.serve.http.identity import KeyedRoute, Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import BINARY, reply, send_file
from ragstone.serve.http.requests import UrlsBody, exact_form

router = APIRouter(route_class=KeyedRoute, prefix="/v1/documents", tags=["documents"], responses=PROBLEMS)


@router.post(
    "",
    status_code=202,
    response_model=DocumentStatusSchema,
    responses={200: {"model": DocumentStatusSchema, "description": "The document is live already."}},
    dependencies=[exact_form()],
)
async def upload(
    workspace: Writer,
    file: Annotated[UploadFile, File(description="The file.")],
    title: Annotated[str, Form(description="Shown in answers; the file's own title if empty.")] = "",
    metadata: Annotated[str, Form(description="A JSON object.")] = "{}",
    external_id: Annotated[
        str | None, Form(description="Your own id for the document; an upload with the same id replaces it.")
    ] = None,
    kb: Annotated[str | None, Form(description="The knowledge base to put it into.")] = None,
) -> Response:
    """Upload a file; it is processed in the background. Once the request succeeds, the file is stored safely.

    The reply is 202 with the address of the document's status, or 200 if the document is live already.
    """
    content = await file.read()
    facts = _read_object(metadata)
    status = await workspace.documents.upload(
        content, _read_filename(file.filename or ""), title=title, metadata=facts, external_id=external_id, kb=kb
    )
    place = {"Location": f"/v1/documents/{status.document_id}"}
    # While another version of a live document waits, the document itself is still `completed`.
    is_waiting = status.job is not None and status.job.state in ACTIVE
    return reply(DocumentStatusSchema.of(status), 202 if is_waiting else 200, place)


@router.post("/urls", response_model=IngestSchema)
async def ingest_urls(body: UrlsBody, workspace: Writer) -> Response:
    """Ingest web pages now, through the guarded fetcher."""
    return reply(IngestSchema.of(await workspace.documents.ingest_urls(*body.urls, kb=body.kb)))


@router.get("", response_model=ListedPageSchema)
async def list_documents(
    workspace: Reader,
    where: Annotated[str | None, Query(description="A filter on metadata, as JSON.")] = None,
    status: Annotated[Status | None, Query(description="By default those that can be found.")] = None,
    file_type: Annotated[str | None, Query(description="As the name ends: pdf, txt, docx …", max_length=20)] = None,
    after: Annotated[str, Query(description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kb: str | None = None,
) -> Response:
    """List documents in order of id, a page at a time."""
    chosen = _read_object(where) if where is not None else None
    found = await workspace.documents.list(
        where=chosen, status=status, file_type=file_type, after=after, limit=limit + 1, kb=kb
    )
    page = found[:limit]
    following = page[-1].id if len(found) > limit else None
    listed = [ListedDocumentSchema.of(document, status=status or "completed") for document in page]
    return reply(ListedPageSchema.of(documents=listed, next=following))


@router.get("/{document_id}", response_model=DocumentStatusSchema)
async def show_document(document_id: str, workspace: Reader) -> Response:
    """Show a document with its status and its newest job."""
    return reply(DocumentStatusSchema.of(await workspace.documents.status(document_id)))


@router.get("/{document_id}/text", response_class=PlainTextResponse)
async def read_text(document_id: str, workspace: Reader) -> Response:
    """Return the text of a document, that citation offsets point into."""
    text = await workspace.documents.text(document_id)
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")


@router.get("/{document_id}/file", response_class=Response, responses={200: {"content": {BINARY: {}}}})
async def download(document_id: str, workspace: Reader) -> Response:
    """Return the file that a document was made from, as it came in; 404 where it is not kept."""
    original = await workspace.documents.original(document_id)
    return send_file(original.content, original.filename)


@router.get("/{document_id}/versions", response_model=DocumentVersionsSchema)
async def list_versions(document_id: str, workspace: Reader) -> Response:
    """List the contents that came in for a document, newest first."""
    versions = await workspace.documents.versions(document_id)
    return reply(DocumentVersionsSchema.of(document_id=document_id, versions=versions))


@router.get("/{document_id}/chunks", response_model=DocumentChunksSchema)
async def list_chunks(document_id: str, workspace: Reader) -> Response:
    """List the live chunks of a document."""
    await workspace.documents.status(document_id)
    chunks = await workspace.documents.chunk_records(document_id)
    return reply(DocumentChunksSchema.of(document_id=document_id, chunks=chunks))


@router.delete("/{document_id}", response_model=DeletedDocumentsSchema | ErasureReceiptSchema)
async def delete_document(
    document_id: str,
    workspace: Writer,
    erase: Annotated[
        bool, Query(description="Overwrite it too, look for it everywhere, and return a receipt.")
    ] = False,
) -> Response:
    """Delete a document with everything derived from it."""
    await workspace.documents.status(document_id)
    if erase:
        receipts = await workspace.erase("document", document_id)
        if receipts:
            return reply(ErasureReceiptSchema.of(receipts[0]))
        deleted: Sequence[str] = ()  # another request was faster
    else:
        deleted = await workspace.documents.delete_many(document_id)
    not_found = [] if deleted else [document_id]
    return reply(DeletedDocumentsSchema.of(deleted=list(deleted), not_found=not_found))


def _read_filename(sent: str) -> str:
    """Return a file name as its owner knows it: browsers and HTTP libraries escape three characters in a form."""
    return re.sub("%(22|0A|0D)", lambda escaped: chr(int(escaped[1], 16)), sent)


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{text:.80} is not JSON: {error}", hint='give an object such as {"category": "manual"}'
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{text:.80} is not a JSON object", hint='give one such as {"category": "manual"}')
    return value

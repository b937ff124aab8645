"""`ragstone documents`: list, show and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import NotFoundError
from ragstone.serve.cli.commands.jobs import draw_job
from ragstone.serve.cli.exits import NOTHING_FOUND, OK, PARTIAL
from ragstone.serve.cli.options import Where, read_where
from ragstone.serve.cli.render.output import one_line, place, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragstone.core.documents import ChunkRecord
    from ragstone.core.jobs import DocumentStatus
    from ragstone.core.types import Document, LiveChunk

DocumentId = Annotated[str, typer.Argument(metavar="ID", help="Id of the document, as `documents` lists it.")]
DocumentIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of the documents.")]
PAGE = 50


async def list_documents(
    session: CliSession,
    where: Where = None,
    after: Annotated[
        str, typer.Option("--after", metavar="ID", help="Start after this document, the last one of the previous page.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to list.")] = PAGE,
) -> int:
    """List, show and delete documents."""
    from ragstone.schemas.documents import DocumentPageSchema

    filters = read_where(where)
    async with session.workspace() as workspace:
        page = await workspace.documents.list(where=filters, after=after, limit=limit)
        last = page[-1].id if len(page) == limit else None
        following = last if last and await workspace.documents.list(where=filters, after=last, limit=1) else None
    session.show(DocumentPageSchema.of(documents=page, next=following), lambda out: _draw_page(out, page))
    if following:
        size = () if limit == PAGE else ("--limit", str(limit))
        chosen = ("--where", where) if where else ()
        session.remark("more", session.options.command("documents", "--after", following, *size, *chosen))
    return OK if page else NOTHING_FOUND


async def show_document(session: CliSession, document_id: DocumentId) -> None:
    """Print the text and the chunks of a document.

    Prints its status instead while it is being processed.
    """
    from ragstone.schemas.documents import DocumentDetailSchema, DocumentStatusSchema

    async with session.workspace() as workspace:
        # It may have come in and not be live yet, or have failed.
        status = await workspace.documents.status(document_id)
        try:
            document = await workspace.documents.get(document_id)
        except NotFoundError:
            session.show(DocumentStatusSchema.of(status), lambda out: _draw_status(out, status))
            return
        text_of_it = await workspace.documents.text(document_id)
        chunks = await workspace.documents.chunks(document_id)
    detail = DocumentDetailSchema.of_document(document, status, text_of_it, chunks)
    session.show(detail, lambda out: _draw_document(out, document, text_of_it, chunks))


async def show_chunks(session: CliSession, document_id: DocumentId) -> int:
    """List the chunks of a document with their models and metadata."""
    from ragstone.schemas.documents import DocumentChunksSchema

    async with session.workspace() as workspace:
        status = await workspace.documents.status(document_id)
        records = await workspace.documents.chunk_records(document_id)
    shape = DocumentChunksSchema.of(document_id=document_id, chunks=records)
    session.show(shape, lambda out: _draw_records(out, records))
    if not records:
        session.remark("status", f"{status.status}; it cannot be found yet")
    return OK if records else NOTHING_FOUND


async def delete_documents(
    session: CliSession,
    document_ids: DocumentIds,
    receipt: Annotated[
        bool,
        typer.Option(
            "--receipt", help="Also overwrite what was deleted, look for it in every store, and say what was found."
        ),
    ] = False,
) -> int:
    """Delete documents and everything derived from them."""
    if receipt:
        return await _erase_documents(session, document_ids)
    async with session.workspace() as workspace:
        deleted = await workspace.documents.delete_many(*document_ids)
    unknown = [document_id for document_id in document_ids if document_id not in deleted]
    from ragstone.schemas.documents import DeletedDocumentsSchema

    session.show(
        DeletedDocumentsSchema.of(deleted=deleted, not_found=unknown),
        lambda out: out.print(f"Deleted {pluralize(len(deleted), 'document')}."),
    )
    session.warn(f"no document {document_id}" for document_id in unknown)
    return _outcome(deleted, unknown)


async def _erase_documents(session: CliSession, document_ids: Sequence[str]) -> int:
    from ragstone.schemas.erasure import ErasedDocumentsSchema
    from ragstone.serve.cli.render.receipts import show_receipts

    async with session.workspace() as workspace:
        receipts = await workspace.erase("document", *dict.fromkeys(document_ids))
    deleted = [receipt.target.name for receipt in receipts]
    unknown = [document_id for document_id in document_ids if document_id not in deleted]
    shape = ErasedDocumentsSchema.of(deleted=deleted, not_found=unknown, receipts=receipts)
    code = show_receipts(session, shape, f"Deleted {pluralize(len(deleted), 'document')}.", receipts)
    session.warn(f"no document {document_id}" for document_id in unknown)
    return code or _outcome(deleted, unknown)


def _outcome(deleted: Sequence[str], unknown: Sequence[str]) -> int:
    """4 when none of them was there, 3 when some were."""
    if not unknown:
        return OK
    return PARTIAL if deleted else NOTHING_FOUND


def _draw_page(out: Console, documents: Sequence[Document]) -> None:
    if not documents:
        out.print("No documents.")
        return
    rows = table("id", "title", "uri", "chunks", right=("chunks",))
    for document in documents:
        rows.add_row(document.id, text(one_line(document.title)), text(one_line(document.uri)), f"{document.chunks:,}")
    out.print(rows)


def _draw_records(out: Console, records: Sequence[ChunkRecord]) -> None:
    if not records:
        out.print("No chunks.")
        return
    rows = table("chunk", "id", "tokens", "page", "section", "model", right=("chunk", "tokens", "page"))
    for record in records:
        rows.add_row(
            str(record.chunk_index),
            record.id,
            f"{record.token_count:,}",
            "" if record.page_number is None else str(record.page_number),
            text(one_line(record.section_title)),
            text(record.embedding_model or "–"),
        )
    out.print(rows)


def _draw_status(out: Console, status: DocumentStatus) -> None:
    out.print(text(one_line(status.title or status.uri), "bold"))
    out.print(text(one_line(status.uri), "dim"))
    out.print(text(f"{status.status}; it cannot be found yet", "yellow"))
    if status.processing_error:
        out.print(text(one_line(status.processing_error), "red"))
    if status.job:
        out.print()
        draw_job(out, status.job)


def _draw_document(out: Console, document: Document, whole: str, chunks: Sequence[LiveChunk]) -> None:
    out.print(text(one_line(document.title), "bold"))
    out.print(text(one_line(document.uri), "dim"))
    facts = f"{document.media_type}, version {document.version}, {pluralize(document.tokens, 'token')}"
    out.print(text(facts if document.embedded else f"{facts}, searchable by word only", "dim"))
    out.print()
    out.print(text(whole))
    out.print()
    rows = table("chunk", "tokens", "span", "where", "begins", right=("chunk", "tokens"))
    for live in chunks:
        chunk = live.chunk
        begins = one_line(chunk.text)
        rows.add_row(
            str(chunk.index),
            str(chunk.tokens),
            f"{chunk.start}-{chunk.end}",
            text(place("", " > ".join(chunk.section), chunk.page)),
            text(begins if len(begins) <= 50 else f"{begins[:49]}…"),
        )
    out.print(rows)

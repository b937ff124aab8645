"""Receipts for tests, and documents to check them against."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ragstone.answer.quotes import Statement
from ragstone.answer.receipts.check import LiveDocument, check_receipt
from ragstone.answer.receipts.make import Wording, digest, make_receipt
from ragstone.answer.styles import Writer
from ragstone.core.answers import ReceiptReport
from ragstone.core.ids import content_hash
from ragstone.core.types import Chunk, LiveChunk

FACTS: dict[str, Any] = {
    "engine": "1.2",
    "moment": datetime(2026, 1, 2, tzinfo=UTC),
    "tenant": "acme",
    "kb": "manuals",
    "profile": "default",
    "models": {"embedding": "granite@1", "llm": None},
}


def live(document: str, text: str, start: int = 0, index: int = 0, **facts: Any) -> LiveChunk:
    """A chunk, called as `make_hit` calls it unless told otherwise."""
    title, uri = facts.pop("title", document.title()), facts.pop("uri", f"{document}.md")
    chunk = Chunk(index, text, start, start + len(text), **facts)
    return LiveChunk(f"{document}:{start}", document, 1, chunk, title, uri, "files", {})


def stored(document: str, text: str, **facts: Any) -> LiveDocument:
    """A document that is kept as one chunk."""
    return LiveDocument(text, [live(document, text, **facts)])


def receipt_of(statements: Sequence[Statement], wording: Wording | None = None) -> dict[str, Any]:
    """The receipt of an answer that says these."""
    how = wording or Wording()
    writer = Writer(how.style, how.format)
    for statement in statements:
        writer.add(statement)
    return make_receipt(writer.finish("When does the pump stop?"), wording=how, **FACTS)


async def checked(receipt: dict[str, Any], marks: str = "[{index}]", **documents: str | LiveDocument) -> ReceiptReport:
    """A receipt checked where these documents are kept."""

    async def look(document_id: str) -> LiveDocument | None:
        found = documents.get(document_id)
        return stored(document_id, found) if isinstance(found, str) else found

    return await check_receipt(receipt, look, marks)


def forged(receipt: dict[str, Any], **fields: object) -> dict[str, Any]:
    """Another receipt, hashed as it should be."""
    made = receipt | fields
    made["answer_hash"] = content_hash(made["answer"])
    return made | {"digest": digest(made)}

"""Receipts of an engine's answers: made with what it is made of, checked against what it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ragstone.answer.receipts.check import LiveDocument, check_receipt
from ragstone.answer.receipts.make import Wording, make_receipt
from ragstone.core.answers import Answer, ReceiptReport
from ragstone.core.clock import now
from ragstone.core.errors import NotFoundError
from ragstone.core.types import Json, KnowledgeBase, LiveChunk
from ragstone.parts import Parts
from ragstone.settings.tree import Settings


def receipt_of(
    answer: Answer, settings: Settings, parts: Parts, tenant: str, kb: KnowledgeBase
) -> dict[str, Json]:
    """The receipt of an answer that was given just now."""
    others = {"reranker": parts.reranker, "llm": parts.llm, "entailer": parts.entailer()}
    return make_receipt(
        answer,
        engine=version("ragstone"),
        moment=now(),
        tenant=tenant,
        kb=kb.name,
        profile=settings.profile,
        wording=Wording(settings.answer.citation_style, settings.answer.citation_format),
        models={
            "embedding": kb.space.model if kb.space else None,
            **{role: model.name if model else None for role, model in others.items()},
        },
    )


async def recheck(
    receipt: Mapping[str, Any],
    settings: Settings,
    text: Callable[[str], Awaitable[str]],
    chunks: Callable[[str], Awaitable[Sequence[LiveChunk]]],
) -> ReceiptReport:
    """What of a receipt still holds; `text` gives a document's live text or raises `NotFoundError`."""

    async def look(document_id: str) -> LiveDocument | None:
        try:
            whole, cut = await text(document_id), await chunks(document_id)
        except NotFoundError:
            return None
        # Of a version that came between the two reads, the chunks would not fit the text.
        return LiveDocument(whole, [one for one in cut if whole.startswith(one.chunk.text, one.chunk.start)])

    return await check_receipt(receipt, look, settings.answer.citation_format)

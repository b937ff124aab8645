"""Receipts of an engine's answers: made with what it is made of, checked against what it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

from ragstone.answer.receipt import check_receipt, make_receipt
from ragstone.core.answers import Answer
from ragstone.core.clock import now
from ragstone.core.errors import NotFoundError
from ragstone.core.proof import ReceiptReport
from ragstone.core.settings import Settings
from ragstone.core.types import Json, KnowledgeBase
from ragstone.parts import Parts


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
        models={
            "embedding": kb.space.model if kb.space else None,
            **{role: model.name if model else None for role, model in others.items()},
        },
    )


async def recheck(receipt: Mapping[str, Any], text: Callable[[str], Awaitable[str]]) -> ReceiptReport:
    """What of a receipt still holds; `text` gives a document's live text or raises `NotFoundError`."""

    async def text_of(document_id: str) -> str | None:
        try:
            return await text(document_id)
        except NotFoundError:
            return None

    return await check_receipt(receipt, text_of)

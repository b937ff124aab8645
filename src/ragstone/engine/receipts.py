"""Receipts of answers: what an answer said and stood on, and later what of that still holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragstone.core.answers import Answer, ReceiptReport
from ragstone.core.errors import NotFoundError
from ragstone.core.types import Json
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs
from ragstone.engine.documents import Documents


@record_caller
class Receipts(WorkspacePart):
    """Makes receipts of answers that were given just now, and checks receipts against the live documents."""

    def __init__(self, scope: TenantScope, documents: Documents) -> None:
        super().__init__(scope)
        self._documents = documents

    @within_kbs
    async def make(self, answer: Answer, *, kb: str | None = None) -> dict[str, Json]:
        """Return what an answer said and stood on, and by which models, as JSON that `check` takes later."""
        from importlib.metadata import version

        from ragstone.answer.receipts.make import Wording, make_receipt
        from ragstone.core.clock import now

        scope, components, settings = await self._scope.kb(kb), self._scope.components, self._scope.settings
        embedding = scope.space.model if scope.space else None
        others = {
            "reader": components.reader.model if embedding == components.reader.beside else None,
            "reranker": components.reranker,
            "llm": components.llm,
            "entailer": components.entailer,
        }
        return make_receipt(
            answer,
            engine=version("ragstone"),
            moment=now(),
            tenant=self._scope.tenant,
            kb=scope.name,
            profile=settings.profile,
            wording=Wording(settings.answer.citation_style, settings.answer.citation_format),
            models={"embedding": embedding, **{role: model.name if model else None for role, model in others.items()}},
        )

    @within_kbs
    async def check(self, receipt: Mapping[str, Any]) -> ReceiptReport:
        """Report whether a receipt is as it was made, and which of its sentences the live documents still bear out."""
        from ragstone.answer.receipts.check import LiveDocument, check_receipt

        async def look(document_id: str) -> LiveDocument | None:
            try:
                text = await self._documents.text(document_id)
                chunks = await self._documents.chunks(document_id)
            except NotFoundError:
                return None
            # Of a version that came between the two reads, the chunks would not fit the text.
            fitting = [live for live in chunks if text.startswith(live.chunk.text, live.chunk.start)]
            return LiveDocument(text, fitting)

        return await check_receipt(receipt, look, self._scope.settings.answer.citation_format)

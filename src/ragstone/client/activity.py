"""Votes and golden queries, receipts, conversations and the audit record of a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ragstone.client.connection import RemotePart, path_of
from ragstone.core.activity import Conversation, GoldenQuery, PassageVote, Turn, Vote
from ragstone.core.answers import Answer, ReceiptReport
from ragstone.core.audit import AuditEntry
from ragstone.core.errors import NotFoundError
from ragstone.core.search import Question
from ragstone.core.types import Json
from ragstone.schemas.activity import ConversationSchema, GoldenQuerySchema, TurnSchema, VoteSchema
from ragstone.schemas.answers import AnswerSchema
from ragstone.schemas.receipts import ReceiptReportSchema
from ragstone.schemas.tenants import AuditEntrySchema


class RemoteFeedback(RemotePart):
    """Votes on what searches found, and golden queries."""

    async def vote(
        self, query: str, chunk_ids: Sequence[str], vote: Vote = "used", *, voter: str = "", kb: str | None = None
    ) -> int:
        """Say that passages were useful for a query, or were not; return the number of passages.

        The key has one vote per passage and query, and so has each `voter` that it names.
        """
        body = {"query": query, "chunk_ids": list(chunk_ids), "vote": vote, "voter": voter, "kb": kb}
        return int((await self._connection.post("/v1/feedback", body))["noted"])

    async def votes(self, *, limit: int = 100, kb: str | None = None) -> list[PassageVote]:
        """Return the votes on passages of a kb, newest first."""
        data = await self._connection.get("/v1/feedback", limit=limit, kb=kb)
        return [VoteSchema.read_as(PassageVote, vote) for vote in data["feedback"]]

    async def golden(self, *, kb: str | None = None) -> list[GoldenQuery]:
        """Return the golden queries of a kb."""
        return _golden(await self._connection.get("/v1/golden", kb=kb))

    async def make_golden(self, count: int = 50, *, kb: str | None = None) -> list[GoldenQuery]:
        """Make golden queries from documents and keep them."""
        return _golden(await self._connection.post("/v1/golden/make", {"count": count, "kb": kb}))

    async def add_golden(self, query: str, document_ids: Sequence[str], *, kb: str | None = None) -> None:
        """Keep a question with the documents that answer it."""
        body = {"query": query, "document_ids": list(document_ids), "kb": kb}
        await self._connection.post("/v1/golden", body)

    async def remove_golden(self, query: str | None = None, *, kb: str | None = None) -> int:
        """Remove a golden query, or all of a kb; return how many that were."""
        try:
            return int((await self._connection.delete("/v1/golden", query=query, kb=kb))["removed"])
        except NotFoundError:
            return 0


class RemoteReceipts(RemotePart):
    """Receipts of answers."""

    async def ask(self, question: Question | str) -> tuple[Answer, dict[str, Json]]:
        """Return an answer with its receipt, which `check` takes later."""
        data = await self._connection.query("/v1/receipts", question_body(question))
        return AnswerSchema.read_as(Answer, data["answer"]), data["receipt"]

    async def check(self, receipt: Mapping[str, Any]) -> ReceiptReport:
        """Return whether a receipt is as it was made, and which of its sentences still hold."""
        data = await self._connection.query("/v1/receipts/check", {"receipt": dict(receipt)})
        return ReceiptReportSchema.read_as(ReceiptReport, data)


class RemoteConversations(RemotePart):
    """Conversations and their turns."""

    async def list(self, *, limit: int = 100, kb: str | None = None) -> Sequence[Conversation]:
        """Return conversations, newest first."""
        data = await self._connection.get("/v1/conversations", limit=limit, kb=kb)
        return [ConversationSchema.read_as(Conversation, conversation) for conversation in data["conversations"]]

    async def turns(self, conversation: str, *, kb: str | None = None) -> tuple[Turn, ...]:
        """Return the turns of a conversation, oldest first."""
        data = await self._connection.get(path_of("conversations", conversation), kb=kb)
        return tuple(
            replace(TurnSchema.read_as(Turn, turn), conversation=conversation, kb=kb or "") for turn in data["turns"]
        )

    async def forget(self, conversation: str, *, kb: str | None = None) -> int:
        """Remove a conversation; return how many turns it had."""
        return int((await self._connection.delete(path_of("conversations", conversation), kb=kb))["turns"])


class RemoteAudit(RemotePart):
    """The audit record."""

    async def list(self, *, action: str | None = None, limit: int = 100) -> Sequence[AuditEntry]:
        """Return entries, newest first."""
        data = await self._connection.get("/v1/audit", action=action, limit=limit)
        return [AuditEntrySchema.read_as(AuditEntry, entry) for entry in data["audit"]]


def question_body(question: Question | str) -> dict[str, Json]:
    """Return a question as the service takes it."""
    values = asdict(question if isinstance(question, Question) else Question(question))
    return {"question": values.pop("text"), **{name: value for name, value in values.items() if value is not None}}


def _golden(data: Json) -> list[GoldenQuery]:
    return [GoldenQuerySchema.read_as(GoldenQuery, query) for query in data["golden"]]

"""A service as a workspace: the same methods, arguments and results over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Literal

from ragstone.client.activity import RemoteAudit, RemoteConversations, RemoteFeedback, RemoteReceipts, question_body
from ragstone.client.connection import ServiceConnection, Timeouts, path_of
from ragstone.client.documents import RemoteDocuments
from ragstone.client.management import RemoteEmbeddings, RemoteJobs, RemoteKnowledgeBases, RemoteSources
from ragstone.client.shop import RemoteShop
from ragstone.client.tasks import RemoteArticles, RemoteTasks
from ragstone.core.agents.replies import CustomerReply, ReplyEvent, ReplyReady
from ragstone.core.answers import (
    Answer,
    AnswerEvent,
    AnswerReady,
    CheckedText,
    Citation,
    CitationsReady,
    Depth,
    Research,
    Sentence,
    SentenceReady,
    Verdict,
)
from ragstone.core.audit import Receipt
from ragstone.core.errors import NotFoundError, RemoteError
from ragstone.core.ids import opaque_id
from ragstone.core.search import Explanation, Question, SearchQuery, SearchResult
from ragstone.core.tenants import Usage
from ragstone.core.types import Json, Mode
from ragstone.schemas.answers import AnswerSchema, CheckedTextSchema, CitationSchema, SentenceSchema, VerdictSchema
from ragstone.schemas.erasure import ErasureReceiptSchema
from ragstone.schemas.research import ResearchSchema
from ragstone.schemas.search import ExplanationSchema, SearchSchema
from ragstone.schemas.service import ChatReplySchema
from ragstone.schemas.tenants import UsageSchema

Erasable = Literal["document", "source", "kb"]
DEFAULT_TIMEOUTS = Timeouts()
RETRIES = 2


class AsyncClient:
    """Does what a `Workspace` does by calling a service: `AsyncClient("http://127.0.0.1:8000", key)`.

    A failure raises the error that the engine itself would raise, with `code`, `hint`, `request_id` and `retry_after`.
    A request that failed for a passing reason is repeated where it cannot do anything twice.
    """

    def __init__(self, url: str, key: str, *, timeouts: Timeouts = DEFAULT_TIMEOUTS, retries: int = RETRIES) -> None:
        self._connection = ServiceConnection(url, key, timeouts, retries)
        self.documents = RemoteDocuments(self._connection)
        """Documents: uploaded, listed, read, deleted."""
        self.knowledge_bases = RemoteKnowledgeBases(self._connection)
        """Knowledge bases: listed, counted, renamed, deleted."""
        self.sources = RemoteSources(self._connection)
        """Configured connectors."""
        self.jobs = RemoteJobs(self._connection)
        """Jobs that workers do in the background, and notices of how they ended."""
        self.feedback = RemoteFeedback(self._connection)
        """Votes on what searches found, and golden queries."""
        self.conversations = RemoteConversations(self._connection)
        """Conversations and their turns."""
        self.embeddings = RemoteEmbeddings(self._connection)
        """The models and vectors of a kb."""
        self.receipts = RemoteReceipts(self._connection)
        """Receipts of answers."""
        self.shop = RemoteShop(self._connection)
        """Products, services and appointments of a shop."""
        self.tasks = RemoteTasks(self._connection)
        """Exports, imports, evaluations, tunings and articles, by jobs."""
        self.articles = RemoteArticles(self._connection)
        """Runs of the article pipeline, with their articles."""
        self.audit = RemoteAudit(self._connection)
        """The audit record."""

    async def search(self, query: SearchQuery | str) -> SearchResult:
        """Return the passages that matter for a query, best first."""
        return SearchSchema.read_as(SearchResult, await self._connection.query("/v1/search", _query(query)))

    async def ask(self, question: Question | str) -> Answer:
        """Return an answer in which every sentence carries the passage it stands on."""
        return AnswerSchema.read_as(Answer, await self._connection.query("/v1/ask", question_body(question)))

    async def stream(self, question: Question | str) -> AsyncGenerator[AnswerEvent]:
        """Yield what `ask` returns while it is made: sentences as they are checked, the citations, the answer."""
        event: AnswerEvent | None = None
        async for name, data in self._connection.stream("/v1/ask", question_body(question)):
            event = _event(name, data)
            if event:
                yield event
        if not isinstance(event, AnswerReady):
            raise RemoteError("the service ended before its answer was complete", hint="ask again")

    async def chat(self, message: str, conversation: str | None = None, *, kb: str | None = None) -> CustomerReply:
        """Return the customer-service agent's reply; without a conversation a new one begins, which it names."""
        body = _message_body(message, conversation, kb)
        return ChatReplySchema.read_as(CustomerReply, await self._connection.query("/v1/chat", body))

    async def stream_chat(
        self, message: str, conversation: str | None = None, *, kb: str | None = None
    ) -> AsyncGenerator[ReplyEvent]:
        """Yield each sentence of a reply once it is checked, then the reply that `chat` returns."""
        event: ReplyEvent | None = None
        async for name, data in self._connection.stream("/v1/chat", _message_body(message, conversation, kb)):
            event = _reply_event(name, data)
            if event:
                yield event
        if not isinstance(event, ReplyReady):
            raise RemoteError("the service ended before its reply was complete", hint="send the message again")

    async def verify(
        self,
        claim: str,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        kb: str | None = None,
    ) -> Verdict:
        """Return whether the knowledge base supports or refutes a claim, with the sentences that say so."""
        body = {"claim": claim, "k": k, "mode": mode, "where": where, "kb": kb}
        return VerdictSchema.read_as(Verdict, await self._connection.query("/v1/verify", body))

    async def verify_text(
        self,
        text: str,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        kb: str | None = None,
        most: int = 100,
    ) -> CheckedText:
        """Return the verdict on each sentence of a text that claims something, up to `most` of them."""
        body = {"text": text, "k": k, "mode": mode, "where": where, "kb": kb, "most": most}
        return CheckedTextSchema.read_as(CheckedText, await self._connection.query("/v1/verify/text", body))

    async def research(
        self,
        topic: str,
        *,
        depth: Depth = "medium",
        iterations: int = 1,
        where: Mapping[str, Any] | None = None,
        kb: str | None = None,
    ) -> Research:
        """Return what there is about a topic, from several sides; further iterations look for what is missing."""
        body = {"topic": topic, "depth": depth, "iterations": iterations, "where": where, "kb": kb}
        return ResearchSchema.read_as(Research, await self._connection.query("/v1/research", body))

    async def explain(self, query: SearchQuery | str, document_id: str) -> Explanation:
        """Explain why a document is in the result of a query, or at which stage it was lost."""
        body = {**_query(query), "document_id": document_id}
        return ExplanationSchema.read_as(Explanation, await self._connection.query("/v1/explain", body))

    async def erase(self, kind: Erasable, *names: str, kb: str | None = None) -> list[Receipt]:
        """Remove documents by id, or sources or kbs by name, everywhere; return receipts of those that there were.

        Slower than `delete`: what is removed is overwritten, and looked for in every store afterwards.
        """
        receipts: list[Receipt] = []
        for name in names:
            try:
                data = await self._erase(kind, name, kb)
            except NotFoundError:
                continue
            receipts += [ErasureReceiptSchema.read_as(Receipt, receipt) for receipt in data]
        return receipts

    async def _erase(self, kind: Erasable, name: str, kb: str | None) -> list[Json]:
        if kind == "document":
            data = await self._connection.delete(path_of("documents", name), erase=True)
            return [data] if "target" in data else []
        place = path_of("sources" if kind == "source" else "kbs", name)
        data = await self._connection.delete(place, kb=kb if kind == "source" else None)
        return list(data["receipts"])

    async def usage(self) -> Usage:
        """Return what the tenant has and has used."""
        return UsageSchema.read_as(Usage, await self._connection.get("/v1/usage"))

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _query(query: SearchQuery | str) -> dict[str, Json]:
    values = asdict(query if isinstance(query, SearchQuery) else SearchQuery(query))
    return {"query": values.pop("text"), **{name: value for name, value in values.items() if value is not None}}


def _event(name: str, data: Json) -> AnswerEvent | None:
    """Return an event of a stream; None for one that this version does not know."""
    if name == "sentence":
        return SentenceReady(SentenceSchema.read_as(Sentence, data), data["marked"])
    if name == "citations":
        return CitationsReady(tuple(CitationSchema.read_as(Citation, citation) for citation in data["citations"]))
    return AnswerReady(AnswerSchema.read_as(Answer, data)) if name == "answer" else None


def _message_body(message: str, conversation: str | None, kb: str | None) -> dict[str, Json]:
    """Return a message with the name of its conversation: a message that is sent again must not begin another one."""
    return {"message": message, "conversation": conversation or opaque_id(), "kb": kb}


def _reply_event(name: str, data: Json) -> ReplyEvent | None:
    """Return an event of a streamed reply; None for one that this version does not know."""
    if name == "sentence":
        return SentenceReady(SentenceSchema.read_as(Sentence, data), data["marked"])
    return ReplyReady(ChatReplySchema.read_as(CustomerReply, data)) if name == "reply" else None

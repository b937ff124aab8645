"""The engine: everything Ragstone does, as async methods over one set of stores and models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import lru_cache, partial
from types import TracebackType
from typing import Any

from ragstone.answer.answer_cache import AnswerCache, Asked
from ragstone.core.answers import Answer, AnswerEvent
from ragstone.core.claims import Verdict
from ragstone.core.proof import ReceiptReport
from ragstone.core.query_settings import Fusion
from ragstone.core.research import DEPTHS, MOST_ITERATIONS, Depth, Research
from ragstone.core.settings import Settings
from ragstone.core.types import (
    Explanation,
    Json,
    Mode,
    SearchResult,
)
from ragstone.core.web import MOST_WEB_RESULTS, WebFindings, no_web_search, web_hits
from ragstone.library import Library
from ragstone.parts import Parts
from ragstone.query.answered import require_an_answer
from ragstone.query.cache import SearchCache
from ragstone.query.request import (
    Arm,
    SearchRequest,
    checked_choice,
    checked_count,
    checked_query,
    search_request,
)
from ragstone.query.session import Session, Standing
from ragstone.query.sources import Searcher, Wish

MOST_PIPELINES = 256


class Engine(Library):
    """A library that can be asked: it searches, answers, checks and explains.

    Use it as `async with open_engine(settings) as engine`. In every method `tenant` and `kb`
    default to those of the settings.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        super().__init__(settings, parts)
        self._pipeline = lru_cache(MOST_PIPELINES)(lambda one: parts.search_pipeline(one, settings))
        """What searches, by settings: tenants may have their own."""
        cache = SearchCache(
            parts.ledger,
            parts.gate.identity,
            seconds=settings.cache.search_seconds,
            memory_mb=settings.cache.memory_mb,
        )
        self._answers = AnswerCache(parts.ledger, settings.cache.answer_similarity)
        self._searcher = Searcher(self._pipeline, cache, parts.web.find if parts.web else None)

    async def search(
        self,
        query: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        arms: Arm | None = None,
        fusion: Fusion | None = None,
        min_score: float | None = None,
        strategy: str | None = None,
        web: bool | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> SearchResult:
        """The passages that matter for a query, best first; `where` is a filter in its JSON form.

        `strategy` names the one transform (`rewrite`, `expand`, `hyde` …) to use in place of those of the settings.
        `web` says whether the web is asked too; by default that is left to `retrieval.routing`.
        """
        owner = self._tenant(tenant)
        settings = await self._parts.gate.settings_for(owner)
        request = search_request(settings, query, k, mode, where, arms, fusion, min_score, strategy)
        found = await self._find(settings, request, Wish(mode is not None, web), tenant, kb)
        if settings.activity.searches:
            await self.activity.note(owner, self._name(kb), found)
        return found

    async def _step(
        self,
        query: str,
        k: int,
        mode: Mode | None,
        where: Mapping[str, Any] | None,
        tenant: str | None,
        kb: str | None,
    ) -> SearchResult:
        """A search within something longer: nobody made it, so it is not remembered."""
        settings = await self._parts.gate.settings_for(self._tenant(tenant))
        request = search_request(settings, query, k, mode, where)
        return await self._find(settings, request, Wish(mode is not None), tenant, kb)

    async def _find(
        self, settings: Settings, request: SearchRequest, wish: Wish, tenant: str | None, kb: str | None
    ) -> SearchResult:
        owner, gate = self._tenant(tenant), self._parts.gate
        await gate.query(owner)
        scope = await self._kb(tenant, kb)
        async with gate.paying(owner):
            sure = partial(self.confidence, tenant=tenant, kb=kb)
            found = await self._searcher.search(owner, scope, settings.retrieval, request, sure, wish)
        require_an_answer(request.arms, found)
        return found

    async def web(self, query: str, *, k: int | None = None, tenant: str | None = None) -> WebFindings:
        """What the web search engine of the settings finds; nothing, and why, when it fails."""
        owner = await self._owner(tenant)
        if self._parts.web is None:
            raise no_web_search()
        words = checked_query(query, self.settings.limits.query_chars)
        wanted = None if k is None else checked_count("k", k, most=MOST_WEB_RESULTS)
        await self._parts.gate.query(owner)
        return await self._parts.web.find(owner, words, wanted)

    def session(self, *, tenant: str | None = None, kb: str | None = None) -> Session:
        """Searches that remember: none is made twice while the kb stays as it is."""
        return Session(partial(self.search, tenant=tenant, kb=kb), partial(self._standing, tenant, kb))

    async def _standing(self, tenant: str | None, kb: str | None) -> Standing:
        """What is found now depends on; a tenant that is suspended is refused."""
        scope, owner, gate = await self._kb(tenant, kb), self._tenant(tenant), self._parts.gate
        identity, settings = await gate.identity(owner), await gate.settings_for(owner)
        return Standing(identity, scope, settings.retrieval, await self._parts.ledger.sequence(owner))

    async def ask(
        self,
        question: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Answer:
        """An answer in which every sentence carries the passage it stands on."""
        question = checked_query(question, None, "question")
        passages = self.settings.answer.passages if k is None else k
        asked = await self._asked(question, repr((passages, mode, where)), tenant, kb)
        if asked and (again := await self._answers.find(asked)):
            await self._parts.gate.query(asked.tenant)
            return again
        found = await self.search(question, k=passages, mode=mode, where=where, tenant=tenant, kb=kb)
        hits = found.hits + web_hits(found.web)
        async with self._parts.gate.paying(self._tenant(tenant)):
            answer = await self._parts.answerer().answer(found.query, hits, degraded=found.degraded)
        if asked:
            await self._answers.keep(asked, hits, answer)
        return answer

    async def _asked(self, question: str, options: str, tenant: str | None, kb: str | None) -> Asked | None:
        """A question as the cache of answers tells it from others; None where none are kept."""
        if not self.settings.cache.answers:
            return None
        owner, scope = self._tenant(tenant), await self._kb(tenant, kb)
        embedder = await self._embedder_of(scope)
        if embedder is None:
            return None
        way = options + repr((await self._parts.gate.settings_for(owner)).retrieval)
        return Asked(owner, scope, way, checked_query(question, self.settings.limits.query_chars), embedder)

    async def stream(
        self,
        question: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> AsyncIterator[AnswerEvent]:
        """`ask` while it goes on: each sentence once its support is checked, then the citations, then the answer."""
        from ragstone.answer.relay import relayed

        question = checked_query(question, None, "question")
        passages = self.settings.answer.passages if k is None else k

        async def produce(send: Callable[[AnswerEvent], None]) -> None:
            found = await self.search(question, k=passages, mode=mode, where=where, tenant=tenant, kb=kb)
            hits = found.hits + web_hits(found.web)
            making = self._parts.answerer().events(found.query, hits, degraded=found.degraded)
            async with self._parts.gate.paying(self._tenant(tenant)), aclosing(making):
                async for event in making:
                    send(event)

        async with aclosing(relayed(produce)) as events:
            async for event in events:
                yield event

    async def receipt(
        self, answer: Answer, *, tenant: str | None = None, kb: str | None = None
    ) -> dict[str, Json]:
        """What an answer said and stood on, and by which models, as JSON that `check_receipt` takes later."""
        from ragstone.proving import receipt_of

        scope = await self._kb(tenant, kb)
        return receipt_of(answer, self.settings, self._parts, self._tenant(tenant), scope)

    async def check_receipt(self, receipt: Mapping[str, Any], *, tenant: str | None = None) -> ReceiptReport:
        """Whether a receipt is as it was made, and which of its sentences the live documents still bear out."""
        from ragstone.proving import recheck

        return await recheck(receipt, partial(self.text, tenant=tenant))

    async def research(
        self,
        topic: str,
        *,
        depth: Depth = "medium",
        iterations: int = 1,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Research:
        """What there is about a topic, from several sides; further iterations look for what is still missing."""
        from ragstone.answer.research.pipeline import Task

        k = DEPTHS[checked_choice("depth", depth, tuple(DEPTHS))]
        checked_count("iterations", iterations, most=MOST_ITERATIONS)
        subject = checked_query(topic, self.settings.limits.query_chars, "topic")
        search = partial(self._step, k=k, mode="thorough", where=where, tenant=tenant, kb=kb)
        embedder = await self._embedder_of(await self._kb(tenant, kb))
        async with self._parts.gate.paying(self._tenant(tenant)):
            return await self._parts.researcher().research(Task(subject, k, iterations, search, embedder))

    async def confidence(
        self, found: SearchResult, *, tenant: str | None = None, kb: str | None = None
    ) -> float:
        """How far the best passage of a search is about its query, from 0 to 1, whatever else was found."""
        embedder = await self._embedder_of(await self._kb(tenant, kb))
        async with self._parts.gate.paying(self._tenant(tenant)):
            return await self._parts.researcher().confidence(found.query, found.hits, embedder)

    async def verify(
        self,
        claim: str,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Verdict:
        """Whether the knowledge base supports or refutes a claim, with the sentences that say so."""
        said = checked_query(claim, None, "claim")
        search = partial(self._step, k=k, mode=mode, where=where, tenant=tenant, kb=kb)
        async with self._parts.gate.paying(self._tenant(tenant)):
            return await self._parts.verifier().verify(said, search)

    async def explain(
        self,
        query: str,
        document_id: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Explanation:
        """Why a document is in the result of a query, or at which stage it was lost."""
        from ragstone.query.explain import explain

        owner, gate = self._tenant(tenant), self._parts.gate
        settings = await gate.settings_for(owner)
        request = search_request(settings, query, k, mode, where)
        await gate.query(owner)
        scope, pipeline = await self._kb(tenant, kb), self._pipeline(settings.retrieval)
        async with gate.paying(owner):
            return await explain(self._parts.ledger, pipeline, owner, scope, request, document_id)

    async def warm(self) -> None:
        """Load the embedding model now rather than with the first query."""
        await self._parts.embedder.embed(["warm"], "query")

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

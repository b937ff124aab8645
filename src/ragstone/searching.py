"""A library that can be searched."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from ragstone.core.activity import Turn
from ragstone.core.errors import NotFoundError, RagstoneError
from ragstone.core.types import Explanation, Hit, KnowledgeBase, Mode, SearchResult
from ragstone.core.web import MOST_WEB_RESULTS, WebFindings, no_web_search
from ragstone.library import Library
from ragstone.parts import Parts
from ragstone.query.cache import SearchCache
from ragstone.query.deadline import FirstReads
from ragstone.query.request import (
    Arm,
    SearchRequest,
    checked_count,
    checked_query,
    require_an_answer,
    search_request,
)
from ragstone.query.routing.federation import FederatedSearch, RoutingOverrides
from ragstone.query.session import KbSnapshot, SearchSession
from ragstone.settings.retrieval import Fusion
from ragstone.settings.tree import Settings

logger = logging.getLogger(__name__)
MOST_PIPELINES = 256


@dataclass(frozen=True, slots=True)
class Talk:
    """What was asked, and what is searched for and answered in its place after what was said before."""

    query: str
    search: str
    question: str
    name: str = ""
    """Of the conversation; empty where there is none."""
    earlier: tuple[Turn, ...] = ()
    note: str = ""
    """Why what was said before is not known, if so."""


class SearchableLibrary(Library):
    """Finds passages, says how sure it is of them, and why a document is or is not among them."""

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
        self._first_reads = FirstReads(settings.retrieval.timeout)
        web = parts.web.find if parts.web else None
        self._federated = FederatedSearch(self._pipeline, cache, web, parts.records)

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
        conversation: str | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> SearchResult:
        """The passages that matter for a query, best first; `where` is a filter in its JSON form.

        `strategy` names the one transform (`rewrite`, `expand`, `hyde` …) to use in place of those of the settings.
        `web` says whether the web is asked too; by default that is left to `retrieval.routing`.
        A query in a `conversation`, whose name the caller gives, may lean on those before it.
        """
        talk = await self._talk(query, conversation, tenant, kb)
        how = (k, mode, where, arms, fusion, min_score, strategy)
        found = await self._remembered(
            "search", talk, RoutingOverrides(mode is not None, web), how, tenant, kb
        )
        if not talk.name:
            return found
        return replace(found, degraded=(*found.degraded, *await self._kept(talk, "", found.hits, tenant, kb)))

    async def _kept(
        self, talk: Talk, answer: str, hits: Sequence[Hit], tenant: str | None, kb: str | None
    ) -> list[str]:
        """Keep a turn of a conversation; what was amiss with it before or is now."""
        add = self.activity.conversations.add
        note = await add(talk.name, self._tenant(tenant), self._name(kb), talk.query, answer, hits)
        return [one for one in (talk.note, note) if one]

    async def _talk(self, query: str, conversation: str | None, tenant: str | None, kb: str | None) -> Talk:
        """What is asked, in the light of what was said before."""
        if conversation is None:
            return Talk(query, query, query)
        from ragstone.answer.question import resolve_follow_up

        owner, most = self._tenant(tenant), self.settings.limits.query_chars
        words = checked_query(query, most)
        turns, note = await self.activity.conversations.last(conversation, owner, self._name(kb))
        told = resolve_follow_up(words, [turn.question for turn in turns], most)
        return Talk(words, told.search, told.question, conversation, turns, note)

    async def _remembered(
        self,
        action: str,
        talk: Talk,
        overrides: RoutingOverrides,
        how: tuple[Any, ...],
        tenant: str | None,
        kb: str | None,
    ) -> SearchResult:
        """A search that somebody made: it is logged, with what became of it, and is in the audit record."""
        owner, name, audit = self._tenant(tenant), self._name(kb), self._parts.gate.audit
        settings = await self._settings_of(owner)
        request = search_request(settings, talk.search, *how)
        log = partial(self.activity.note, owner, name, conversation=talk.name)
        started = time.perf_counter()
        try:
            found = await self._find(settings, request, overrides, tenant, kb)
        except Exception as error:
            if settings.activity.searches:
                ms = round((time.perf_counter() - started) * 1000, 3)
                nothing = SearchResult(talk.query, request.query, request.mode, (), (), (), ms)
                await log(nothing, error=str(error) or type(error).__name__)
            await audit.saw(owner, action, kb=name, error=error)
            raise
        if talk.name:
            found = replace(found, query=talk.query)
        if settings.activity.searches:
            await log(found)
        results = (*found.hits, *found.records)
        named = (hit.document_id for hit in found.hits)
        await audit.saw(owner, action, kb=name, count=len(results) + len(found.web), document_ids=named)
        return found

    async def _step(
        self,
        query: str,
        k: int,
        mode: Mode | None,
        where: Mapping[str, Any] | None,
        tenant: str | None,
        kb: str | None,
        web: bool | None = None,
    ) -> SearchResult:
        """A search within something longer: nobody made it, so it is not remembered."""
        settings = await self._settings_of(self._tenant(tenant))
        request = search_request(settings, query, k, mode, where)
        return await self._find(settings, request, RoutingOverrides(mode is not None, web), tenant, kb)

    async def _settings_of(self, owner: str) -> Settings:
        async with self._first_reads.within(owner, "settings"):
            return await self._parts.gate.settings_for(owner)

    async def _scope(self, tenant: str | None, kb: str | None) -> KnowledgeBase:
        """The kb to search; who cannot be told in time is told that."""
        async with self._first_reads.within(self._tenant(tenant), "knowledge base"):
            return await self._kb(tenant, kb)

    async def _find(
        self,
        settings: Settings,
        request: SearchRequest,
        overrides: RoutingOverrides,
        tenant: str | None,
        kb: str | None,
    ) -> SearchResult:
        owner, gate = self._tenant(tenant), self._parts.gate
        await gate.query(owner)
        scope = await self._scope(tenant, kb)
        async with gate.paying(owner):
            sure = partial(self.confidence, tenant=tenant, kb=kb)
            found = await self._federated.search(owner, scope, settings.retrieval, request, sure, overrides)
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
        found = await self._parts.web.find(owner, words, wanted)
        await self._parts.gate.audit.saw(owner, "web", count=len(found.results))
        return found

    def session(self, *, tenant: str | None = None, kb: str | None = None) -> SearchSession:
        """Searches that remember: none is made twice while the kb stays as it is."""
        return SearchSession(partial(self.search, tenant=tenant, kb=kb), partial(self._snapshot, tenant, kb))

    async def _snapshot(self, tenant: str | None, kb: str | None) -> KbSnapshot:
        """What is found now depends on; a tenant that is suspended is refused."""
        scope, owner, gate = await self._scope(tenant, kb), self._tenant(tenant), self._parts.gate
        identity, settings = await gate.identity(owner), await gate.settings_for(owner)
        return KbSnapshot(identity, scope, settings.retrieval, await self._parts.ledger.sequence(owner))

    async def confidence(
        self, found: SearchResult, *, tenant: str | None = None, kb: str | None = None
    ) -> float:
        """How far the best passage of a search is about its query, from 0 to 1, whatever else was found."""
        embedder = await self._embedder_of(await self._scope(tenant, kb))
        async with self._parts.gate.paying(self._tenant(tenant)):
            return await self._parts.researcher().confidence(found.query, found.hits, embedder)

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
        settings = await self._settings_of(owner)
        request = search_request(settings, query, k, mode, where)
        await gate.query(owner)
        scope, pipeline = await self._scope(tenant, kb), self._pipeline(settings.retrieval)
        async with gate.paying(owner):
            taken_for = self._federated.analysis(settings.retrieval, request)
            try:
                told = await explain(
                    self._parts.ledger, pipeline, owner, scope, request, document_id, taken_for
                )
            except NotFoundError:
                await gate.audit.denied(owner, "explain", document_id)
                raise
        await gate.audit.saw(owner, "explain", target=document_id, kb=scope.name)
        return told

    async def warm(self, *, tenant: str | None = None) -> None:
        """Load the embedding model and have vector stores catch up now, rather than with the first query."""
        owner = self._tenant(tenant)
        await self._parts.gate.read(owner)
        await self._parts.embedder.embed(["warm"], "query")
        try:
            await self._parts.ledger.settle(owner)
        except RagstoneError as error:
            # Whatever searches goes on without, and says so.
            logger.warning("a vector store is behind, and will catch up: %s", error)

"""Searching the kbs of a tenant."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.background import let_questions_go_first
from ragstone.core.errors import InputError, NotFoundError, RagstoneError, SearchFailed
from ragstone.core.model_types import TextVectors, model_name
from ragstone.core.protocols import Tokenizer
from ragstone.core.search import (
    MOST_WEB_RESULTS,
    Exchange,
    Explanation,
    Question,
    SearchQuery,
    SearchResult,
    Stage,
    WebFindings,
    no_web_search,
)
from ragstone.core.tenants import MonthBudget
from ragstone.core.types import Hit, KnowledgeBase, Mode, Role
from ragstone.engine.access import WorkspacePart
from ragstone.language.follow_ups import Leaning, lean_on, resolve_follow_up
from ragstone.models import tokenizer_of
from ragstone.query.context import SearchRequest, checked_count, checked_query, require_an_answer, search_request
from ragstone.query.rollout import fall_back
from ragstone.query.routing.federation import RoutingOverrides
from ragstone.query.session import KbSnapshot, SearchSession
from ragstone.settings.tree import Settings

logger = logging.getLogger(__name__)
NOTABLE_MS = 1.0
"""A shorter wait for the turn is not in the trace."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A query or question, and the texts that stand for it after the earlier turns of its conversation."""

    query: str
    search: str
    question: str
    name: str = ""
    """Of the conversation; empty where there is none."""
    earlier: tuple[Exchange, ...] = ()
    note: str = ""
    """Why what was said before is not known, if so."""
    leaning: Leaning = "no"
    basis: str = ""
    """The question that it leans on, or may lean on."""

    @property
    def goes_on(self) -> bool:
        """True when it may refer to what was said before."""
        return bool(self.name or self.earlier)

    @property
    def whole(self) -> str:
        """The question with all that it may leave to the one before it."""
        return lean_on(self.question, self.basis) if self.leaning == "maybe" else self.question


class Search(WorkspacePart):
    """Finds passages, says how sure it is of them, and why a document is or is not among them."""

    async def search(self, query: SearchQuery) -> SearchResult:
        """Return the passages that matter for a query, best first."""
        talk = await self.talk(query)
        found = await self.search_and_log("search", talk, query)
        if not talk.name:
            return found
        notes = await self.keep_turn(talk, "", found.hits, query.kb)
        return replace(found, degraded=(*found.degraded, *notes))

    async def talk(self, asked: SearchQuery | Question, most_turns: int | None = None) -> Talk:
        """Return what is asked, in the light of what was said before."""
        given = asked.earlier if isinstance(asked, Question) else ()
        if asked.conversation is None and not given:
            return Talk(asked.text, asked.text, asked.text)
        from ragstone.engine.conversations import MOST_CHARS, REMEMBERED, read_recent_turns

        most = self._scope.settings.limits.query_chars
        words = checked_query(asked.text, most)
        if asked.conversation is None:
            last = given[-REMEMBERED:]
            earlier, note = tuple(Exchange(one.question[:most], one.answer[:MOST_CHARS]) for one in last), ""
        elif given:
            raise InputError("a conversation knows what was said before", hint="give its name or `earlier`, not both")
        else:
            remembered = REMEMBERED if most_turns is None else most_turns
            turns, note = await read_recent_turns(self._scope, asked.conversation, asked.kb, remembered)
            earlier = tuple(Exchange(turn.question, turn.answer) for turn in turns)
        meant = resolve_follow_up(words, earlier, most)
        name = asked.conversation or ""
        return Talk(words, meant.search, meant.question, name, earlier, note, meant.leaning, meant.basis)

    async def keep_turn(self, talk: Talk, answer: str, hits: Sequence[Hit], kb: str | None) -> list[str]:
        """Keep a turn of a conversation; return what went wrong with it before or now."""
        from ragstone.engine.conversations import add_turn

        note = await add_turn(self._scope, talk.name, kb, talk.query, answer, hits)
        return [problem for problem in (talk.note, note) if problem]

    async def search_and_log(self, action: str, talk: Talk, query: SearchQuery) -> SearchResult:
        """Search for a caller: the search is logged, with what became of it, and is in the audit record."""
        admitted = action != "search"  # a question has had its turn before
        async with self._components.search_turns.take(self._scope.tenant, admitted=admitted) as waited:
            return await self._search_and_log(action, talk, query, waited)

    async def _search_and_log(self, action: str, talk: Talk, query: SearchQuery, waited: float) -> SearchResult:
        tenant, name = self._scope.tenant, self._scope.kb_name(query.kb)
        audit = self._access.audit
        settings = await self._settings()
        meant = replace(query, text=talk.search)
        log = partial(self._log, name, talk.name)
        request = await self._request(settings, meant)
        started = time.perf_counter()
        try:
            found = _add_wait(await self._find(settings, request, meant), waited)
        except Exception as error:
            ms = round((time.perf_counter() - started) * 1000, 3)
            self._components.metrics.record_failed_search(request.mode, ms / 1000)
            facts = {"action": action, "mode": request.mode, "ms": ms, "error": getattr(error, "code", "internal")}
            logger.warning("search failed", extra={"facts": facts})
            if settings.activity.searches:
                nothing = SearchResult(talk.query, request.query, request.mode, (), (), (), ms)
                await log(nothing, error=str(error) or type(error).__name__)
            await audit.record_read(tenant, action, kb=name, error=error)
            raise
        return await self.log_found(action, talk, found, query.kb)

    async def log_found(self, action: str, talk: Talk, found: SearchResult, kb: str | None) -> SearchResult:
        """Log what was found, and have it in the metrics and in the audit record; return it under the words asked."""
        tenant, name = self._scope.tenant, self._scope.kb_name(kb)
        self._components.metrics.record_search(found)
        _log_search(action, found)
        if talk.goes_on:
            found = replace(found, query=talk.query)
        if (await self._settings()).activity.searches:
            await self._log(name, talk.name, found)
        results = (*found.hits, *found.records)
        named = (hit.document_id for hit in found.hits)
        count = len(results) + len(found.web)
        await self._access.audit.record_read(tenant, action, kb=name, count=count, document_ids=named)
        return found

    async def _log(self, kb: str, conversation: str, result: SearchResult, error: str = "") -> None:
        """Leave a note of a search. This takes no time and never fails: it is written later."""
        tenant = self._scope.tenant
        try:
            if identity := await self._access.identity(tenant):
                self._components.search_log.note(tenant, identity, kb, result, conversation, error)
        except RagstoneError as problem:
            logger.warning("cannot log a search: %s", problem)

    async def step(self, query: SearchQuery, *, dense_weight: float | None = None, counts: bool = True) -> SearchResult:
        """Search within something longer: no caller made it, so it is not remembered.

        `dense_weight` goes before that of the settings; with `counts=False` it is no question of its own.
        """
        async with self._components.search_turns.take(self._scope.tenant, admitted=True) as waited:
            settings = await self._settings()
            if dense_weight is not None:
                retrieval = settings.retrieval.model_copy(update={"dense_weight": dense_weight})
                settings = settings.model_copy(update={"retrieval": retrieval})
            found = await self._find(settings, await self._request(settings, query), query, counts=counts)
        return _add_wait(found, waited)

    async def _settings(self) -> Settings:
        tenant = self._scope.tenant
        async with self._components.first_reads.within(tenant, "settings"):
            return await self._access.settings_for(tenant)

    async def _request(self, settings: Settings, query: SearchQuery) -> SearchRequest:
        """Return what was asked for, checked, as far as searching is rolled out to the tenant."""
        return fall_back(search_request(settings, query), await self._access.phases_off(self._scope.tenant))

    async def kb(self, kb: str | None) -> KnowledgeBase:
        """Return the kb to search, or raise `StoreBusy` when the store does not answer in time."""
        async with self._components.first_reads.within(self._scope.tenant, "knowledge base"):
            return await self._scope.kb(kb)

    async def _find(
        self, settings: Settings, request: SearchRequest, query: SearchQuery, *, counts: bool = True
    ) -> SearchResult:
        tenant = self._scope.tenant
        if counts:
            await self._access.query(tenant)
        scope = await self.kb(query.kb)
        request = await self._resolve(request, scope)
        async with self._access.asking(tenant) as budget:
            sure = partial(self.confidence, kb=query.kb)
            spares = budget is not None and budget.is_nearly_spent
            overrides = RoutingOverrides(query.mode is not None or spares, query.web, self._may_see_rows)
            asked, request = request.mode, replace(request, mode=_affordable_mode(request.mode, budget))
            found = await self._components.federated_search.search(
                tenant, scope, settings.retrieval, request, sure, overrides
            )
        try:
            require_an_answer(request.arms, found)
        except SearchFailed as error:
            raise (budget and budget.refusal()) or error from None
        if budget is None or request.mode == asked:
            return found
        return replace(found, degraded=(*found.degraded, budget.note))

    @property
    def _may_see_rows(self) -> bool:
        """True for callers of the whole tenant: a row of a database is in no kb that a caller could be limited to."""
        return not self._scope.is_limited

    async def _resolve(self, request: SearchRequest, scope: KnowledgeBase) -> SearchRequest:
        """Return a request whose filter names connectors as `connector`, also where it calls one a `source`."""
        if request.where is None:
            return request
        tenant = self._scope.tenant
        async with self._components.first_reads.within(tenant, "filter"):
            meant = await self._components.ledger.of(tenant).resolve_sources(scope, request.where)
        return replace(request, where=meant)

    async def embed(self, texts: Sequence[str], role: Role) -> TextVectors:
        """Return the vectors of a caller's own texts. It counts as one question."""
        tenant, embedder = await self._scope.admit(), self._components.embedder
        if not texts or not all(text.strip() for text in texts):
            raise InputError("there is no text, or an empty one", hint="give texts with a word each")
        await self._access.query(tenant)
        async with self._components.search_turns.take(tenant), self._access.asking(tenant):
            with let_questions_go_first():
                made = await embedder.embed(texts, role)
        if made.failed:
            raise InputError(f"the model has refused text {made.failed[0]}", hint="leave it out, or cut it")
        tokens = await asyncio.to_thread(_count_tokens, tokenizer_of(embedder), texts)
        return TextVectors(made.vectors, model_name(made.model), tokens)

    async def web(self, query: str, k: int | None = None) -> WebFindings:
        """Return what the web search engine of the settings finds; nothing, and why, when it fails."""
        tenant, web = await self._scope.admit(), self._components.web
        if web is None:
            raise no_web_search()
        words = checked_query(query, self._scope.settings.limits.query_chars)
        wanted = None if k is None else checked_count("k", k, most=MOST_WEB_RESULTS)
        await self._access.query(tenant)
        async with self._access.asking(tenant):
            found = await web.find(tenant, words, wanted)
        await self._access.audit.record_read(tenant, "web", count=len(found.results))
        return found

    def session(self, kb: str | None = None) -> SearchSession:
        """Return a session over one kb, whose searches are not made twice while the kb stays as it is."""
        return SearchSession(lambda query: self.search(replace(query, kb=kb)), partial(self._snapshot, kb))

    async def _snapshot(self, kb: str | None) -> KbSnapshot:
        """Return what is found now depends on; a tenant that is suspended is refused."""
        scope, tenant = await self.kb(kb), self._scope.tenant
        identity = await self._access.identity(tenant)
        settings = await self._access.settings_for(tenant)
        return KbSnapshot(identity, scope, settings.retrieval, await self._components.ledger.of(tenant).sequence())

    async def confidence(self, found: SearchResult, kb: str | None = None) -> float:
        """Return how far the best passage of a search is about its query, from 0 to 1."""
        embedder = await self._scope.embedder_of(await self.kb(kb))
        async with self._access.asking(self._scope.tenant):
            return await self._components.researcher.confidence(found.query, found.hits, embedder)

    async def explain(self, query: SearchQuery, document_id: str) -> Explanation:
        """Explain why a document is in the result of a query, or at which stage it was lost."""
        async with self._components.search_turns.take(self._scope.tenant):
            return await self._explain(query, document_id)

    async def _explain(self, query: SearchQuery, document_id: str) -> Explanation:
        from ragstone.query.explain import explain

        tenant, components = self._scope.tenant, self._components
        settings = await self._settings()
        request = await self._request(settings, query)
        await self._access.query(tenant)
        scope, pipeline = await self.kb(query.kb), components.pipeline_for(settings.retrieval)
        request = await self._resolve(request, scope)
        async with self._access.asking(tenant):
            analysis = components.federated_search.analysis(settings.retrieval, request, records=self._may_see_rows)
            try:
                told = await explain(components.ledger, pipeline, tenant, scope, request, document_id, analysis)
            except NotFoundError:
                await self._access.audit.record_denial(tenant, "explain", document_id)
                raise
        await self._access.audit.record_read(tenant, "explain", target=document_id, kb=scope.name)
        return told


def _count_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> int:
    return sum(len(tokenizer.offsets(text)) for text in texts)


def _affordable_mode(mode: Mode, budget: MonthBudget | None) -> Mode:
    """Return the mode that a budget allows: what is thorough may ask paid models."""
    return "balanced" if mode == "thorough" and budget is not None and budget.is_nearly_spent else mode


def _add_wait(found: SearchResult, seconds: float) -> SearchResult:
    """Return the result with the time that the search waited for its turn, if it did."""
    ms = round(seconds * 1000, 3)
    if ms < NOTABLE_MS:
        return found
    return replace(found, trace=(Stage("queue", ms, 1, 1), *found.trace), took_ms=round(found.took_ms + ms, 3))


def _log_search(action: str, found: SearchResult) -> None:
    """Log that a search was made, without what was asked or found."""
    facts = {
        "action": action,
        "mode": found.mode,
        "ms": found.took_ms,
        "results": len(found.hits) + len(found.records) + len(found.web),
        "degraded": len(found.degraded),
    }
    logger.info("search", extra={"facts": facts})

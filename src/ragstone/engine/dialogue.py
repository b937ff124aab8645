"""The engine as an agent that talks to customers needs it: what was said before, passages, the web, a model, a log."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ragstone.core.clock import now
from ragstone.core.errors import NotFoundError, RagstoneError
from ragstone.core.ids import content_hash
from ragstone.core.model_types import Message
from ragstone.core.search import Exchange, Question, SearchQuery, SearchResult, WebFindings, WebResult
from ragstone.core.types import Hit, Json
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs
from ragstone.engine.search import Search, Talk
from ragstone.language.detector import language_of_query
from ragstone.language.terms import reading

if TYPE_CHECKING:
    from ragstone.answer.compose import Composition
    from ragstone.answer.extract import Extraction
    from ragstone.stores.shop.agent_settings import AgentSettingsRepository

ACTION = "chat"
"""The action that the audit record and the metrics know a reply by."""
logger = logging.getLogger(__name__)
NOTICE_HOURS = 1
"""Hours in which the shop is told once of a conversation that waits for a person."""


KEPT_REPLIES = "llm"
"""Among the kept web results, those that a language model has read from pages."""


@record_caller
class Dialogue(WorkspacePart):
    """The parts of a reply that only the engine can do; `agents.service` puts them together."""

    def __init__(self, scope: TenantScope, search: Search) -> None:
        super().__init__(scope)
        self._search = search

    @asynccontextmanager
    async def turn(self, message: str, *, kb: str | None = None) -> AsyncIterator[None]:
        """Wait for a turn to answer; what the block asks of paid services is charged to the tenant."""
        tenant = self._scope.tenant
        async with self._components.answer_turns.take(tenant), self._access.asking(tenant):
            with self._components.metrics.time_answer(ACTION), reading(await self._language(message, kb)):
                yield

    async def _language(self, message: str, kb: str | None) -> str:
        try:
            return language_of_query(message, (await self._search.kb(kb)).languages)
        except NotFoundError:
            return ""  # a shop without documents

    @within_kbs
    async def begin(self, message: str, conversation: str, *, turns: int, kb: str | None = None) -> Talk:
        """Return a message in the light of the last turns of its conversation; it counts as one question."""
        await self._access.query(self._scope.tenant)
        if kb is None:
            await self._open_kb()
        return await self._search.talk(Question(message, conversation=conversation, kb=kb), turns)

    async def _open_kb(self) -> None:
        """Make the knowledge base of the settings for a shop without documents: turns and searches are kept with it."""
        tenant, name, ledger = self._scope.tenant, self._scope.kb_name(None), self._components.ledger
        try:
            if await self._access.identity(tenant) and await ledger.of(tenant).kb(name) is None:
                await self._access.write(tenant)
                async with ledger.transaction(tenant) as tx:
                    await tx.open_kb(name)
        except RagstoneError as error:
            logger.warning("this conversation is not kept: %s", error)

    @within_kbs
    async def find(self, text: str, *, k: int, dense_weight: float, kb: str | None = None) -> SearchResult:
        """Return passages of documents, and rows where `records.sets` has some; nothing is logged or counted."""
        query = SearchQuery(text, k=k, fusion="weighted", web=False, kb=kb)
        return await self._search.step(query, dense_weight=dense_weight, counts=False)

    @within_kbs
    async def log(self, talk: Talk, found: SearchResult, *, kb: str | None = None) -> None:
        """Write down a retrieval of several sources as one search of the conversation."""
        await self._scope.admit()
        await self._search.log_found(ACTION, talk, found, kb)

    @within_kbs
    async def keep(self, talk: Talk, answer: str, hits: Sequence[Hit], *, kb: str | None = None) -> list[str]:
        """Keep a turn of the conversation; return what went wrong with it."""
        await self._scope.admit()
        return await self._search.keep_turn(talk, answer, hits, kb)

    @within_kbs
    async def web(self, query: str, *, k: int, since: datetime | None = None) -> WebFindings:
        """Return what the web search engine finds; kept results only from after `since`."""
        tenant, web = await self._scope.admit(), self._components.web
        if web is None:
            return WebFindings(query, (), problem="no web search is set up")
        found = await web.find(tenant, query, k, since)
        await self._access.audit.record_read(tenant, "web", count=len(found.results))
        return found

    @within_kbs
    async def find_cached(self, query: str, *, k: int) -> tuple[WebResult, ...] | None:
        """Return the kept results of a query that are still fresh; None when there are none."""
        tenant, web = await self._scope.admit(), self._components.web
        return await web.find_cached(tenant, query, k) if web else None

    @within_kbs
    async def complete_once(self, messages: Sequence[Message], is_good: Callable[[str], bool]) -> str | None:
        """Return the reply of the language model; None where there is none.

        A good reply is kept as long as web results are, by the hash of the messages, and given again.
        """
        from ragstone.stores.activity.web_results import WebResultRepository

        tenant, settings = await self._scope.admit(), self._scope.settings
        llm, model = self._components.llm, settings.llm
        if llm is None:
            return None
        kept = WebResultRepository(self._components.ledger, tenant, settings.web.cache_hours)
        key = content_hash(json.dumps([model.model, *([one.role, one.content] for one in messages)]))
        known = await kept.get(KEPT_REPLIES, key, 1)
        if known is not None and known.is_fresh:
            return known.results[0].snippet
        reply = await llm.complete(messages, max_tokens=model.max_tokens, seconds=model.timeout)
        if is_good(reply):
            await kept.put(KEPT_REPLIES, key, 1, [WebResult("", "", reply)])
        return reply

    @within_kbs
    async def compose(
        self, hits: Sequence[Hit], earlier: Sequence[Exchange] = (), instructions: str = ""
    ) -> Composition | None:
        """Return a reply of the language model from passages, to be iterated over; None where there is no model."""
        await self._scope.admit()
        return await self._components.answerer.begin_composition(hits, earlier, instructions)

    @within_kbs
    async def quote(self, question: str, hits: Sequence[Hit]) -> Extraction:
        """Return the parts of passages that answer a question, word for word."""
        await self._scope.admit()
        return await self._components.answerer.quote(question, hits)

    @within_kbs
    async def read_settings(self, agent: str) -> dict[str, Json]:
        """Return the settings that the tenant has given an agent; nothing where it has given none."""
        kept = await self._settings_of(await self._scope.admit()).get(agent)
        return kept.document if kept else {}

    async def write_settings(self, agent: str, document: dict[str, Json]) -> None:
        """Write the settings of an agent in place of those it has; the caller has checked them."""
        tenant = self._scope.tenant
        if not await self._access.write(tenant):
            await self._components.ledger.blobs(tenant, make=True)  # the first thing that is written for a tenant
        await self._settings_of(tenant).put(agent, document)
        await self._access.audit.record_change(tenant, "agent.set", agent)

    def _settings_of(self, tenant: str) -> AgentSettingsRepository:
        from ragstone.stores.shop.agent_settings import AgentSettingsRepository

        return AgentSettingsRepository(self._components.ledger, tenant)

    @within_kbs
    async def tell_shop(self, conversation: str, reason: str) -> None:
        """Leave the tenant a notice that a customer waits for a person, at most one an hour for a conversation."""
        queue = self._components.stores.queue.of(await self._scope.admit())
        quiet_since = now() - timedelta(hours=NOTICE_HOURS)
        await queue.warn(f"conversation:{conversation}", reason, quiet_since=quiet_since)

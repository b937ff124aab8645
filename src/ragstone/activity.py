"""What people ask and what they make of the passages they get: votes, golden queries, reports and gaps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, get_args

from ragstone.conversation import Conversations
from ragstone.core.activity import (
    Conversation,
    Feedback,
    Gap,
    GoldenQuery,
    LoggedSearch,
    SearchReport,
    Turn,
    Vote,
    net_grades,
    same_query,
)
from ragstone.core.clock import now
from ragstone.core.errors import InputError, NotFoundError, RagstoneError, unknown_kb
from ragstone.core.protocols import LLM
from ragstone.core.remedies import Action, Remedy
from ragstone.gate import Gate
from ragstone.query.request import checked_choice, checked_count, checked_query
from ragstone.settings.tree import Settings
from ragstone.stores.activity.feedback import FeedbackRepository
from ragstone.stores.activity.retrieval_log import MOST_SEARCHES, RetrievalLog
from ragstone.stores.activity.search_log import SearchLog
from ragstone.stores.ledger.ledger import SqlLedger

if TYPE_CHECKING:
    from ragstone.core.types import SearchResult
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.gaps import Labels

logger = logging.getLogger(__name__)
MOST_VOTES = 1000
MOST_VOTER_CHARS = 200


class Activity:
    """Searches that were made, votes on what they brought, and golden queries, each of a tenant's kb."""

    def __init__(
        self,
        ledger: SqlLedger,
        log: SearchLog,
        gate: Gate,
        llm: LLM | None,
        settings: Settings,
    ) -> None:
        self._ledger = ledger
        self._log = log
        self._gate = gate
        self._llm = llm
        self._settings = settings
        self.conversations = Conversations(ledger, gate, settings.activity.days)

    async def note(
        self, tenant: str, kb: str, result: SearchResult, *, conversation: str = "", error: str = ""
    ) -> None:
        """Remember a search. This takes no time and never fails: what it costs is paid later, elsewhere."""
        try:
            if identity := await self._gate.identity(tenant):
                self._log.note(tenant, identity, kb, result, conversation, error)
        except RagstoneError as problem:
            logger.warning("a search was not logged: %s", problem)

    async def vote(
        self,
        query: str,
        chunk_ids: Sequence[str],
        vote: Vote = "used",
        *,
        voter: str = "",
        tenant: str | None = None,
        kb: str | None = None,
    ) -> int:
        """Write down what somebody made of passages; how many. A voter's later word replaces the earlier one."""
        asked = checked_query(query, self._settings.limits.query_chars)
        checked_choice("vote", vote, get_args(Vote))
        checked_count("the number of passages", len(chunk_ids), most=MOST_VOTES)
        if len(voter) > MOST_VOTER_CHARS:
            raise InputError(f"the voter's name has {len(voter)} characters; at most {MOST_VOTER_CHARS} fit")
        name, scope = self._tenant(tenant), self._kb(kb)
        identity = await self._gate.write(name)
        found = await self._ledger.kb(name, scope) if identity else None
        if found is None:
            raise unknown_kb(scope, name)
        possible = [one for one in chunk_ids if _is_id(one)]
        live = await self._ledger.chunks(name, found, possible)
        unknown = next((one for one in chunk_ids if one not in live), None)
        if unknown is not None:
            await self._gate.audit.denied(name, "feedback", unknown)
            raise NotFoundError(
                f"no passage {unknown!r:.80} in knowledge base '{scope}'",
                remedy=Remedy(Action.LIST_PASSAGES),
            )
        moment, said_by = now(), voter.replace("\x00", " ").encode("utf-8", "replace").decode()
        votes = [
            Feedback(moment, scope, asked, one, live[one].document_id, vote, said_by)
            for one in dict.fromkeys(chunk_ids)
        ]
        await FeedbackRepository(self._ledger, name).add_votes(scope, votes)
        return len(votes)

    async def votes(
        self, *, limit: int = 100, tenant: str | None = None, kb: str | None = None
    ) -> list[Feedback]:
        """Votes on passages of documents that are still there, newest first."""
        checked_count("limit", limit, most=10_000)
        return await (await self._feedback(tenant)).votes(self._kb(kb), limit)

    async def searches(
        self,
        *,
        limit: int = 100,
        days: int | None = None,
        success: bool | None = None,
        conversation: str | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> list[LoggedSearch]:
        """What was asked of a kb, newest first: all, only what succeeded or failed, or one conversation's."""
        since = None if days is None else now() - timedelta(days=checked_count("days", days, most=3650))
        await self._log.flush()
        await self._gate.read(self._tenant(tenant))
        log = RetrievalLog(self._ledger, self._tenant(tenant))
        return await log.searches(self._kb(kb), since, limit, success=success, conversation=conversation)

    async def list_conversations(
        self, *, limit: int = 100, tenant: str | None = None, kb: str | None = None
    ) -> list[Conversation]:
        """The conversations about a kb, the last one first."""
        checked_count("limit", limit, most=10_000)
        return await self.conversations.all(self._tenant(tenant), self._kb(kb), limit)

    async def turns(
        self, conversation: str, *, tenant: str | None = None, kb: str | None = None
    ) -> tuple[Turn, ...]:
        """What was said in a conversation, oldest first."""
        return await self.conversations.turns(conversation, self._tenant(tenant), self._kb(kb))

    async def forget_conversation(
        self, conversation: str, *, tenant: str | None = None, kb: str | None = None
    ) -> int:
        """Remove a conversation; how many turns it had."""
        return await self.conversations.forget(conversation, self._tenant(tenant), self._kb(kb))

    async def report(
        self, *, days: int | None = None, tenant: str | None = None, kb: str | None = None
    ) -> SearchReport:
        """Times of searches, and their quality as far as votes and golden queries tell."""
        from ragstone.evaluate.gaps import search_report

        searches = await self._answered(days, tenant, kb)
        return search_report(searches, await self._labels(tenant, kb))

    async def relevance(
        self, searches: Sequence[LoggedSearch], *, tenant: str | None = None, kb: str | None = None
    ) -> list[float | None]:
        """What votes and golden queries say of each search; None where they say nothing."""
        from ragstone.evaluate.gaps import relevance

        labels = await self._labels(tenant, kb)
        return [relevance(one, labels) for one in searches]

    async def gaps(
        self, *, limit: int = 20, days: int | None = None, tenant: str | None = None, kb: str | None = None
    ) -> list[Gap]:
        """What was asked and not found, the most frequent first."""
        from ragstone.evaluate.gaps import knowledge_gaps

        checked_count("limit", limit)
        searches = await self._answered(days, tenant, kb)
        return knowledge_gaps(searches, await self._labels(tenant, kb), limit)

    async def _answered(self, days: int | None, tenant: str | None, kb: str | None) -> list[LoggedSearch]:
        """The searches that tell something of the kb: one that failed says nothing about what is in it."""
        return await self.searches(limit=MOST_SEARCHES, days=days, success=True, tenant=tenant, kb=kb)

    async def judged(self, *, tenant: str | None = None, kb: str | None = None) -> Dataset | None:
        """The queries whose passages were found useful, as a data set; None when there are none."""
        from ragstone.evaluate.gaps import labelled_queries, labels_of

        votes = await (await self._feedback(tenant)).votes(self._kb(kb))
        queries = {same_query(one.query): one.query for one in sorted(votes, key=lambda one: one.query)}
        return labelled_queries("feedback", queries, labels_of(votes))

    async def learnt_terms(self, *, tenant: str | None = None, kb: str | None = None) -> dict[str, list[str]]:
        """What words of queries are called in the documents, as far as useful passages tell: for `synonyms`."""
        from ragstone.evaluate.vocabulary import learnt_terms

        votes = await (await self._feedback(tenant)).votes(self._kb(kb))
        found = await self._ledger.kb(self._tenant(tenant), self._kb(kb)) if votes else None
        if found is None:
            return {}
        grades = net_grades(votes)
        of_use = [one for one in votes if grades[same_query(one.query)][one.document_id]]
        chunks = list(dict.fromkeys(one.chunk_id for one in of_use))
        live = await self._ledger.chunks(self._tenant(tenant), found, chunks)
        useful: dict[str, list[str]] = {}
        for one in of_use:
            if one.chunk_id in live:
                useful.setdefault(same_query(one.query), []).append(live[one.chunk_id].chunk.text)
        return learnt_terms(useful)

    async def golden(self, *, tenant: str | None = None, kb: str | None = None) -> list[GoldenQuery]:
        """The golden queries that are kept of a kb."""
        return await (await self._feedback(tenant)).golden(self._kb(kb))

    async def golden_dataset(self, *, tenant: str | None = None, kb: str | None = None) -> Dataset | None:
        """The golden queries of a kb as a data set; None when there are none."""
        from ragstone.evaluate.gaps import labelled_queries, labels_of

        kept = await self.golden(tenant=tenant, kb=kb)
        queries = {same_query(one.query): one.query for one in kept}
        return labelled_queries("golden", queries, labels_of([], kept))

    async def make_golden(
        self, count: int = 50, *, tenant: str | None = None, kb: str | None = None
    ) -> list[GoldenQuery]:
        """Make golden queries of documents of a kb and keep them; those that were made."""
        from ragstone.evaluate.golden import golden_queries

        checked_count("count", count)
        name, scope = self._tenant(tenant), self._kb(kb)
        identity = await self._gate.write(name)
        found = await self._ledger.kb(name, scope) if identity else None
        if found is None:
            raise unknown_kb(scope, name)
        documents = []
        # Ids are hashes, so the first of them are as good a sample as any.
        for document in await self._ledger.documents(name, found, limit=count):
            text = await self._ledger.text(name, document.id)
            documents.append((document.id, document.title, text))
        async with self._gate.paying(name):
            made = await golden_queries(scope, documents, self._llm)
        await FeedbackRepository(self._ledger, name).add_golden(scope, made)
        return made

    async def add_golden(
        self, query: str, document_ids: Sequence[str], *, tenant: str | None = None, kb: str | None = None
    ) -> None:
        """Keep a question of one's own with the documents that answer it."""
        asked = checked_query(query, self._settings.limits.query_chars)
        checked_count("the number of documents", len(document_ids))
        name, scope = self._tenant(tenant), self._kb(kb)
        identity = await self._gate.write(name)
        for one in document_ids:
            document = await self._ledger.document(name, one) if identity and _is_id(one) else None
            if document is None or document.kb != scope:
                await self._gate.audit.denied(name, "golden", one)
                raise NotFoundError(
                    f"no document {one!r:.80} in knowledge base '{scope}'",
                    remedy=Remedy(Action.LIST_DOCUMENTS),
                )
        kept = GoldenQuery(scope, asked, tuple(dict.fromkeys(document_ids)), "manual")
        await FeedbackRepository(self._ledger, name).add_golden(scope, [kept])

    async def remove_golden(
        self, query: str | None = None, *, tenant: str | None = None, kb: str | None = None
    ) -> int:
        """Remove a golden query, or all of a kb; how many went."""
        if not await self._gate.write(self._tenant(tenant)):
            return 0
        return await (await self._feedback(tenant)).remove_golden(self._kb(kb), query)

    async def flush(self) -> None:
        """Write what is remembered of searches now."""
        await self._log.flush()

    async def _labels(self, tenant: str | None, kb: str | None) -> Labels:
        from ragstone.evaluate.gaps import labels_of

        feedback, scope = await self._feedback(tenant), self._kb(kb)
        return labels_of(await feedback.votes(scope), await feedback.golden(scope))

    async def _feedback(self, tenant: str | None) -> FeedbackRepository:
        """Return the votes and golden queries of a tenant; one that is suspended is refused."""
        await self._gate.read(self._tenant(tenant))
        return FeedbackRepository(self._ledger, self._tenant(tenant))

    def _tenant(self, tenant: str | None) -> str:
        return self._settings.tenant if tenant is None else tenant

    def _kb(self, kb: str | None) -> str:
        return self._settings.kb if kb is None else kb


def _is_id(text: str) -> bool:
    """Whether a database can be asked for it: not all of them take every character."""
    return text.isascii() and text.isalnum()

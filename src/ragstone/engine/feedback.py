"""Searches of a tenant's kbs and the judgements on their results: votes, golden queries, reports and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, get_args

from ragstone.core.activity import (
    Gap,
    GoldenQuery,
    LoggedSearch,
    PassageVote,
    SearchReport,
    Vote,
    net_grades,
    same_query,
)
from ragstone.core.clock import now
from ragstone.core.errors import InputError, NotFoundError, unknown_kb
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.engine.access import WorkspacePart, record_caller, within_kbs
from ragstone.query.context import checked_choice, checked_count, checked_query

if TYPE_CHECKING:
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.gaps import Labels
    from ragstone.stores.activity.feedback import FeedbackRepository

MOST_VOTES = 1000
MOST_VOTER_CHARS = 200
NUMBERED = "search first: hits are numbered"


@record_caller
class Feedback(WorkspacePart):
    """Searches, votes and golden queries; `kb` is that of the settings unless another one is named."""

    @within_kbs
    async def vote(
        self, query: str, chunk_ids: Sequence[str], vote: Vote = "used", *, voter: str = "", kb: str | None = None
    ) -> int:
        """Record which passages of a search were of use, or not; return how many.

        A voter's later word replaces the earlier one. The voter of a remote caller is the caller, or one of its own.
        """
        asked = checked_query(query, self._scope.settings.limits.query_chars)
        checked_choice("vote", vote, get_args(Vote))
        checked_count("the number of passages", len(chunk_ids), most=MOST_VOTES)
        said_by = self._voter(voter)
        tenant, found = self._scope.tenant, await self._writable(kb)
        possible = [chunk_id for chunk_id in chunk_ids if _is_id(chunk_id)]
        live = await self._ledger.of(tenant).chunks(found, possible)
        unknown = next((chunk_id for chunk_id in chunk_ids if chunk_id not in live), None)
        if unknown is not None:
            await self._access.audit.record_denial(tenant, "feedback", unknown)
            raise NotFoundError(
                f"no passage {unknown!r:.80} in knowledge base '{found.name}'", remedy=Remedy(Action.LIST_PASSAGES)
            )
        moment = now()
        votes = [
            PassageVote(moment, found.name, asked, chunk_id, live[chunk_id].document_id, vote, said_by)
            for chunk_id in dict.fromkeys(chunk_ids)
        ]
        await self._repository.add_votes(found.name, votes)
        return len(votes)

    async def last_passages(self, numbers: Sequence[int], *, kb: str | None = None) -> tuple[str, list[str]]:
        """Return the query of the last search that succeeded, and the chunk ids of its hits by their numbers."""
        name = self._scope.kb_name(kb)
        last = await self.searches(limit=1, success=True, kb=kb)
        if not last:
            raise NotFoundError(f"no search of knowledge base '{name}' is remembered", hint=NUMBERED)
        shown = {hit.rank: hit.chunk_id for hit in last[0].shown}
        unknown = next((number for number in numbers if number not in shown), None)
        if unknown is not None:
            raise NotFoundError(
                f"the last search, {last[0].query!r:.80}, has no hit {unknown}: {len(shown)} are remembered",
                hint=NUMBERED,
            )
        return last[0].query, [shown[number] for number in numbers]

    @within_kbs
    async def votes(self, *, limit: int = 100, kb: str | None = None) -> list[PassageVote]:
        """Return votes on passages of documents that are still there, newest first."""
        checked_count("limit", limit, most=10_000)
        await self._scope.admit()
        return await self._repository.votes(self._scope.kb_name(kb), limit)

    async def searches(
        self,
        *,
        limit: int = 100,
        days: int | None = None,
        success: bool | None = None,
        conversation: str | None = None,
        kb: str | None = None,
    ) -> list[LoggedSearch]:
        """Return what was asked of a kb, newest first: all, only what succeeded or failed, or one conversation's."""
        from ragstone.stores.activity.retrieval_log import RetrievalLog

        since = None if days is None else now() - timedelta(days=checked_count("days", days, most=3650))
        await self._components.search_log.flush()
        log = RetrievalLog(self._ledger, await self._scope.admit())
        name = self._scope.kb_name(kb)
        return await log.searches(name, since, limit, success=success, conversation=conversation)

    async def report(self, *, days: int | None = None, kb: str | None = None) -> SearchReport:
        """Return the times of searches, and their quality as far as votes and golden queries tell."""
        from ragstone.evaluate.gaps import search_report

        searches = await self._successful_searches(days, kb)
        return search_report(searches, await self._labels(kb))

    async def relevance(self, searches: Sequence[LoggedSearch], *, kb: str | None = None) -> list[float | None]:
        """Return what votes and golden queries say of each search; None where they say nothing."""
        from ragstone.evaluate.gaps import relevance

        labels = await self._labels(kb)
        return [relevance(search, labels) for search in searches]

    async def gaps(self, *, limit: int = 20, days: int | None = None, kb: str | None = None) -> list[Gap]:
        """Return what was asked and not found, the most frequent first."""
        from ragstone.evaluate.gaps import knowledge_gaps

        checked_count("limit", limit)
        searches = await self._successful_searches(days, kb)
        return knowledge_gaps(searches, await self._labels(kb), limit)

    async def judged(self, *, kb: str | None = None) -> Dataset | None:
        """Return the queries whose passages were found useful, as a data set; None when there are none."""
        from ragstone.evaluate.gaps import labelled_queries, labels_of

        await self._scope.admit()
        votes = await self._repository.votes(self._scope.kb_name(kb))
        queries = {same_query(vote.query): vote.query for vote in sorted(votes, key=lambda vote: vote.query)}
        return labelled_queries("feedback", queries, labels_of(votes))

    async def learnt_terms(self, *, kb: str | None = None) -> dict[str, list[str]]:
        """Return what words of queries are called in useful passages, for `synonyms`."""
        from ragstone.evaluate.vocabulary import learnt_terms

        tenant, name = await self._scope.admit(), self._scope.kb_name(kb)
        votes = await self._repository.votes(name)
        found = await self._ledger.of(tenant).kb(name) if votes else None
        if found is None:
            return {}
        grades = net_grades(votes)
        of_use = [vote for vote in votes if grades[same_query(vote.query)][vote.document_id]]
        chunks = list(dict.fromkeys(vote.chunk_id for vote in of_use))
        live = await self._ledger.of(tenant).chunks(found, chunks)
        useful: dict[str, list[str]] = {}
        for vote in of_use:
            if vote.chunk_id in live:
                useful.setdefault(same_query(vote.query), []).append(live[vote.chunk_id].chunk.text)
        return learnt_terms(useful)

    async def golden(self, *, kb: str | None = None) -> list[GoldenQuery]:
        """Return the golden queries of a kb."""
        await self._scope.admit()
        return await self._repository.golden(self._scope.kb_name(kb))

    async def golden_dataset(self, *, kb: str | None = None) -> Dataset | None:
        """Return the golden queries of a kb as a data set; None when there are none."""
        from ragstone.evaluate.gaps import labelled_queries, labels_of

        kept = await self.golden(kb=kb)
        queries = {same_query(golden.query): golden.query for golden in kept}
        return labelled_queries("golden", queries, labels_of([], kept))

    async def make_golden(self, count: int = 50, *, kb: str | None = None) -> list[GoldenQuery]:
        """Make golden queries of documents of a kb and keep them; return those that were made."""
        from ragstone.evaluate.golden import golden_queries

        checked_count("count", count)
        tenant, found = self._scope.tenant, await self._writable(kb)
        documents = []
        # Ids are hashes, so the first of them are as good a sample as any.
        for document in await self._ledger.of(tenant).documents(found, limit=count):
            text = await self._ledger.of(tenant).text(document.id)
            documents.append((document.id, document.title, text))
        async with self._access.asking(tenant):
            made = await golden_queries(found.name, documents, self._components.llm)
        await self._repository.add_golden(found.name, made)
        return made

    async def add_golden(self, query: str, document_ids: Sequence[str], *, kb: str | None = None) -> None:
        """Keep a question of one's own with the documents that answer it."""
        asked = checked_query(query, self._scope.settings.limits.query_chars)
        checked_count("the number of documents", len(document_ids))
        tenant, name = self._scope.tenant, self._scope.kb_name(kb)
        identity = await self._access.write(tenant)
        for document_id in document_ids:
            possible = identity and _is_id(document_id)
            document = await self._ledger.of(tenant).document(document_id) if possible else None
            if document is None or document.kb != name:
                await self._access.audit.record_denial(tenant, "golden", document_id)
                raise NotFoundError(
                    f"no document {document_id!r:.80} in knowledge base '{name}'", remedy=Remedy(Action.LIST_DOCUMENTS)
                )
        kept = GoldenQuery(name, asked, tuple(dict.fromkeys(document_ids)), "manual")
        await self._repository.add_golden(name, [kept])

    async def remove_golden(self, query: str | None = None, *, kb: str | None = None) -> int:
        """Remove a golden query, or all of a kb; return how many went."""
        if not await self._access.write(self._scope.tenant):
            return 0
        return await self._repository.remove_golden(self._scope.kb_name(kb), query)

    def _voter(self, name: str) -> str:
        """Return the name that votes are stored under; no remote caller can replace the votes of another."""
        caller = self._scope.actor if self._scope.is_remote else ""
        # No actor contains a tab, so that no two callers can make up the same name.
        prefix = f"{caller}\t" if caller and name else caller
        most = MOST_VOTER_CHARS - len(prefix)
        if len(name) > most:
            raise InputError(f"the voter's name has {len(name)} characters; at most {most} fit")
        return prefix + name.replace("\x00", " ").encode("utf-8", "replace").decode()

    async def _successful_searches(self, days: int | None, kb: str | None) -> list[LoggedSearch]:
        """Return the searches that tell something of the kb: not those that failed or, as a greeting, asked nothing."""
        from ragstone.stores.activity.retrieval_log import MOST_SEARCHES

        found = await self.searches(limit=MOST_SEARCHES, days=days, success=True, kb=kb)
        return [search for search in found if search.sources_queried]

    async def _labels(self, kb: str | None) -> Labels:
        from ragstone.evaluate.gaps import labels_of

        await self._scope.admit()
        repository, name = self._repository, self._scope.kb_name(kb)
        return labels_of(await repository.votes(name), await repository.golden(name))

    async def _writable(self, kb: str | None) -> KnowledgeBase:
        """Return a kb of a tenant that may write, or raise `NotFoundError`."""
        tenant, name = self._scope.tenant, self._scope.kb_name(kb)
        identity = await self._access.write(tenant)
        found = await self._ledger.of(tenant).kb(name) if identity else None
        if found is None:
            raise unknown_kb(name, tenant)
        return found

    @property
    def _repository(self) -> FeedbackRepository:
        from ragstone.stores.activity.feedback import FeedbackRepository

        return FeedbackRepository(self._ledger, self._scope.tenant)


def _is_id(text: str) -> bool:
    """Return whether a database can be asked for it: not all of them take every character."""
    return text.isascii() and text.isalnum()

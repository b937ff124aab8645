"""Everything that is done for one tenant."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ragstone.core.answers import Answer, AnswerEvent, CheckedText, Depth, Research, Verdict
from ragstone.core.audit import ErasureTarget, Receipt
from ragstone.core.model_types import TextVectors
from ragstone.core.search import Explanation, Question, SearchQuery, SearchResult, WebFindings
from ragstone.core.tenants import Usage
from ragstone.core.types import Mode, Role
from ragstone.engine.access import TenantScope, record_caller, within_kbs
from ragstone.engine.search import Search
from ragstone.query.context import checked_choice
from ragstone.query.session import SearchSession
from ragstone.settings.tree import Settings

if TYPE_CHECKING:
    # A search needs none of these: each is imported when it is first used.
    from ragstone.engine.answers import Answers, OnChecked
    from ragstone.engine.archive import Archive
    from ragstone.engine.articles import Articles
    from ragstone.engine.audit import Audit
    from ragstone.engine.collections import Collections
    from ragstone.engine.conversations import Conversations
    from ragstone.engine.dialogue import Dialogue
    from ragstone.engine.documents import Documents
    from ragstone.engine.embeddings.embeddings import KbEmbeddings
    from ragstone.engine.feedback import Feedback
    from ragstone.engine.jobs import Jobs
    from ragstone.engine.knowledge_bases import KnowledgeBases
    from ragstone.engine.monitoring.analytics import Analytics
    from ragstone.engine.receipts import Receipts
    from ragstone.engine.shop.shop import TenantShop
    from ragstone.engine.sources import Sources
    from ragstone.engine.tasks import Tasks

Erasable = Literal["document", "source", "kb"]


@record_caller
class Workspace:
    """An engine as one tenant sees it; `Engine.workspace` makes it.

    The tenant, the actor and the request id are bound here: no method takes a tenant, and every audit record of a
    call carries the actor and the request id. A `kb` that is not named is that of the settings.
    """

    def __init__(self, scope: TenantScope) -> None:
        self._scope = scope
        self._search = Search(scope)

    @property
    def tenant(self) -> str:
        """The tenant's name."""
        return self._scope.tenant

    @property
    def settings(self) -> Settings:
        """The settings of the engine."""
        return self._scope.settings

    @within_kbs
    async def search(self, query: SearchQuery | str) -> SearchResult:
        """Return the passages that matter for a query, best first."""
        return await self._search.search(_query(query))

    @within_kbs
    async def ask(self, question: Question | str) -> Answer:
        """Return an answer in which every sentence carries the passage it stands on."""
        return await self._answers.ask(_question(question))

    def stream(self, question: Question | str) -> AsyncGenerator[AnswerEvent]:
        """Yield what `ask` returns while it is made: sentences as they are checked, the citations, the answer."""
        return self._answers.stream(_question(question))

    @within_kbs
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
        return await self._answers.verify(SearchQuery(claim, k=k, mode=mode, where=where, kb=kb))

    async def verify_web(self, claim: str, *, k: int | None = None) -> Verdict:
        """Return whether what the web search engine of the settings finds supports or refutes a claim."""
        return await self._answers.verify_web(claim, k)

    @within_kbs
    async def verify_text(
        self,
        text: str,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        kb: str | None = None,
        most: int = 100,
        on_progress: OnChecked | None = None,
    ) -> CheckedText:
        """Return the verdict on each sentence of a text that claims something, up to `most` of them."""
        query = SearchQuery(text, k=k, mode=mode, where=where, kb=kb)
        return await self._answers.verify_text(query, most, on_progress)

    @within_kbs
    async def verify_file(
        self,
        path: str | Path,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        kb: str | None = None,
        most: int = 100,
        on_progress: OnChecked | None = None,
    ) -> CheckedText:
        """Return the verdicts on the sentences of a file, of any format that can be ingested; it is not ingested."""
        query = SearchQuery("", k=k, mode=mode, where=where, kb=kb)
        return await self._answers.verify_file(Path(path), query, most, on_progress)

    @within_kbs
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
        return await self._answers.research(SearchQuery(topic, where=where, kb=kb), depth, iterations)

    @within_kbs
    async def explain(self, query: SearchQuery | str, document_id: str) -> Explanation:
        """Explain why a document is in the result of a query, or at which stage it was lost."""
        return await self._search.explain(_query(query), document_id)

    async def web(self, query: str, *, k: int | None = None) -> WebFindings:
        """Return what the web search engine of the settings finds; nothing, and why, when it fails."""
        return await self._search.web(query, k)

    def session(self, *, kb: str | None = None) -> SearchSession:
        """Return searches that remember: none is made twice while the kb stays as it is."""
        return self._search.session(kb)

    @within_kbs
    async def confidence(self, found: SearchResult, *, kb: str | None = None) -> float:
        """Return how far the best passage of a search is about its query, from 0 to 1, whatever else was found."""
        return await self._search.confidence(found, kb)

    @within_kbs
    async def embed(self, texts: Sequence[str], role: Role = "document") -> TextVectors:
        """Return the vectors that the embedding model of the settings gives these texts; nothing is stored."""
        return await self._search.embed(texts, role)

    @within_kbs
    async def erase(self, kind: Erasable, *names: str, kb: str | None = None) -> list[Receipt]:
        """Remove documents by id, or sources or kbs by name, everywhere; return receipts of those that there were.

        Slower than `delete`: what is removed is overwritten, and looked for in every store afterwards.
        """
        checked_choice("kind", kind, get_args(Erasable))
        components = self._scope.components
        tenant = await self._scope.admit()
        await components.search_log.flush()  # what is still on its way to the disk is to go, too
        name = self._scope.kb_name(kb) if kind == "source" else ""
        from ragstone.engine.tasks import forget_tasks

        seen = [ErasureTarget(kind, target, name) for target in names if await self._sees(kind, target)]
        return await components.eraser.erase(tenant, seen, partial(forget_tasks, components, tenant))

    async def _sees(self, kind: Erasable, target: str) -> bool:
        if kind == "document":
            return await self._scope.sees_document(target)
        return kind == "source" or self._scope.sees(target)

    async def usage(self) -> Usage:
        """Return what the tenant has and has used, or raise `NotFoundError` while it does not exist."""
        return await self._scope.components.stores.tenants.usage(await self._scope.admit())

    async def is_on(self, flag: str) -> bool:
        """Return whether a feature is on, as `flags.NAME` of the tenant's settings says."""
        return await self._scope.components.access.is_on(self._scope.tenant, flag)

    @cached_property
    def documents(self) -> Documents:
        """Documents: uploaded, ingested, listed, read, deleted."""
        from ragstone.engine.documents import Documents

        return Documents(self._scope)

    @cached_property
    def knowledge_bases(self) -> KnowledgeBases:
        """Knowledge bases: listed, counted, renamed, deleted."""
        from ragstone.engine.knowledge_bases import KnowledgeBases

        return KnowledgeBases(self._scope)

    @cached_property
    def collections(self) -> Collections:
        """Knowledge bases that are built from one corpus file as a whole."""
        from ragstone.engine.collections import Collections

        return Collections(self._scope)

    @cached_property
    def sources(self) -> Sources:
        """Configured connectors."""
        from ragstone.engine.sources import Sources

        return Sources(self._scope)

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs that workers do in the background, and notices of how they ended."""
        from ragstone.engine.jobs import Jobs

        return Jobs(self._scope)

    @cached_property
    def feedback(self) -> Feedback:
        """The searches that were made, votes on what they found, and golden queries."""
        from ragstone.engine.feedback import Feedback

        return Feedback(self._scope)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations and their turns."""
        from ragstone.engine.conversations import Conversations

        return Conversations(self._scope)

    @cached_property
    def dialogue(self) -> Dialogue:
        """The parts of a reply to a customer that only the engine can do; `agents.service` puts them together."""
        from ragstone.engine.dialogue import Dialogue

        return Dialogue(self._scope, self._search)

    @cached_property
    def embeddings(self) -> KbEmbeddings:
        """The models and vectors of a kb."""
        from ragstone.engine.embeddings.embeddings import KbEmbeddings

        return KbEmbeddings(self._scope)

    @cached_property
    def receipts(self) -> Receipts:
        """Receipts of answers."""
        from ragstone.engine.receipts import Receipts

        return Receipts(self._scope, self.documents)

    @cached_property
    def archive(self) -> Archive:
        """Archives out and in."""
        from ragstone.engine.archive import Archive

        return Archive(self._scope)

    @cached_property
    def articles(self) -> Articles:
        """Runs of the article pipeline, with their checkpoints and articles."""
        from ragstone.engine.articles import Articles

        return Articles(self._scope)

    @cached_property
    def tasks(self) -> Tasks:
        """Exports, imports and evaluations that workers do in the background."""
        from ragstone.engine.tasks import Tasks

        return Tasks(self._scope)

    @cached_property
    def shop(self) -> TenantShop:
        """Products, services and appointments of a shop."""
        from ragstone.engine.shop.shop import TenantShop

        return TenantShop(self._scope)

    @cached_property
    def analytics(self) -> Analytics:
        """Volumes, times, sources and costs by period."""
        from ragstone.engine.monitoring.analytics import Analytics

        return Analytics(self._scope)

    @cached_property
    def audit(self) -> Audit:
        """The audit record."""
        from ragstone.engine.audit import Audit

        return Audit(self._scope)

    @cached_property
    def _answers(self) -> Answers:
        from ragstone.engine.answers import Answers

        return Answers(self._scope, self._search)


def _query(query: SearchQuery | str) -> SearchQuery:
    return query if isinstance(query, SearchQuery) else SearchQuery(query)


def _question(question: Question | str) -> Question:
    return question if isinstance(question, Question) else Question(question)

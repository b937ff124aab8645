"""The runs of a tenant's article pipeline: kept with their checkpoints, so that they can be resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import get_args

from ragstone.core.agents.articles import ArticleRun, GraphName, WrittenArticle
from ragstone.core.clock import now
from ragstone.core.errors import NotFoundError
from ragstone.core.types import Json
from ragstone.engine.access import WorkspacePart, record_caller, within_kbs
from ragstone.query.context import checked_choice, checked_count, checked_query
from ragstone.stores.activity.article_runs import ArticleRunRepository

ERROR_CHARS = 1000


@record_caller
class Articles(WorkspacePart):
    """Runs of the article pipeline, for as long as searches are remembered; `ragstone.agents.article` writes them."""

    @within_kbs
    async def start(self, topic: str, *, graph: GraphName = "full", kb: str | None = None) -> ArticleRun:
        """Add a run, which nobody works on yet."""
        words = checked_query(topic, self._scope.settings.limits.query_chars, "topic")
        checked_choice("graph", graph, get_args(GraphName))
        await self._scope.write()
        found = await self._scope.kb(kb)
        oldest = now() - timedelta(days=self._scope.settings.activity.days)
        return await self.get(await self._repository.add(found.name, graph, words, oldest))

    @within_kbs
    async def get(self, run_id: str) -> ArticleRun:
        """Return a run, with its article once it has completed, or raise `NotFoundError`."""
        tenant = await self._scope.admit()
        found = await self._repository.get(run_id) if _is_id(run_id) else None
        if found is None or not self._scope.sees(found.kb):
            await self._scope.components.audit.record_denial(tenant, "article.read", run_id)
            hint = "the id is printed when a run begins, and lists of runs have it"
            raise NotFoundError(f"there is no run {run_id:.60}", hint=hint)
        return found

    @within_kbs
    async def list(self, *, limit: int = 100, kb: str | None = None) -> Sequence[ArticleRun]:
        """Return the runs on a kb, newest first, without their articles."""
        checked_count("limit", limit, most=1000)
        await self._scope.admit()
        return await self._repository.list(self._scope.kb_name(kb), limit)

    @within_kbs
    async def take(self, run_id: str) -> int:
        """Make the caller the one who goes on with a run; return the token that its writes carry."""
        await self._scope.write()
        await self.get(run_id)
        return await self._repository.take(run_id)

    @within_kbs
    async def checkpoint(self, run_id: str) -> Json:
        """Return the last checkpoint of a run; None before the first."""
        await self.get(run_id)
        return await self._repository.checkpoint(run_id)

    @within_kbs
    async def save(self, run_id: str, token: int, checkpoint: Json) -> None:
        """Replace the checkpoint of a run, or raise `LeaseLost` when another process goes on with it."""
        await self._scope.admit()
        await self._repository.save(run_id, token, checkpoint)

    @within_kbs
    async def finish(self, run_id: str, token: int, article: WrittenArticle | None, *, error: str = "") -> None:
        """Write down what a run came to: its article, or why it failed."""
        await self._scope.admit()
        await self._repository.finish(run_id, token, article, error[:ERROR_CHARS])

    @asynccontextmanager
    async def paying(self) -> AsyncIterator[None]:
        """Charge the tenant for the models that the block asks; once its budget is spent, none of them answers."""
        async with self._scope.components.access.asking(self._scope.tenant):
            yield

    @property
    def _repository(self) -> ArticleRunRepository:
        return ArticleRunRepository(self._scope.components.ledger, self._scope.tenant)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isalnum()

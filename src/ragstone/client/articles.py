"""Articles that a service has had written."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.client.connection import RemotePart, path_of
from ragstone.core.agents.articles import ArticleRun
from ragstone.schemas.agents.articles import ArticleRunSchema


class RemoteArticles(RemotePart):
    """Runs of the article pipeline."""

    async def get(self, run_id: str) -> ArticleRun:
        """Return a run, with its article once it has completed, or raise `NotFoundError`."""
        return ArticleRunSchema.read_as(ArticleRun, await self._connection.get(path_of("articles", run_id)))

    async def list(self, *, limit: int = 100, kb: str | None = None) -> Sequence[ArticleRun]:
        """Return the runs on a kb, newest first, without their articles."""
        data = await self._connection.get("/v1/articles", limit=limit, kb=kb)
        return [ArticleRunSchema.read_as(ArticleRun, run) for run in data["runs"]]

"""Exports, imports, measurements and articles by a service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ragstone.client.connection import RemotePart, path_of
from ragstone.client.documents import open_content
from ragstone.core.agents.articles import ArticleRun, GraphName
from ragstone.core.jobs import Job, Labels, TaskFile
from ragstone.core.types import Json
from ragstone.schemas.agents.articles import ArticleRunSchema
from ragstone.schemas.jobs import JobSchema


class RemoteTasks(RemotePart):
    """Queues tasks of a tenant and returns what they made."""

    async def export(self, *, kbs: Sequence[str] | None = None, files: bool = True) -> Job:
        """Queue the writing of all kbs, or some, into an archive."""
        return await self._queue("exports", {"kbs": None if kbs is None else list(kbs), "files": files})

    async def import_archive(
        self, content: bytes | Path | IO[bytes], *, kbs: Sequence[str] | None = None, overwrite: bool = False
    ) -> Job:
        """Queue the import of an archive; what is there already stays unless it is to be overwritten."""
        form: dict[str, Json] = {"overwrite": str(overwrite).lower()} | ({} if kbs is None else {"kb": list(kbs)})
        with open_content(content) as file:
            return JobSchema.read_as(Job, await self._connection.upload("/v1/imports", "archive", file, form))

    async def evaluate(
        self, labels: Labels = "golden", *, systems: Sequence[str] = (), limit: int | None = None, kb: str | None = None
    ) -> Job:
        """Queue a measurement of search on the golden queries of a kb, or on its votes."""
        body = {"labels": labels, "systems": list(systems), "limit": limit, "kb": kb}
        return await self._queue("evaluations", body)

    async def tune(
        self,
        labels: Labels = "golden",
        *,
        budget_ms: float | None = None,
        limit: int | None = None,
        kb: str | None = None,
    ) -> Job:
        """Queue a search for better settings; what it finds is in its result and applied by nobody."""
        return await self._queue("tunings", {"labels": labels, "budget_ms": budget_ms, "limit": limit, "kb": kb})

    async def write_article(
        self, topic: str = "", *, graph: GraphName = "full", run_id: str | None = None, kb: str | None = None
    ) -> Job:
        """Queue the writing of an article on a topic, or the rest of one that a run has begun."""
        if run_id is not None:
            return JobSchema.read_as(Job, await self._connection.post(path_of("articles", run_id, "resume"), {}))
        return await self._queue("articles", {"topic": topic, "graph": graph, "kb": kb})

    async def result(self, job_id: str) -> TaskFile:
        """Return what a task has made, or raise `NotFoundError`."""
        return TaskFile(*await self._connection.get_file(path_of("jobs", job_id, "result")))

    async def _queue(self, name: str, body: Json) -> Job:
        return JobSchema.read_as(Job, await self._connection.post(path_of(name), body))


class RemoteArticles(RemotePart):
    """Runs of the article pipeline."""

    async def get(self, run_id: str) -> ArticleRun:
        """Return a run, with its article once it has completed, or raise `NotFoundError`."""
        return ArticleRunSchema.read_as(ArticleRun, await self._connection.get(path_of("articles", run_id)))

    async def list(self, *, limit: int = 100, kb: str | None = None) -> Sequence[ArticleRun]:
        """Return the runs on a kb, newest first, without their articles."""
        data = await self._connection.get("/v1/articles", limit=limit, kb=kb)
        return [ArticleRunSchema.read_as(ArticleRun, run) for run in data["runs"]]

"""Knowledge bases with their embeddings, sources and jobs of a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from ragstone.client.connection import RemotePart, path_of
from ragstone.core.errors import RemoteError
from ragstone.core.jobs import ACTIVE, Job, JobState, Notice, SourceRecord
from ragstone.core.spaces import SpaceRecord
from ragstone.core.types import KnowledgeBase, Stats
from ragstone.schemas.embeddings import SpaceSchema
from ragstone.schemas.jobs import JobSchema, NoticeSchema
from ragstone.schemas.knowledge_bases import KbSchema, StatsSchema
from ragstone.schemas.sources import SourceSchema


class RemoteKnowledgeBases(RemotePart):
    """Knowledge bases: listed, counted, renamed, deleted."""

    async def list(self) -> Sequence[KnowledgeBase]:
        """Return all knowledge bases that the key may see."""
        data = await self._connection.get("/v1/kbs")
        return [KbSchema.read_as(KnowledgeBase, kb) for kb in data["kbs"]]

    async def stats(self, kb: str) -> Stats:
        """Return the counts of a kb's live content."""
        return StatsSchema.read_as(Stats, await self._connection.get(path_of("kbs", kb)))

    async def delete(self, kb: str) -> int:
        """Remove a kb with everything in it; return how many documents that were."""
        return int((await self._connection.delete(path_of("kbs", kb)))["documents"])

    async def rename(self, kb: str, name: str) -> KnowledgeBase:
        """Give a kb another name; what is in it, its sources, jobs and files go along."""
        data = await self._connection.patch(path_of("kbs", kb), {"name": name})
        return next(found for found in await self.list() if found.name == data["name"])


class RemoteEmbeddings(RemotePart):
    """The models and vectors of a kb."""

    async def queue(self, model: str | None = None, *, kb: str) -> Job:
        """Queue a job that makes all vectors of a kb again, by another model or by the same."""
        return JobSchema.read_as(Job, await self._connection.post(path_of("kbs", kb, "reembed"), {"model": model}))

    async def spaces(self, *, kb: str) -> list[SpaceRecord]:
        """Return the Spaces of a kb, oldest generation first."""
        data = await self._connection.get(path_of("kbs", kb, "spaces"))
        return [SpaceSchema.read_as(SpaceRecord, space) for space in data["spaces"]]


class RemoteSources(RemotePart):
    """Configured connectors."""

    async def add(
        self, kind: str, name: str, config: Mapping[str, Any], *, schedule: str | None = None, kb: str | None = None
    ) -> SourceRecord:
        """Set up a source."""
        body = {"kind": kind, "name": name, "config": dict(config), "schedule": schedule, "kb": kb}
        return SourceSchema.read_as(SourceRecord, await self._connection.post("/v1/sources", body))

    async def list(self, *, kb: str | None = None) -> Sequence[SourceRecord]:
        """Return the sources of a kb, or of all."""
        data = await self._connection.get("/v1/sources", kb=kb)
        return [SourceSchema.read_as(SourceRecord, source) for source in data["sources"]]

    async def get(self, name: str, *, kb: str | None = None) -> SourceRecord:
        """Return a source; secrets in its configuration are masked."""
        return SourceSchema.read_as(SourceRecord, await self._connection.get(path_of("sources", name), kb=kb))

    async def sync(self, name: str, *, afresh: bool = False, kb: str | None = None) -> Job:
        """Queue a sync; `afresh` reads the source from its beginning."""
        data = await self._connection.post(path_of("sources", name, "sync"), afresh=afresh, kb=kb)
        return JobSchema.read_as(Job, data)

    async def pause(self, name: str, *, kb: str | None = None) -> None:
        """Pause the schedule of a source."""
        await self._connection.post(path_of("sources", name, "pause"), kb=kb)

    async def resume(self, name: str, *, kb: str | None = None) -> None:
        """Resume the schedule of a source."""
        await self._connection.post(path_of("sources", name, "resume"), kb=kb)

    async def remove(self, name: str, *, keep_documents: bool = False, kb: str | None = None) -> int:
        """Remove a source with its documents, or leave these there; return how many that were."""
        data = await self._connection.delete(path_of("sources", name), keep_documents=keep_documents, kb=kb)
        return int(data["documents"])


class RemoteJobs(RemotePart):
    """Jobs that workers do in the background, and notices of how they ended."""

    async def list(
        self, *, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        data = await self._connection.get("/v1/jobs", state=list(states) or None, source=source, limit=limit)
        return [JobSchema.read_as(Job, job) for job in data["jobs"]]

    async def get(self, job_id: str) -> Job:
        """Return a job."""
        return JobSchema.read_as(Job, await self._connection.get(path_of("jobs", job_id)))

    async def follow(self, job_id: str) -> AsyncGenerator[Job]:
        """Yield a job each time it has changed, until it has ended."""
        async for name, data in self._connection.stream(path_of("jobs", job_id)):
            if name == "job":
                job = JobSchema.read_as(Job, data)
                yield job
                if job.state not in ACTIVE:
                    return
        raise RemoteError(f"the service ended before job {job_id} did", hint="follow the job again")

    async def mark_read(self, notices: Sequence[int]) -> None:
        """Mark notices as read, by their ids."""
        await self._connection.post("/v1/notices/read", {"ids": list(notices)})

    async def cancel(self, job_id: str) -> bool:
        """Stop a job that has not ended; False when it has."""
        if (await self.get(job_id)).state not in ACTIVE:
            return False
        data = await self._connection.post(path_of("jobs", job_id, "cancel"))
        return bool(data["state"] == "cancelled")

    async def retry(self, job_id: str) -> bool:
        """Try a job that failed or was cancelled once more; False when it did neither."""
        if (await self.get(job_id)).state not in ("failed", "cancelled"):
            return False
        data = await self._connection.post(path_of("jobs", job_id, "retry"))
        return data["state"] not in ("failed", "cancelled")

    async def counts(self, *, source: str | None = None) -> Mapping[str, int]:
        """Return how many jobs, or how many of a source, are in which state."""
        counts: Mapping[str, int] = (await self._connection.get("/v1/jobs", source=source, limit=1))["counts"]
        return counts

    async def notices(self, *, unread: bool = False, limit: int = 100) -> Sequence[Notice]:
        """Return how uploads and syncs ended, newest first."""
        data = await self._connection.get("/v1/notices", unread=unread, limit=limit)
        return [NoticeSchema.read_as(Notice, notice) for notice in data["notices"]]

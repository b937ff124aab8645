"""Uploads, sources and jobs without async."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.blocking.run import Run
from ragstone.core.jobs import DocumentStatus, Job, Notice, SourceRecord
from ragstone.core.types import Failure
from ragstone.ingest.sources.files.overlaps import Overlaps

if TYPE_CHECKING:
    from ragstone.intake import Intake


class BlockingIntake:
    """`Intake` without async, for the loop of a `Ragstone`."""

    def __init__(self, intake: Intake, run: Run) -> None:
        self._intake = intake
        self._run = run

    def upload(self, content: bytes, filename: str, **options: Any) -> DocumentStatus:
        return self._run(self._intake.upload(content, filename, **options))

    def queue(self, *paths: str | Path, **options: Any) -> tuple[list[DocumentStatus], list[Failure]]:
        return self._run(self._intake.queue(*paths, **options))

    def status(self, document_id: str, **options: Any) -> DocumentStatus:
        return self._run(self._intake.status(document_id, **options))

    def jobs(self, **options: Any) -> list[Job]:
        return self._run(self._intake.jobs(**options))

    def job(self, job_id: str, **options: Any) -> Job:
        return self._run(self._intake.job(job_id, **options))

    def cancel(self, job_id: str, **options: Any) -> bool:
        return self._run(self._intake.cancel(job_id, **options))

    def retry(self, job_id: str, **options: Any) -> bool:
        return self._run(self._intake.retry(job_id, **options))

    def counts(self, **options: Any) -> Mapping[str, int]:
        return self._run(self._intake.counts(**options))

    def notices(self, **options: Any) -> list[Notice]:
        return self._run(self._intake.notices(**options))

    def mark_read(self, notices: Sequence[int], **options: Any) -> None:
        self._run(self._intake.mark_read(notices, **options))

    def add_source(self, kind: str, name: str, config: Mapping[str, Any], **options: Any) -> SourceRecord:
        return self._run(self._intake.add_source(kind, name, config, **options))

    def sources(self, **options: Any) -> list[SourceRecord]:
        return self._run(self._intake.sources(**options))

    def source(self, name: str, **options: Any) -> SourceRecord:
        return self._run(self._intake.source(name, **options))

    def overlaps(self, added: SourceRecord, **options: Any) -> Overlaps | None:
        return self._run(self._intake.overlaps(added, **options))

    def sync(self, name: str, **options: Any) -> Job:
        return self._run(self._intake.sync(name, **options))

    def sync_all(self, **options: Any) -> list[Job]:
        return self._run(self._intake.sync_all(**options))

    def pause(self, name: str, paused: bool = True, **options: Any) -> None:
        self._run(self._intake.pause(name, paused, **options))

    def remove_source(self, name: str, **options: Any) -> int:
        return self._run(self._intake.remove_source(name, **options))

    def work(self, *, only: str | None = None) -> None:
        """Do what is queued until nothing is left that could be done now."""
        self._run(self._work(only))

    async def _work(self, only: str | None) -> None:
        # What a worker is made of belongs to the loop: it is made there too.
        await self._intake.worker(only=only).run(until_idle=True)

"""The engine for scripts and notebooks: the same methods, without async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ragstone.configure import load_settings
from ragstone.core.answers import Answer
from ragstone.core.collections import Collection
from ragstone.core.erasure import Receipt, TargetKind
from ragstone.core.errors import InputError
from ragstone.core.jobs import DocumentStatus, Job, Notice, SourceRecord
from ragstone.core.settings import Adapter, Settings
from ragstone.core.spaces import SpaceRecord
from ragstone.core.tenants import UNLIMITED, Quotas, Tenant, TenantBook, Usage
from ragstone.core.types import (
    Document,
    Explanation,
    Failure,
    IngestReport,
    Item,
    KnowledgeBase,
    LiveChunk,
    Metadata,
    SearchResult,
    Stats,
)
from ragstone.engine import Engine
from ragstone.wiring import open_engine

if TYPE_CHECKING:
    from ragstone.intake import Intake
    from ragstone.moves.mover import Mover
    from ragstone.moves.reports import ExportReport, ImportReport, MoveReport
    from ragstone.reembed import ReembedReport

T = TypeVar("T")


class Ragstone:
    """`Engine` with its own event loop on a thread of its own, so that it also works inside a notebook."""

    def __init__(self, settings: Settings | None = None, **overrides: Any) -> None:
        """Keywords are settings: `Ragstone(data_dir="kb", retrieval={"k": 5})`."""
        if settings and overrides:
            raise InputError("give Settings or keywords, not both", hint="put the keywords into the Settings")
        chosen = settings or load_settings(overrides=overrides)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ragstone", daemon=True)
        self._thread.start()
        try:
            self._engine = self._run(_opened(chosen))
        except BaseException:
            self._stop()
            raise

    def ingest(self, *paths: str | Path, **options: Any) -> IngestReport:
        return self._run(self._engine.ingest(*paths, **options))

    def ingest_items(self, items: Iterable[Item | Failure], **options: Any) -> IngestReport:
        return self._run(self._engine.ingest_items(items, **options))

    def ingest_urls(self, *urls: str, **options: Any) -> IngestReport:
        return self._run(self._engine.ingest_urls(*urls, **options))

    def preview(self, *paths: str | Path, **options: Any) -> IngestReport:
        return self._run(self._engine.preview(*paths, **options))

    @property
    def moves(self) -> BlockingMoves:
        """Archives out and in, and moves to other stores."""
        return BlockingMoves(self._engine.moves, self._run)

    @property
    def intake(self) -> BlockingIntake:
        """Uploads, sources and jobs; `intake.work()` does what is queued."""
        return BlockingIntake(self._run(_intake_of(self._engine)), self._run)

    @property
    def tenants(self) -> BlockingTenants:
        """Who there is, what they may use and what they have used."""
        return BlockingTenants(self._engine.tenants, self._run)

    def search(self, query: str, **options: Any) -> SearchResult:
        return self._run(self._engine.search(query, **options))

    def ask(self, question: str, **options: Any) -> Answer:
        return self._run(self._engine.ask(question, **options))

    def explain(self, query: str, document_id: str, **options: Any) -> Explanation:
        return self._run(self._engine.explain(query, document_id, **options))

    def documents(self, **options: Any) -> list[Document]:
        return self._run(self._engine.documents(**options))

    def document(self, document_id: str, **options: Any) -> Document:
        return self._run(self._engine.document(document_id, **options))

    def text(self, document_id: str, **options: Any) -> str:
        return self._run(self._engine.text(document_id, **options))

    def chunks(self, document_id: str, **options: Any) -> list[LiveChunk]:
        return self._run(self._engine.chunks(document_id, **options))

    def delete(self, document_id: str, **options: Any) -> bool:
        return self._run(self._engine.delete(document_id, **options))

    def delete_kb(self, kb: str, **options: Any) -> int:
        return self._run(self._engine.delete_kb(kb, **options))

    def erase(self, kind: TargetKind, *names: str, **options: Any) -> list[Receipt]:
        return self._run(self._engine.erase(kind, *names, **options))

    def is_on(self, flag: str, **options: Any) -> bool:
        return self._run(self._engine.is_on(flag, **options))

    def kbs(self, **options: Any) -> Sequence[KnowledgeBase]:
        return self._run(self._engine.kbs(**options))

    def reindex(self, **options: Any) -> list[str]:
        return self._run(self._engine.reindex(**options))

    def collections(self, **options: Any) -> list[Collection]:
        return self._run(self._engine.collections(**options))

    def stats(self, **options: Any) -> Stats:
        return self._run(self._engine.stats(**options))

    def reembed(self, model: str | None = None, **options: Any) -> ReembedReport:
        return self._run(self._engine.reembed(model, **options))

    def rollback_space(self, **options: Any) -> ReembedReport:
        return self._run(self._engine.rollback_space(**options))

    def spaces(self, **options: Any) -> list[SpaceRecord]:
        return self._run(self._engine.spaces(**options))

    def clean_spaces(self, **options: Any) -> int:
        return self._run(self._engine.clean_spaces(**options))

    def warm(self) -> None:
        self._run(self._engine.warm())

    def close(self) -> None:
        """Let go of models, children and files."""
        if self._loop.is_closed():
            return
        try:
            self._run(self._engine.close())
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Ragstone:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise InputError(
                "this Ragstone is closed", hint="make a new one, or work inside its `with` block"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()  # or the work would go on where nobody waits for it
            raise


class _Run(Protocol):
    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class BlockingMoves:
    """`Mover` without async, for the loop of a `Ragstone`."""

    def __init__(self, mover: Mover, run: _Run) -> None:
        self._mover = mover
        self._run = run

    def export_archive(self, path: str | Path, **options: Any) -> ExportReport:
        return self._run(self._mover.export_archive(path, **options))

    def import_archive(self, path: str | Path, **options: Any) -> ImportReport:
        return self._run(self._mover.import_archive(path, **options))

    def migrate(self, to: Adapter, **options: Any) -> MoveReport:
        return self._run(self._mover.migrate(to, **options))


class BlockingIntake:
    """`Intake` without async, for the loop of a `Ragstone`."""

    def __init__(self, intake: Intake, run: _Run) -> None:
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
        self._run(self._intake.worker(only=only).run(until_idle=True))


class BlockingTenants:
    """`TenantBook` without async, for the loop of a `Ragstone`."""

    def __init__(self, book: TenantBook, run: _Run) -> None:
        self._book = book
        self._run = run

    def create(self, name: str, quotas: Quotas = UNLIMITED) -> Tenant:
        return self._run(self._book.create(name, quotas))

    def get(self, name: str) -> Tenant | None:
        return self._run(self._book.get(name))

    def all(self) -> list[Tenant]:
        return self._run(self._book.all())

    def rename(self, old: str, new: str) -> Tenant:
        return self._run(self._book.rename(old, new))

    def suspend(self, name: str) -> Tenant:
        return self._run(self._book.suspend(name))

    def resume(self, name: str) -> Tenant:
        return self._run(self._book.resume(name))

    def delete(self, name: str) -> Tenant:
        return self._run(self._book.delete(name))

    def set_quotas(self, name: str, quotas: Quotas) -> Tenant:
        return self._run(self._book.set_quotas(name, quotas))

    def set_retention(self, name: str, days: int | None) -> Tenant:
        return self._run(self._book.set_retention(name, days))

    def set_settings(self, name: str, settings: Metadata) -> Tenant:
        return self._run(self._book.set_settings(name, settings))

    def usage(self, name: str) -> Usage:
        return self._run(self._book.usage(name))


async def _intake_of(engine: Engine) -> Intake:
    return engine.intake  # its parts belong to the loop, so they are made there


async def _opened(settings: Settings) -> Engine:
    return open_engine(settings)

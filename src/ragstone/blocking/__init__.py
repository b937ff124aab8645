"""The engine for scripts and notebooks: the same methods, without async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ragstone.blocking.activity import BlockingActivity
from ragstone.blocking.corpora import BlockingCorpora
from ragstone.blocking.events import waited_for
from ragstone.blocking.intake import BlockingIntake
from ragstone.blocking.moves import BlockingMoves
from ragstone.blocking.session import BlockingSession
from ragstone.blocking.tenants import BlockingTenants
from ragstone.core.activity import Vote
from ragstone.core.answers import Answer, AnswerEvent, ReceiptReport, Research, Verdict
from ragstone.core.audit import AuditEntry
from ragstone.core.collections import Collection
from ragstone.core.documents import ChunkRecord
from ragstone.core.erasure import Receipt, TargetKind
from ragstone.core.errors import InputError
from ragstone.core.spaces import SpaceRecord
from ragstone.core.types import (
    Document,
    Explanation,
    Failure,
    IngestReport,
    Item,
    Json,
    KnowledgeBase,
    LiveChunk,
    SearchResult,
    Stats,
)
from ragstone.core.web import WebFindings
from ragstone.engine import Engine
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Settings
from ragstone.wiring import open_engine

if TYPE_CHECKING:
    from ragstone.intake import Intake
    from ragstone.reembed import ReembedReport
    from ragstone.refresh.refresher import RefreshReport
    from ragstone.refresh.triggers import RefreshStatus

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
    def engine(self) -> Engine:
        """The engine underneath; its coroutines run in `loop` and nowhere else."""
        return self._engine

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where the engine lives, for `asyncio.run_coroutine_threadsafe`."""
        return self._loop

    @property
    def moves(self) -> BlockingMoves:
        """Archives out and in, and moves to other stores."""
        return BlockingMoves(self._engine.moves, self._run)

    @property
    def corpora(self) -> BlockingCorpora:
        """Collections that are built from one corpus file as a whole."""
        return BlockingCorpora(self._engine.corpora, self._run)

    @property
    def intake(self) -> BlockingIntake:
        """Uploads, sources and jobs; `intake.work()` does what is queued."""
        return BlockingIntake(self._run(_intake_of(self._engine)), self._run)

    @property
    def activity(self) -> BlockingActivity:
        """What was asked, votes on what was found, and golden queries."""
        return BlockingActivity(self._engine.activity, self._run)

    def feedback(self, query: str, chunk_ids: Sequence[str], vote: Vote = "used", **options: Any) -> int:
        return self._run(self._engine.feedback(query, chunk_ids, vote, **options))

    @property
    def tenants(self) -> BlockingTenants:
        """Who there is, what they may use and what they have used."""
        return BlockingTenants(self._engine.tenants, self._run)

    def search(self, query: str, **options: Any) -> SearchResult:
        return self._run(self._engine.search(query, **options))

    def web(self, query: str, **options: Any) -> WebFindings:
        return self._run(self._engine.web(query, **options))

    def session(self, **options: Any) -> BlockingSession:
        return BlockingSession(self._engine.session(**options), self._run)

    def ask(self, question: str, **options: Any) -> Answer:
        return self._run(self._engine.ask(question, **options))

    def stream(self, question: str, **options: Any) -> Iterator[AnswerEvent]:
        return waited_for(self._engine.stream(question, **options), self._run)

    def receipt(self, answer: Answer, **options: Any) -> dict[str, Json]:
        return self._run(self._engine.receipt(answer, **options))

    def check_receipt(self, receipt: Mapping[str, Any], **options: Any) -> ReceiptReport:
        return self._run(self._engine.check_receipt(receipt, **options))

    def research(self, topic: str, **options: Any) -> Research:
        return self._run(self._engine.research(topic, **options))

    def confidence(self, found: SearchResult, **options: Any) -> float:
        return self._run(self._engine.confidence(found, **options))

    def verify(self, claim: str, **options: Any) -> Verdict:
        return self._run(self._engine.verify(claim, **options))

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

    def chunk_records(self, document_id: str, **options: Any) -> list[ChunkRecord]:
        return self._run(self._engine.chunk_records(document_id, **options))

    def delete(self, document_id: str, **options: Any) -> bool:
        return self._run(self._engine.delete(document_id, **options))

    def delete_kb(self, kb: str, **options: Any) -> int:
        return self._run(self._engine.delete_kb(kb, **options))

    def audit(self, **options: Any) -> list[AuditEntry]:
        return self._run(self._engine.audit(**options))

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

    def refresh(self, **options: Any) -> RefreshReport:
        return self._run(self._engine.refresh(**options))

    def refresh_status(self, **options: Any) -> RefreshStatus:
        return self._run(self._engine.refresh_status(**options))

    def rollback_space(self, **options: Any) -> ReembedReport:
        return self._run(self._engine.rollback_space(**options))

    def spaces(self, **options: Any) -> list[SpaceRecord]:
        return self._run(self._engine.spaces(**options))

    def clean_spaces(self, **options: Any) -> int:
        return self._run(self._engine.clean_spaces(**options))

    def warm(self, **options: Any) -> None:
        self._run(self._engine.warm(**options))

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


async def _intake_of(engine: Engine) -> Intake:
    return engine.intake  # its parts belong to the loop, so they are made there


async def _opened(settings: Settings) -> Engine:
    return open_engine(settings)

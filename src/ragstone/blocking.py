"""The engine for scripts and notebooks: the same methods, without async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ragstone.configure import load_settings
from ragstone.core.errors import InputError
from ragstone.core.settings import Settings
from ragstone.core.types import (
    Answer,
    Document,
    Explanation,
    Failure,
    IngestReport,
    Item,
    KnowledgeBase,
    LiveChunk,
    SearchResult,
    Stats,
)
from ragstone.engine import Engine
from ragstone.wiring import open_engine

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

    def kbs(self, **options: Any) -> Sequence[KnowledgeBase]:
        return self._run(self._engine.kbs(**options))

    def stats(self, **options: Any) -> Stats:
        return self._run(self._engine.stats(**options))

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


async def _opened(settings: Settings) -> Engine:
    return open_engine(settings)

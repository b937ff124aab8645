"""Experiments: ways to search, measured over labelled queries with given settings and changes of them."""

from __future__ import annotations

import hashlib
import json
import re
import resource
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, Protocol

from ragstone.core.documents import IngestReport
from ragstone.core.errors import InputError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Mode
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace
from ragstone.evaluate.dataset import SOURCE, Dataset, documents_as_items
from ragstone.evaluate.report import (
    Comparison,
    Report,
    compare,
    figures_of_ingest,
    figures_of_rows,
    judgements,
    readable_share,
)
from ragstone.evaluate.runner import SystemScores, evaluate
from ragstone.evaluate.tune import Changes
from ragstone.settings.retrieval import RerankingSettings
from ragstone.settings.tree import Settings

PAGE = 1000
READ_DOCUMENTS = 200
"""Documents whose chunks are checked for whether a person could read them."""
INGEST_KEYS = ("chunking", "chunking_by_source", "embedding", "enrich", "extract")
"""Settings that show only in what is ingested with them."""
Arms = Literal["hybrid", "dense", "lexical"]


@dataclass(frozen=True, slots=True)
class System:
    """One way to search, with a row of its own in the report."""

    arms: Arms | None = None
    mode: Mode | None = None
    reranks: bool = False


SYSTEMS = {
    "lexical": System(arms="lexical"),
    "dense": System(arms="dense"),
    "hybrid": System(arms="hybrid"),
    "reranked": System(arms="hybrid", mode="thorough", reranks=True),
    "fast": System(mode="fast", reranks=True),
    "balanced": System(mode="balanced", reranks=True),
    "thorough": System(mode="thorough", reranks=True),
}
ARMS = ("lexical", "dense", "hybrid")
MODES = ("fast", "balanced", "thorough")


class Watcher(Protocol):
    """Follows an experiment: the block of each method is given what to call as it advances, or None."""

    def watch_ingest(self, total: int) -> AbstractContextManager[Any]: ...

    def watch_queries(self, label: str) -> AbstractContextManager[Any]: ...

    def report_ingest(self, report: IngestReport) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkspaceRetriever:
    """A workspace as the `Retriever` that the runner measures."""

    workspace: Workspace
    system: System
    by_document: bool = False
    """Judgements are about documents of this kb, by their ids, rather than those of a data set."""

    async def retrieve(self, query: str, k: int) -> SearchResult:
        """Search in the way of the system."""
        found = await self.workspace.search(SearchQuery(query, k=k, arms=self.system.arms, mode=self.system.mode))
        if not self.by_document:
            return found
        hits = (replace(hit, metadata={"dataset_id": hit.document_id}) for hit in found.hits)
        return replace(found, hits=tuple(hits))


def measured_workspace(engine: Engine) -> Workspace:
    """Return the workspace of the tenant of an engine's settings."""
    return engine.workspace(engine.settings.tenant)


@dataclass(frozen=True, slots=True)
class Experiment:
    """Labelled queries, and the engines in which they are tried."""

    dataset: Dataset
    uses_own_kb: bool
    """The queries are about a kb that is in use, and not about one that is made for this data set."""
    load_settings: Callable[[Mapping[str, Any]], Settings]
    """Gives the settings in force with some of them changed."""
    open_engine: Callable[[Settings], AbstractAsyncContextManager[Engine]]
    watcher: Watcher
    kb: str | None = None
    """The kb that a data set goes into; one named after it unless given."""
    keeps_kbs: bool = True
    """The documents of a data set are kept for the next run."""
    _filled: set[str] = field(default_factory=set)

    def settings(self, changes: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings with some of them changed; what is measured is neither logged nor cached."""
        changed = dict(changes or {})
        given = {**changed, "activity.searches": False, "cache.search_seconds": 0}
        of_ingest = {key: value for key, value in changed.items() if key.partition(".")[0] in INGEST_KEYS}
        if not self.uses_own_kb:
            kb = kb_name_for(self.kb or kb_name(self.dataset.name), of_ingest)
            return self.load_settings({"kb": kb, **given})
        if of_ingest:
            raise InputError(
                f"{next(iter(of_ingest))} shows only in documents that are ingested with it",
                hint="name a data set folder: its documents are ingested once more",
            )
        return self.load_settings(given)

    async def ingest(self, settings: Settings) -> IngestReport | None:
        """Make the kb hold exactly the data set's corpus; None when the documents are there already."""
        if self.uses_own_kb:
            return None
        ids = {document.id for document in self.dataset.documents()}
        async with self.open_engine(settings) as engine:
            workspace = measured_workspace(engine)
            others = await _find_others(workspace, settings.kb, ids)
            self._filled.add(settings.kb)
            with self.watcher.watch_ingest(len(ids)) as on_progress:
                items = documents_as_items(self.dataset)
                report = await workspace.documents.ingest_items(items, on_progress=on_progress)
            for document_id in others:
                await workspace.documents.delete(document_id)
        self.watcher.report_ingest(report)
        return replace(report, documents=report.documents - len(others))

    @asynccontextmanager
    async def clean_up(self) -> AsyncIterator[None]:
        """Remove the kbs that the block fills, unless they are kept for the next run."""
        try:
            yield
        finally:
            for kb in () if self.keeps_kbs else sorted(self._filled):
                async with self.open_engine(self.load_settings({"kb": kb})) as engine:
                    await measured_workspace(engine).knowledge_bases.delete(kb)

    async def measure(
        self, settings: Settings, system: str, label: str = "", dataset: Dataset | None = None
    ) -> SystemScores:
        """Measure one system in an engine of its own: another one's cache must not make it look fast."""
        chosen = SYSTEMS[system]
        own = settings if chosen.reranks else settings.model_copy(update={"reranking": RerankingSettings()})
        async with self.open_engine(own) as engine:
            if chosen.arms != "lexical":
                await engine.warm(own.tenant)
            with self.watcher.watch_queries(label or system) as on_progress:
                return await evaluate(
                    WorkspaceRetriever(measured_workspace(engine), chosen, by_document=self.uses_own_kb),
                    dataset or self.dataset,
                    system=label or system,
                    on_progress=on_progress,
                )

    async def run(
        self, systems: Sequence[str], changes: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Report, IngestReport | None]:
        """Measure systems as they are set and with each of the labelled changes, and compare them."""
        settings = self.settings()
        others = {label: self.settings(change) for label, change in changes.items()}
        ingested = await self.ingest(settings)
        rows = [await self.measure(settings, system) for system in systems]
        comparisons = list(compare_systems(rows))
        for label, other in others.items():
            if other.kb not in self._filled:
                await self.ingest(other)
            for base in rows[: len(systems)]:
                changed = await self.measure(other, base.system, f"{base.system}, {label}")
                rows.append(changed)
                comparisons += compare(changed, [base])
        return await self._report(settings, ingested, rows, comparisons), ingested

    async def try_changes(self, changes: Changes, dataset: Dataset) -> SystemScores:
        """Measure the configured mode with some settings changed, in a kb that is filled when it is first needed."""
        settings = self.settings(changes)
        if settings.kb not in self._filled:
            await self.ingest(settings)
        label = ", ".join(f"{key}={value}" for key, value in changes.items()) or "as set"
        return await self.measure(settings, settings.retrieval.mode, label, dataset)

    async def _report(
        self,
        settings: Settings,
        ingested: IngestReport | None,
        rows: Sequence[SystemScores],
        comparisons: Sequence[Comparison],
    ) -> Report:
        async with self.open_engine(settings) as engine:
            workspace = measured_workspace(engine)
            stats = await workspace.knowledge_bases.stats()
            figures = await _read_figures(workspace, settings, ingested, rows) if settings.targets else {}
        reranks = settings.reranking.kind != "none" and any(
            SYSTEMS[row.system].reranks for row in rows if row.system in SYSTEMS
        )
        return Report(
            dataset=self.dataset.name,
            documents=ingested.documents if ingested else stats.documents,
            queries=len(self.dataset.queries),
            rows=tuple(rows),
            models={"embedding": stats.model or None, "reranker": settings.reranking.model if reranks else None},
            profile=settings.profile,
            comparisons=tuple(comparisons),
            targets=judgements(settings.targets, figures),
        )


def compare_systems(rows: Sequence[SystemScores]) -> tuple[Comparison, ...]:
    """Compare hybrid with each arm, each mode with the one below it, and every other system with hybrid."""
    by_name = {row.system: row for row in rows}
    hybrid = by_name.get("hybrid")
    modes = [by_name[name] for name in MODES if name in by_name]
    steps = [step for lower, higher in pairwise(modes) for step in compare(higher, [lower])]
    if hybrid is None:
        return tuple(steps) or compare(rows[-1], rows[:-1])
    arms = [by_name[name] for name in ("lexical", "dense") if name in by_name]
    others = [row for row in rows if row is not hybrid and row not in arms]
    against = [comparison for row in others for comparison in compare(row, [hybrid])]
    return (*compare(hybrid, arms), *against, *steps)


def kb_name(dataset: str) -> str:
    """Return a valid kb name for a folder's name."""
    return f"eval-{re.sub(r'[^a-z0-9_-]+', '-', dataset.lower()).strip('-')}"[:63]


def kb_name_for(kb: str, changes: Mapping[str, Any]) -> str:
    """Return another kb for documents that are ingested in another way."""
    if not changes:
        return kb
    digest = hashlib.sha256(json.dumps(changes, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{kb[:54]}-{digest}"


async def _read_figures(
    workspace: Workspace, settings: Settings, ingested: IngestReport | None, rows: Sequence[SystemScores]
) -> Mapping[str, float]:
    """Return everything that was measured, by the names that targets have."""
    figures = figures_of_rows(rows, settings.retrieval.mode)
    figures |= figures_of_ingest(ingested) if ingested else {}
    figures["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    documents = await workspace.documents.list(limit=READ_DOCUMENTS)
    texts = [live.chunk.text for document in documents for live in await workspace.documents.chunks(document.id)]
    readable = readable_share(texts)
    return figures if readable is None else {**figures, "chunks.readable": readable}


async def _find_others(workspace: Workspace, kb: str, ids: set[str]) -> list[str]:
    """Return what an earlier data set of the same name left in the kb; refuse a kb with anything else in it."""
    if kb not in {known.name for known in await workspace.knowledge_bases.list()}:
        return []
    others, after = [], ""
    while page := await workspace.documents.list(after=after, limit=PAGE):
        after = page[-1].id
        if any(document.source != SOURCE for document in page):
            raise InputError(f"knowledge base '{kb}' holds documents of your own", remedy=Remedy(Action.USE_OWN_KB))
        others += [document.id for document in page if document.external_id not in ids]
    return others

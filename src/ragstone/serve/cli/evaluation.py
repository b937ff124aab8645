"""`ragstone eval`: how good search is on a labelled collection."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.ingest_report import remarks
from ragstone.serve.cli.options import Arms, Mode
from ragstone.serve.cli.progress import ingest_progress, query_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.settings import Settings
    from ragstone.core.types import IngestReport, SearchResult
    from ragstone.engine import Engine
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.report import Comparison, Report
    from ragstone.evaluate.runner import Row

PAGE = 1000


@dataclass(frozen=True, slots=True)
class System:
    """One way to search, that gets a row of its own."""

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


@dataclass(frozen=True, slots=True)
class EngineRetriever:
    """An engine as the `Retriever` that the runner measures."""

    engine: Engine
    system: System

    async def retrieve(self, query: str, k: int) -> SearchResult:
        """Search in the way of the system."""
        return await self.engine.search(query, k=k, arms=self.system.arms, mode=self.system.mode)


async def evaluate(
    session: Session,
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."),
    ],
    split: Annotated[str, typer.Option("--split", help="Which judgements to use.")] = "test",
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems", metavar="NAMES", help=f"Which rows, apart by commas: {', '.join(SYSTEMS)}."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N queries.")] = None,
) -> int:
    """Measure search on a labelled collection.

    Quality and time of each way to search, side by side. The documents are ingested into a knowledge base
    of their own, which makes the first run a long one.
    """
    from ragstone.evaluate.dataset import load_dataset
    from ragstone.evaluate.report import report_json

    dataset = load_dataset(folder, split)
    if limit:
        dataset = replace(dataset, queries=dataset.queries[:limit])
    settings = session.settings(kb=session.options.kb or kb_name(dataset.name))
    chosen = chosen_systems(systems, settings)
    ingested = await _ingest(session, settings, dataset)
    rows = [await _row(session, settings, name, dataset) for name in chosen]
    report = await _report(session, settings, dataset, ingested.documents, rows)
    failed = [asdict(failure) for failure in ingested.failed]
    session.show({**report_json(report), "failed": failed}, lambda out: _draw(out, report))
    return PARTIAL if failed else OK


def kb_name(dataset: str) -> str:
    """A valid kb name out of a folder's name."""
    return f"eval-{re.sub(r'[^a-z0-9_-]+', '-', dataset.lower()).strip('-')}"[:63]


def chosen_systems(names: str | None, settings: Settings) -> list[str]:
    """The systems that were asked for, or those that the settings can show."""
    if names is None:
        return [*ARMS, "reranked"] if settings.reranking.kind != "none" else list(ARMS)
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown or not chosen:
        raise InputError(
            f"--systems: there is no system {unknown[0]!r}" if unknown else "--systems names none",
            hint=f"choose from: {', '.join(SYSTEMS)}",
        )
    if "reranked" in chosen and settings.reranking.kind == "none":
        raise InputError(
            "--systems: 'reranked' needs a reranker", hint="set RAGSTONE_RERANKING__KIND=cross_encoder"
        )
    return chosen


async def _ingest(session: Session, settings: Settings, dataset: Dataset) -> IngestReport:
    """Make the kb hold exactly the data set's corpus."""
    from ragstone.evaluate.dataset import documents_as_items

    ids = {document.id for document in dataset.documents()}
    async with session.engine(settings, create=True) as engine:
        others = await _others(engine, ids)
        with ingest_progress(session, len(ids)) as on_progress:
            report = await engine.ingest_items(documents_as_items(dataset), on_progress=on_progress)
        for document_id in others:
            await engine.delete(document_id)
        session.warn(remarks(report))
        session.warn(f"{failure.uri}: {failure.error}" for failure in report.failed)
        return replace(report, documents=report.documents - len(others))


async def _others(engine: Engine, ids: set[str]) -> list[str]:
    """What an earlier data set of the same name left in the kb; a kb with anything else in it is refused."""
    from ragstone.evaluate.dataset import SOURCE

    if engine.settings.kb not in {kb.name for kb in await engine.kbs()}:
        return []
    others, after = [], ""
    while page := await engine.documents(after=after, limit=PAGE):
        after = page[-1].id
        if any(document.source != SOURCE for document in page):
            raise InputError(
                f"knowledge base '{engine.settings.kb}' holds documents of your own",
                hint="leave out --kb: a data set gets a knowledge base of its own",
            )
        others += [document.id for document in page if document.external_id not in ids]
    return others


async def _row(session: Session, settings: Settings, name: str, dataset: Dataset) -> Row:
    """Measure one system with an engine of its own: what another one has cached must not make it look fast."""
    from ragstone.core.query_settings import RerankingSettings
    from ragstone.evaluate.runner import evaluate as measure

    system = SYSTEMS[name]
    own = settings if system.reranks else settings.model_copy(update={"reranking": RerankingSettings()})
    async with session.engine(own) as engine:
        with query_progress(session, name) as on_progress:
            return await measure(
                EngineRetriever(engine, system), dataset, system=name, on_progress=on_progress
            )


async def _report(
    session: Session, settings: Settings, dataset: Dataset, documents: int, rows: list[Row]
) -> Report:
    from ragstone.evaluate.report import Report

    async with session.engine(settings) as engine:
        model = (await engine.stats()).model
    reranks = settings.reranking.kind != "none" and any(SYSTEMS[row.system].reranks for row in rows)
    return Report(
        dataset=dataset.name,
        documents=documents,
        queries=len(dataset.queries),
        rows=tuple(rows),
        models={"embedding": model or None, "reranker": settings.reranking.model if reranks else None},
        profile=settings.profile,
        comparisons=_comparisons(rows),
    )


def _comparisons(rows: list[Row]) -> tuple[Comparison, ...]:
    """Hybrid against each arm, and every other system against hybrid."""
    from ragstone.evaluate.report import compare

    by_name = {row.system: row for row in rows}
    hybrid = by_name.get("hybrid")
    if hybrid is None:
        return compare(rows[-1], rows[:-1])
    arms = [by_name[name] for name in ("lexical", "dense") if name in by_name]
    others = [row for row in rows if row is not hybrid and row not in arms]
    return (*compare(hybrid, arms), *(one for row in others for one in compare(row, [hybrid])))


def _draw(out: Console, report: Report) -> None:
    from ragstone.evaluate.report import report_table

    drawn = report_table(report)
    if not out.is_terminal:
        drawn.box = None
    out.print(drawn)

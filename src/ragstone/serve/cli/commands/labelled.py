"""Where labelled queries come from: a data set folder, votes, or golden queries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.render.ingest import remarks
from ragstone.serve.cli.render.progress import ingest_progress, query_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from ragstone.core.types import IngestReport
    from ragstone.engine.experiments import MeasuredWorkspace
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.experiments import Experiment
    from ragstone.ingest.work import OnProgress
    from ragstone.serve.cli.render.progress import Advance
    from ragstone.settings.tree import Settings

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."),
]
Split = Annotated[str, typer.Option("--split", help="Which judgements to use.")]
FromFeedback = Annotated[
    bool, typer.Option("--from-feedback", help="Use the votes on passages of the knowledge base.")
]
Golden = Annotated[bool, typer.Option("--golden", help="Use the golden queries of the knowledge base.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N queries.")]


async def open_experiment(
    session: Session, folder: Path | None, split: str, from_feedback: bool, golden: bool, limit: int | None
) -> Experiment:
    """Return an experiment with the labelled queries from the one place that was named."""
    from ragstone.evaluate.dataset import load_dataset
    from ragstone.evaluate.experiments import Experiment

    if (folder is not None) + from_feedback + golden != 1:
        raise InputError(
            "name one place with labelled queries",
            hint="a data set folder, or --from-feedback, or --golden",
        )
    dataset = load_dataset(folder, split) if folder else await _kept(session, golden)
    if limit:
        dataset = replace(dataset, queries=dataset.queries[:limit])
    uses_own_kb = folder is None
    return Experiment(
        dataset,
        uses_own_kb=uses_own_kb,
        load_settings=lambda changes: session.settings(**changes),
        open_subject=lambda settings: _open_subject(session, settings, create=not uses_own_kb),
        watcher=SessionWatcher(session),
        kb=session.options.kb,
    )


@asynccontextmanager
async def _open_subject(
    session: Session, settings: Settings, *, create: bool
) -> AsyncIterator[MeasuredWorkspace]:
    from ragstone.engine.experiments import MeasuredWorkspace

    async with session.engine(settings, create=create) as engine:
        yield MeasuredWorkspace(engine)


@dataclass(frozen=True, slots=True)
class SessionWatcher:
    """Shows an experiment on the terminal."""

    session: Session

    def watch_ingest(self, total: int) -> AbstractContextManager[OnProgress | None]:
        """Show how far the documents of a data set are."""
        return ingest_progress(self.session, total)

    def watch_queries(self, label: str) -> AbstractContextManager[Advance | None]:
        """Show how many queries a system has answered."""
        return query_progress(self.session, label)

    def report_ingest(self, report: IngestReport) -> None:
        """Warn of what could not be taken in."""
        self.session.warn(remarks(report))
        self.session.warn(f"{failure.uri}: {failure.error}" for failure in report.failed)


async def _kept(session: Session, golden: bool) -> Dataset:
    async with session.workspace() as workspace:
        kept = await workspace.feedback.golden_dataset() if golden else await workspace.feedback.judged()
        kb = workspace.settings.kb
    if kept is None:
        raise InputError(
            f"there are no golden queries of knowledge base '{kb}'"
            if golden
            else f"no passage of knowledge base '{kb}' was voted up or used",
            remedy=Remedy(Action.MAKE_GOLDEN if golden else Action.ADD_FEEDBACK),
        )
    return kept

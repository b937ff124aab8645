"""`ragstone ingest`: take in files, folders and web pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.ingest_queue import queue_files
from ragstone.serve.cli.commands.ingest_watch import keep_ingesting
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.render.ingest import draw_counts, draw_report, outcome, remarks
from ragstone.serve.cli.render.progress import ingest_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import IngestReport
    from ragstone.settings.tree import Settings

Places = Annotated[
    list[str], typer.Argument(metavar="PATH|URL", help="Files, folders and web pages to ingest.")
]


async def ingest(
    session: Session,
    places: Places,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Keep running and ingest files again whenever they change, until Ctrl-C."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Read the files and report what would be done; write nothing."),
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Queue files for a worker and print the jobs.")
    ] = False,
    stages: Annotated[bool, typer.Option("--stages", help="Show how long each stage took.")] = False,
) -> int:
    """Ingest files, folders and web pages.

    Unchanged files are skipped; files that are gone from a folder are removed.
    With `--watch --json` each round is one line of JSON.
    """
    urls = [place for place in places if is_url(place)]
    paths = [Path(place) for place in places if not is_url(place)]
    _check(session.options, urls, watch=watch, dry_run=dry_run, queue=queue)
    if queue:
        return await queue_files(session, paths)
    if watch:
        return await keep_ingesting(session, paths)
    if dry_run:
        return await _preview(session, paths)
    return await _ingest(session, paths, urls, stages=stages)


def is_url(place: str) -> bool:
    """Whether a place is an address in the web rather than a path."""
    return place.lower().startswith(("http://", "https://"))


def _check(options: Common, urls: list[str], **ways: bool) -> None:
    chosen = [f"--{name.replace('_', '-')}" for name, given in ways.items() if given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} do not go together", hint="choose one of them")
    if chosen and urls:
        raise InputError(
            f"{chosen[0]} takes files and folders, not {urls[0]}",
            hint="to look at a page again and again: "
            + options.command("sources", "add", "web", "NAME", f"urls={urls[0]}"),
        )


async def _preview(session: Session, paths: list[Path]) -> int:
    from ragstone.schemas.documents import DryRunSchema

    def draw(out: Console) -> None:
        draw_counts(out, report)
        out.print()
        out.print("This is what would be done; nothing was written.")

    async with session.workspace(create=True) as workspace:
        with ingest_progress(session, await _count(session, paths)) as on_progress:
            report = await workspace.documents.dry_run(*paths, on_progress=on_progress)
    session.show(DryRunSchema.of(report, dry_run=True), draw)
    session.warn(remarks(report))
    return outcome(report)


async def _ingest(session: Session, paths: list[Path], urls: list[str], *, stages: bool) -> int:
    from ragstone.schemas.documents import IngestSchema

    settings = session.settings()
    report = await _ingested(session, settings, paths, urls)
    session.show(IngestSchema.of(report), lambda out: draw_report(out, report, settings.kb, stages=stages))
    session.warn(remarks(report))
    return outcome(report)


async def _ingested(session: Session, settings: Settings, paths: list[Path], urls: list[str]) -> IngestReport:
    reports = []
    async with session.workspace(settings, create=True) as workspace:
        if paths:
            with ingest_progress(session, await _count(session, paths)) as on_progress:
                reports.append(await workspace.documents.ingest(*paths, on_progress=on_progress))
        if urls:
            with ingest_progress(session, len(urls)) as on_progress:
                reports.append(await workspace.documents.ingest_urls(*urls, on_progress=on_progress))
    from ragstone.ingest.work import merge_reports

    return reports[0] if len(reports) == 1 else merge_reports(*reports)


async def _count(session: Session, paths: list[Path]) -> int:
    """About how many documents there are, if somebody watches."""
    import asyncio

    from ragstone.ingest.sources.files.source import count_files

    return await asyncio.to_thread(count_files, paths) if session.shows_progress else 0

"""`ragstone ingest`: take in files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.output import counted, table, text
from ragstone.serve.cli.progress import ingest_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import IngestReport

Paths = Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders to take in.")]


async def ingest(session: Session, paths: Paths) -> int:
    """Take in files and folders. What has not changed since the last time is left alone."""
    from ragstone.core.wire import ingest_json

    settings = session.settings()
    report = await ingest_paths(session, paths, settings.kb)
    session.show(ingest_json(report), lambda out: draw_report(out, report, settings.kb))
    session.warn(remarks(report))
    return outcome(report)


async def ingest_paths(session: Session, paths: list[Path], kb: str) -> IngestReport:
    """Ingest with a progress bar."""
    import asyncio

    from ragstone.ingest.sources.files import count_files

    total = await asyncio.to_thread(count_files, paths) if session.shows_progress else 0
    async with session.engine(create=True) as engine:
        with ingest_progress(session, total) as on_progress:
            return await engine.ingest(*paths, kb=kb, on_progress=on_progress)


def outcome(report: IngestReport) -> int:
    """The exit code: 3 when some failed, 1 when all did."""
    if not report.failed:
        return OK
    return PARTIAL if report.added + report.updated + report.unchanged else FAILURE


def remarks(report: IngestReport) -> list[str]:
    """What a person should know beside the counts."""
    notes = [*report.warnings, *report.degraded]
    if report.skipped_chunks:
        notes.append(f"{counted(report.skipped_chunks, 'chunk')} got no vector: the model refused the text")
    if not (report.added or report.updated or report.unchanged or report.failed):
        notes.append("no documents were found there")
    return notes


def draw_report(out: Console, report: IngestReport, kb: str) -> None:
    """The counts, the failures with their reasons, and what the kb holds now."""
    counts = table(
        "added", "updated", "unchanged", "failed", right=("added", "updated", "unchanged", "failed")
    )
    failed = text(f"{len(report.failed):,}", "bold red" if report.failed else "")
    counts.add_row(f"{report.added:,}", f"{report.updated:,}", f"{report.unchanged:,}", failed)
    out.print(counts)
    if report.failed:
        out.print()
        reasons = table("failed", "code", "reason")
        for failure in report.failed:
            reasons.add_row(text(failure.uri), text(failure.code), text(failure.error))
        out.print(reasons)
    out.print()
    holds = f"{counted(report.documents, 'document')} and {counted(report.chunks, 'chunk')}"
    out.print(f"Knowledge base '{kb}' holds {holds}. Took {report.seconds:.1f} s.")

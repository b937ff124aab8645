"""`ragstone ingest`: take in files, folders and web pages, now, whenever they change, or later by a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL, Interrupted
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.render.failures import draw_failures
from ragstone.serve.cli.render.ingest import draw_counts, draw_files, draw_report, in_words, outcome, remarks
from ragstone.serve.cli.render.output import console, one_line, table, text, write_json_line
from ragstone.serve.cli.render.progress import LOOKING, IngestProgress, ingest_progress
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.documents import IngestReport
    from ragstone.core.jobs import DocumentStatus
    from ragstone.core.types import Failure
    from ragstone.engine.workspace import Workspace
    from ragstone.settings.tree import Settings

Places = Annotated[list[str], typer.Argument(metavar="PATH|URL", help="Files, folders and web pages to ingest.")]


async def ingest(
    session: CliSession,
    places: Places,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running and ingest files again whenever they change, until Ctrl-C.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report the format of each file and what would be done; write nothing.")
    ] = False,
    queue: Annotated[bool, typer.Option("--queue", help="Queue files for a worker and print the jobs.")] = False,
    stages: Annotated[bool, typer.Option("--stages", help="Show how long each stage took.")] = False,
) -> int:
    """Ingest files, folders and web pages.

    Unchanged files are skipped; files that are gone from a folder are removed; files that belong to a source are
    skipped as well. With `--watch --json` each round is one line of JSON.
    """
    if "" in places:
        # The folder that a path without words stands for is the working folder.
        raise InputError("a path is empty", hint="name a file or a folder; this one is .")
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
    """Return True for an address in the web."""
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


async def _preview(session: CliSession, paths: list[Path]) -> int:
    from ragstone.schemas.documents import DryRunSchema

    def draw(out: Console) -> None:
        draw_counts(out, report)
        draw_files(out, report.files)
        out.print()
        out.print("This is what would be done; nothing was written.")

    with ingest_progress(session, lines=True) as progress:
        async with session.workspace(create=True) as workspace:
            await _survey(progress, paths)
            report = await workspace.documents.dry_run(*paths, on_progress=progress.show)
    session.show(DryRunSchema.of(report, dry_run=True), draw)
    session.warn(remarks(report))
    return outcome(report)


async def _ingest(session: CliSession, paths: list[Path], urls: list[str], *, stages: bool) -> int:
    started = time.perf_counter()
    reports: list[IngestReport] = []
    with ingest_progress(session, lines=True) as progress:
        # After the first sign of life: loading the settings and the engine takes its time.
        settings = session.settings()
        stopped = await until_signal(_run_ingest(session, settings, paths, urls, progress, reports), progress.stop)
    if stopped:
        raise Interrupted(progress.describe_kept(), "the same command goes on from there")
    from ragstone.ingest.work import merge_reports
    from ragstone.schemas.documents import IngestSchema

    report = reports[0] if len(reports) == 1 else merge_reports(*reports)
    took = time.perf_counter() - started
    session.show(IngestSchema.of(report), lambda out: draw_report(out, report, settings.kb, took, stages=stages))
    session.warn(remarks(report))
    return outcome(report)


async def _run_ingest(
    session: CliSession,
    settings: Settings,
    paths: list[Path],
    urls: list[str],
    progress: IngestProgress,
    reports: list[IngestReport],
) -> None:
    """Ingest files, then web pages, and add the report of each."""
    async with session.workspace(settings, create=True) as workspace:
        if paths:
            await _survey(progress, paths)
            reports.append(await workspace.documents.ingest(*paths, on_progress=progress.show))
        if urls:
            progress.expect(len(urls))
            reports.append(await workspace.documents.ingest_urls(*urls, on_progress=progress.show))


async def _survey(progress: IngestProgress, paths: list[Path]) -> None:
    """Count the documents for the progress bar."""
    import asyncio

    from ragstone.ingest.sources.files.read import survey_files

    if progress.is_watched:
        progress.phase = LOOKING
        progress.expect(*await asyncio.to_thread(survey_files, paths))


async def queue_files(session: CliSession, paths: Sequence[Path]) -> int:
    """Queue each document; what was queued will not be lost."""
    from ragstone.core.types import SKIPPED
    from ragstone.ingest.work import describe_skipped

    async with session.workspace(create=True) as workspace:
        queued, others = await workspace.documents.queue(*paths)
    failed = [failure for failure in others if failure.code != SKIPPED]
    _show(session, queued, failed)
    session.warn(describe_skipped([failure for failure in others if failure.code == SKIPPED]))
    if not failed:
        return OK
    return PARTIAL if queued else FAILURE


def _show(session: CliSession, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
    from ragstone.schemas.documents import QueuedDocumentsSchema

    shape = QueuedDocumentsSchema.of(queued=queued, failed=failed)
    session.show(shape, lambda out: _draw_queued(out, queued, failed))
    if any(_state(status) == "pending" for status in queued):
        session.remark("next", session.options.command("worker", "--until-idle"))


def _draw_queued(out: Console, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
    if queued:
        # The job comes first, since that is what one asks for next.
        rows = table("id", "status", "document", "file")
        for status in queued:
            job = status.job.id if status.job else "–"
            rows.add_row(job, _state(status), status.document_id, text(one_line(status.uri)))
        out.print(rows)
    if failed:
        draw_failures(out, failed)
    if not (queued or failed):
        out.print("No documents were found there.")


def _state(status: DocumentStatus) -> str:
    """Return the state of the newest version: an earlier one may be live while it waits."""
    return status.job.state if status.job else status.status


QUIET_SECONDS = 1.0
"""Seconds that files must stay unchanged before they are read."""


async def keep_ingesting(session: CliSession, paths: Sequence[Path]) -> int:
    """Ingest now and after each change, one line per round, until told to stop."""
    async with session.workspace(create=True) as workspace:
        await until_signal(_ingest_rounds(session, workspace, paths))
    return OK


async def _ingest_rounds(session: CliSession, workspace: Workspace, paths: Sequence[Path]) -> None:
    from ragstone.ingest.sources.files.walk import watch_rounds

    first = True
    told: set[str] = set()
    async with aclosing(watch_rounds(paths, QUIET_SECONDS)) as turns:
        async for _ in turns:
            try:
                report = await workspace.documents.ingest(*paths)
            except InputError as error:
                if first:
                    raise
                session.warn([str(error)])  # it went away in this moment and may come back
                continue
            remarks = _tell(session, report, told)
            told, first = remarks, False


def _tell(session: CliSession, report: IngestReport, told: Set[str]) -> set[str]:
    """Say what a round did, and of what went wrong what the round before did not say; all of that is given back."""
    from ragstone.core.clock import now

    if session.options.json:
        from ragstone.schemas.documents import IngestRoundSchema

        write_json_line(IngestRoundSchema.of(report, at=now()))
        return set()
    line = f"{now():%H:%M:%S} UTC  {in_words(report)}; {report.documents:,} documents in all"
    console().print(line)
    reasons = {
        f"{failure.uri}: {failure.error.removeprefix(f'{failure.uri} ')}": failure.advice for failure in report.failed
    }
    session.warn(reason for reason in reasons if reason not in told)
    for hint in dict.fromkeys(hint for reason, hint in reasons.items() if hint and reason not in told):
        session.remark("hint", hint)
    warnings = (*report.warnings, *report.degraded)
    session.warn(warning for warning in warnings if warning not in told)
    return {*reasons, *warnings}

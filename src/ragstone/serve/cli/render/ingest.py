"""Ingest runs: counts, reasons and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.render.failures import draw_failures
from ragstone.serve.cli.render.output import one_line, pluralize, table, text

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.documents import FileKind, IngestReport

SOMETIMES = ("removed", "moved", "duplicates", "skipped")
"""Counts that are shown only when there is something to count."""
MOST_FILES = 100


def outcome(report: IngestReport) -> int:
    """Return the exit code: 3 when some failed, 1 when all did."""
    if not report.failed:
        return OK
    return PARTIAL if report.added + report.updated + report.unchanged else FAILURE


def remarks(report: IngestReport) -> list[str]:
    """Return what a person should know beside the counts."""
    notes = [*report.warnings, *report.degraded]
    if report.skipped_chunks:
        notes.append(f"{pluralize(report.skipped_chunks, 'chunk')} got no vector: the model refused the text")
    counts = (report.added, report.updated, report.unchanged, report.failed, report.removed, report.moved)
    if not any((*counts, report.skipped)):
        notes.append("no documents were found there")
    return notes


def in_words(report: IngestReport) -> str:
    """Return the counts that are not zero: `2 added, 1 removed`."""
    counts = {name: getattr(report, name) for name in ("added", "updated", "unchanged", *SOMETIMES)}
    counts["failed"] = len(report.failed)
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing to do"


def draw_report(out: Console, report: IngestReport, kb: str, took: float, *, stages: bool = False) -> None:
    """Draw the counts, the failures with their reasons, and what the kb holds now; `took` is in seconds."""
    draw_counts(out, report)
    if stages:
        out.print()
        draw_stages(out, report, took)
    out.print()
    holds = f"{pluralize(report.documents, 'document')} and {pluralize(report.chunks, 'chunk')}"
    out.print(f"Knowledge base '{kb}' holds {holds}. Took {took:.1f} s.")


def draw_counts(out: Console, report: IngestReport) -> None:
    """Draw a row of counts, and the failures with their reasons."""
    names = ["added", "updated", "unchanged", *(name for name in SOMETIMES if getattr(report, name))]
    counts = table(*names, "failed", right=(*names, "failed"))
    failed = text(f"{len(report.failed):,}", "bold red" if report.failed else "")
    counts.add_row(*(f"{getattr(report, name):,}" for name in names), failed)
    out.print(counts)
    if report.failed:
        out.print()
        draw_failures(out, report.failed)


def draw_files(out: Console, files: Sequence[FileKind]) -> None:
    """Draw the format that each file was read as, up to a screen or two of them."""
    if not files:
        return
    out.print()
    rows = table("format", "file")
    for file in files[:MOST_FILES]:
        rows.add_row(file.media_type, text(one_line(file.uri)))
    out.print(rows)
    if len(files) > MOST_FILES:
        out.print(f"… and {len(files) - MOST_FILES:,} more; --json lists them all")


def draw_stages(out: Console, report: IngestReport, took: float) -> None:
    """Draw how the time was spent. Stages work side by side: each moment is shared by those at work."""
    rows = table("stage", "seconds", "share", "in", "out", right=("seconds", "share", "in", "out"))
    rest = took
    for stage in report.stages:
        seconds = round(report.shares.get(stage.stage, 0.0) / 1000, 1)
        rest -= seconds
        counts = (f"{stage.entered:,}", f"{stage.left:,}")
        rows.add_row(stage.stage, f"{seconds:,.1f}", f"{seconds / took:.0%}", *counts)
    rows.add_row("start and end", f"{rest:,.1f}", f"{rest / took:.0%}", "", "")
    rows.add_row("all", f"{took:,.1f}", "100%", "", "")
    out.print(rows)

"""`ragstone export` and `ragstone import`: everything of a tenant in one file, and out of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.render.output import pluralize, text
from ragstone.serve.cli.render.progress import move_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.transfer.reports import ExportReport, ImportReport

MB = 1024 * 1024


async def export_archive(
    session: CliSession,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write.")],
    files: Annotated[bool, typer.Option("--files/--no-files", help="Include uploaded original files.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Export a tenant's knowledge bases to one archive.

    All of them, or those named with --kb (a,b,c), as one consistent snapshot. Vectors are in it, secrets of sources are
    not. It is not encrypted.
    """
    settings = session.settings(kb=None)
    async with session.workspace(settings) as workspace:
        with move_progress(session) as on_progress:
            report = await workspace.archive.export(
                file, kbs=_kbs(session), files=files, overwrite=overwrite, on_progress=on_progress
            )
    if report.files and settings.security.key:
        session.warn([f"{file} holds {pluralize(report.files, 'original file')} that is not encrypted in it"])
    session.warn(report.remarks)
    from ragstone.schemas.transfer import ExportSchema

    session.show(ExportSchema.of(report), lambda out: _draw_export(out, report))


async def import_archive(
    session: CliSession,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to import.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing documents that differ.")] = False,
) -> int:
    """Import the documents of an archive.

    They keep their ids, vectors and times. Everything is checked before anything is written. After an interruption the
    same command continues.
    """
    async with session.workspace(session.settings(kb=None), create=True) as workspace:
        with move_progress(session) as on_progress:
            report = await workspace.archive.restore(
                file, kbs=_kbs(session), overwrite=overwrite, on_progress=on_progress
            )
    session.warn(report.remarks)
    from ragstone.schemas.transfer import ImportSchema

    session.show(ImportSchema.of(report), lambda out: _draw_import(out, report))
    return PARTIAL if report.left else OK


def _kbs(session: CliSession) -> list[str] | None:
    given = session.options.kb
    return [name.strip() for name in given.split(",")] if given is not None else None


def _draw_export(out: Console, report: ExportReport) -> None:
    held = ", ".join(
        (
            pluralize(len(report.kbs), "knowledge base"),
            pluralize(report.documents, "document"),
            pluralize(report.chunks, "chunk"),
            pluralize(report.vectors, "vector"),
            pluralize(report.files, "original file"),
        )
    )
    out.print(text(f"Wrote {report.path} ({report.bytes / MB:.1f} MB): {held}."))


def _draw_import(out: Console, report: ImportReport) -> None:
    out.print(
        text(
            f"Added {report.added:,}, replaced {report.replaced:,}, left alone {report.unchanged:,} equal ones: "
            f"{pluralize(report.chunks, 'chunk')} in {report.seconds:.1f} s."
        )
    )
    if report.left:
        out.print(text(f"{pluralize(report.left, 'document')} here and different, and not replaced:", "yellow"))
        for uri in report.differing:
            out.print(text(f"  {uri}"))
        out.print("Replace them with --overwrite.")

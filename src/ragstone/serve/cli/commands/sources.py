"""`ragstone sources`: the places that documents are fetched from, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.render.failures import draw_failures
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.render.receipts import documents_of, show_receipts
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.source_settings import read_settings

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.jobs import SourceRecord
    from ragstone.ingest.sources.files.source import Overlaps
    from ragstone.serve.cli.options import Common

COLOURS = {"ok": "green", "failed": "bold red", "failing": "bold red", "partly": "yellow", "paused": "yellow"}
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the source.")]


async def add_source(
    session: CliSession,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Kind of source, as `sources kinds` lists them.")],
    name: Name,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Settings of that kind. A key given twice makes a list; values may be JSON."
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="WHEN",
            help="manual, hourly, daily, weekly, monthly, or five cron fields such as '30 6 * * mon-fri' (UTC); "
            "by default that of its kind.",
        ),
    ] = None,
) -> None:
    """Set up a source. `${VARIABLE}` in a setting is taken from the environment when it is read."""
    from ragstone.ingest.sources import unset_variables
    from ragstone.schemas.sources import SourceSchema

    config = read_settings(kind, settings or ())
    async with session.workspace(create=True) as workspace:
        made = await workspace.sources.add(kind, name, config, schedule=schedule)
        overlaps = await workspace.sources.overlaps(made)
    session.show(SourceSchema.of(made), lambda out: out.print(f"Added source '{name}' to knowledge base '{made.kb}'."))
    session.warn(f"${{{unset}}} is not set here: a sync fails where it is not" for unset in unset_variables(config))
    session.warn(describe_overlaps(overlaps, made, session.options) if overlaps else ())
    session.remark("next", session.options.command("sources", "sync", name))


async def list_sources(session: CliSession) -> int:
    """List, set up and sync sources.

    Lists those of all knowledge bases unless one is named.
    """
    from ragstone.schemas.sources import SourceListSchema

    async with session.workspace() as workspace:
        found = await workspace.sources.list(kb=session.options.kb)
    session.show(SourceListSchema.of(sources=found), lambda out: _draw(out, found, session.options))
    return OK if found else NOTHING_FOUND


async def show_source(session: CliSession, name: Name) -> None:
    """Show a source, its settings and its failures."""
    from ragstone.schemas.sources import SourceSchema

    async with session.workspace() as workspace:
        source = await workspace.sources.get(name)
    session.show(SourceSchema.of(source), lambda out: _draw_one(out, source, session.options))


async def pause_source(session: CliSession, name: Name) -> None:
    """Pause the schedule of a source."""
    await _pause(session, name, paused=True)


async def resume_source(session: CliSession, name: Name) -> None:
    """Resume the schedule of a source."""
    await _pause(session, name, paused=False)


async def remove_source(
    session: CliSession,
    name: Name,
    keep_documents: Annotated[bool, typer.Option("--keep-documents", help="Keep its documents.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove a source and its documents. Asks first on a terminal."""
    async with session.workspace() as workspace:
        await workspace.sources.get(name)
        what = "" if keep_documents else " with all its documents"
        if not session.confirms(f"Remove source '{name}'{what}?", yes=yes):
            return FAILURE
        if keep_documents:
            await workspace.sources.remove(name, keep_documents=True)
            receipts = []
        else:
            receipts = await workspace.erase("source", name)
    documents = documents_of(receipts)
    from ragstone.schemas.erasure import RemovedSourceSchema

    return show_receipts(
        session,
        RemovedSourceSchema.of(removed=name, documents=documents, receipts=receipts),
        f"Removed source '{name}' with {pluralize(documents, 'document')}.",
        receipts,
    )


async def _pause(session: CliSession, name: str, *, paused: bool) -> None:
    from ragstone.schemas.sources import SourceSchema

    async with session.workspace() as workspace:
        await (workspace.sources.pause(name) if paused else workspace.sources.resume(name))
        source = await workspace.sources.get(name)
    following = f"; next run: {moment(source.next_run_at)}" if source.next_run_at else ""
    how = "is paused" if paused else f"goes on{following}"
    session.show(SourceSchema.of(source), lambda out: out.print(f"Source '{name}' {how}."))


def _draw(out: Console, sources: Sequence[SourceRecord], options: Common) -> None:
    if not sources:
        out.print("No sources.")
        return
    # A terminal has no room for it: there it stands below.
    error = [] if out.is_terminal else ["last error"]
    rows = table("name", "kind", "kb", "schedule", "state", "last run", "next run", *error)
    for source in sources:
        state = source.state
        rows.add_row(
            source.name,
            source.kind,
            source.kb,
            text(source.schedule),
            text(state, COLOURS.get(state, "")),
            moment(source.last_run_at),
            moment(source.next_run_at),
            *(text(_trouble(source)) for _ in error),
        )
    out.print(rows)
    troubled = [source for source in sources if out.is_terminal and _trouble(source)]
    for source in troubled:
        gap = "\n" if source is troubled[0] else ""
        out.print(text(f"{gap}{source.name}: ", "bold").append(_trouble(source)))
    if troubled:
        out.print(f"\nAll that failed, and what to do: {options.command('sources', 'show', 'NAME')}")


def _trouble(source: SourceRecord) -> str:
    """Return what ended the last run, or how much could not be taken in and the first reason."""
    lost = source.source_failures
    if source.last_error or not lost.count:
        return one_line(source.last_error)
    return f"{lost.count:,} failed: {one_line(lost.first[0].error)}"


def _draw_one(out: Console, source: SourceRecord, options: Common) -> None:
    import json

    from ragstone.schemas.settings import mask_secrets

    state, lost = source.state, source.source_failures
    facts = {
        "source": f"{source.name}, {source.kind}, knowledge base '{source.kb}'",
        "schedule": source.schedule,
        "last run": moment(source.last_run_at),
        "next run": moment(source.next_run_at),
    }
    out.print(text(f"{'state':<10}", "dim").append(state, COLOURS.get(state, "")))
    for name, value in facts.items():
        out.print(text(f"{name:<10}", "dim").append(value))
    for name, value in mask_secrets(dict(source.config)).items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        out.print(text(f"{'setting':<10}", "dim").append(f"{name}={one_line(shown)}"))
    if lost.first:
        out.print()
        draw_failures(out, lost.first)
    if (more := lost.count - len(lost.first)) > 0:
        command = options.command("jobs", "--source", source.name, "--state", "failed", "-n", str(lost.count))
        out.print()
        out.print(f"And {more:,} more; those that came in and failed then: {command}")


NAMED = 5
"""The number of documents that are named one by one."""


def describe_overlaps(overlaps: Overlaps, added: SourceRecord, options: Common) -> list[str]:
    """Return a warning for each other way by which documents under the folder of a source come."""
    if overlaps.is_missing:
        return [f"there is no {overlaps.folder} yet: a sync fails until there is"]
    remove = options.command("sources", "remove", added.name)
    warnings = [
        f"source '{other.name}' reads {other.config['path']} too: what both read stays with the first; "
        f"to undo this: {remove}"
        for other in overlaps.sources
    ]
    if ids := overlaps.document_ids:
        named = " ".join(ids) if len(ids) <= NAMED else "ID… (ids: ragstone documents)"
        warnings.append(
            f"'ragstone ingest' has brought {pluralize(len(ids), 'document')} under {overlaps.folder} already, and "
            f"this source passes them over; to have it bring them instead: ragstone documents delete "
            f"{named}{options.as_typed()}; to undo this: {remove}"
        )
    return warnings

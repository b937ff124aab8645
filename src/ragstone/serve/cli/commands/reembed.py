"""`ragstone reembed`: move a knowledge base to another embedding model, or refresh its embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.core.errors import InputError
from ragstone.core.model_types import model_name
from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.render.progress import fill_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragstone.core.spaces import SpaceRecord
    from ragstone.engine.embeddings.reembed import ReembedReport
    from ragstone.engine.embeddings.refresh import RefreshReport
    from ragstone.engine.embeddings.triggers import RefreshStatus
    from ragstone.evaluate.spaces import SpaceComparison

# The same words as in `ragstone.core`, which costs too much to import for a help page.
Mode = Literal["full", "incremental", "dual"]
GRACE_DAYS = 7
ENDED = {
    "promoted": "is live now",
    "rolled back": "is live again",
    "beside": "is beside the live one",
    "filled": "is filled",
    "not promoted": "was not made live: it finds less than the live one",
}


async def reembed(
    session: CliSession,
    model: Annotated[
        str | None, typer.Option("--model", help="Model to move to; by default the configured one.")
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode",
            help="full: build a new space and make it live. incremental: fill in what is missing. "
            "dual: build and keep both.",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", metavar="PATH", help="Labelled queries for the comparison; by default made from the text."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Make it live even if it finds less; with --cleanup, remove all retired spaces."),
    ] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Switch back to the previous model.")] = False,
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Remove replaced spaces whose grace period is over.")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove spaces that were built but never made live.")
    ] = False,
    spaces: Annotated[
        bool, typer.Option("--spaces", help="Only list the embedding spaces of the knowledge base.")
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh", help="Fill in missing vectors, compare a sample with fresh ones, rebuild all if one differs."
        ),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Only show the last and the next refresh by workers.")
    ] = False,
    grace_days: Annotated[
        int, typer.Option("--grace-days", min=0, max=3650, help="Days to keep a replaced space.")
    ] = GRACE_DAYS,
) -> int:
    """Move a knowledge base to another embedding model.

    A new space is built next to the live one and compared with it. It becomes live unless it is worse. Searches and
    writes continue. After an interruption the same command continues.
    """
    ways = {"rollback": rollback, "cleanup": cleanup, "discard": discard, "spaces": spaces}
    _check(model, mode, queries, **ways, refresh=refresh, status=status)
    _check_waste("--refresh" if refresh else "--status" if status else "", force, grace_days)
    if spaces:
        return await _list(session)
    if refresh:
        return await refresh_now(session)
    if status:
        return await show_status(session)
    if cleanup or discard:
        return await _clean(session, retired=cleanup and force, building=discard)
    async with session.workspace() as workspace:
        with fill_progress(session) as on_progress:
            if rollback:
                report = await workspace.embeddings.rollback(grace_days=grace_days, on_progress=on_progress)
            else:
                report = await workspace.embeddings.reembed(
                    model, mode=mode, queries=queries, force=force, grace_days=grace_days, on_progress=on_progress
                )
    from ragstone.schemas.embeddings import ReembedSchema

    way_back = session.options.command("reembed", "--rollback")
    session.show(ReembedSchema.of(report), lambda out: _draw(out, report, way_back))
    if report.mode == "incremental" and mode is None:
        command = session.options.command("reembed", "--model", model_name(report.model), "--mode", "full")
        session.remark("hint", f"this knowledge base has the model already; to embed everything again: {command}")
    if report.outcome == "not promoted":
        session.remark("hint", "look at both with --json, or make it live all the same with --force")
        return FAILURE
    return OK


def _check(model: str | None, mode: str | None, queries: Path | None, **ways: bool) -> None:
    chosen = [f"--{name}" for name, given in ways.items() if given]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} do not go together", hint="choose one of them")
    if chosen and (model or mode or queries):
        raise InputError(f"{chosen[0]} takes no --model, --mode or --queries", hint="leave those out")


def _check_waste(way: str, force: bool, grace_days: int) -> None:
    if way and (force or grace_days != GRACE_DAYS):
        raise InputError(f"{way} takes no --force or --grace-days", hint="leave those out")


async def _list(session: CliSession) -> int:
    settings = session.settings()
    async with session.workspace(settings) as workspace:
        found = await workspace.embeddings.spaces()
    from ragstone.schemas.embeddings import SpaceListSchema

    session.show(SpaceListSchema.of(kb=settings.kb, spaces=found), lambda out: _draw_spaces(out, found))
    return OK if found else NOTHING_FOUND


async def _clean(session: CliSession, *, retired: bool, building: bool) -> int:
    async with session.workspace() as workspace:
        gone = await workspace.embeddings.clean(retired=retired, building=building)
    from ragstone.schemas.activity import RemovedSchema

    session.show(RemovedSchema.of(removed=gone), lambda out: out.print(f"Removed {pluralize(gone, 'space')}."))
    return OK


def _draw(out: Console, report: ReembedReport, way_back: str) -> None:
    if report.comparison:
        _draw_comparison(out, report.comparison)
    done = f"{pluralize(report.written, 'vector')} written in {report.seconds:.1f} s"
    refused = f", {pluralize(report.refused, 'chunk')} refused by the model" if report.refused else ""
    out.print(text(f"{report.model}, generation {report.generation}, {ENDED[report.outcome]}: {done}{refused}."))
    if report.replaced:
        out.print(text(f"{report.replaced} was live before; go back with: {way_back}"))
        out.print(text(f"Next: set embedding.model to {model_name(report.model)}, for what is ingested from now on."))


def _draw_comparison(out: Console, comparison: SpaceComparison) -> None:
    rows = table("", "before", "after", right=("before", "after"))
    for name, before in comparison.before.items():
        rows.add_row(name, f"{before:.3f}", f"{comparison.after[name]:.3f}")
    out.print(rows)
    interval = comparison.interval
    out.print(
        f"on {pluralize(comparison.queries, 'question')} ({comparison.dataset}): "
        f"difference {interval.difference:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"
    )
    for overlap in comparison.agreements:
        most = max(len(overlap.before), len(overlap.after))
        out.print(f"“{overlap.query}”: {overlap.common} of the first {most} are the same")
    for problem in (*comparison.problems, *comparison.remarks):
        out.print(text(problem))
    out.print()


def _draw_spaces(out: Console, found: Sequence[SpaceRecord]) -> None:
    if not found:
        out.print("Nothing is embedded yet.")
        return
    rows = table("generation", "model", "state", "vectors", "chunks", "kept until", right=("vectors", "chunks"))
    for record in found:
        rows.add_row(
            str(record.space.generation),
            text(record.space.model),
            record.space.state,
            f"{record.vectors:,}",
            f"{record.chunks:,}",
            moment(record.keep_until),
        )
    out.print(rows)


async def refresh_now(session: CliSession) -> int:
    """Refresh the kb here and now."""
    async with session.workspace() as workspace:
        with fill_progress(session) as on_progress:
            report = await workspace.embeddings.refresh(on_progress=on_progress)
    from ragstone.schemas.embeddings import RefreshSchema

    session.show(RefreshSchema.of(report), lambda out: _draw_refresh(out, report))
    return FAILURE if report.outcome == "not promoted" else OK


async def show_status(session: CliSession) -> int:
    """Show when the kb was refreshed and will be."""
    async with session.workspace() as workspace:
        status = await workspace.embeddings.status()
    from ragstone.schemas.embeddings import RefreshStatusSchema

    session.show(RefreshStatusSchema.of(status), lambda out: _draw_status(out, status))
    return OK


def _draw_refresh(out: Console, report: RefreshReport) -> None:
    looked = report.freshness
    out.print(text(one_line(f"{report}.")))
    if looked.lowest is not None:
        out.print(f"The least alike of them has a cosine of {looked.lowest:.4f}.")


def _draw_status(out: Console, status: RefreshStatus) -> None:
    triggers = ", ".join(status.settings.when) or "nothing else"
    facts = {
        "every": f"{status.settings.every}; also on: {triggers}",
        "next": moment(status.next_at) if status.next_at else "not by itself",
        "by worker": f"{moment(status.last.created_at)}, {status.last.state}" if status.last else "never",
        "found": one_line("; ".join(status.last.progress.remarks)) if status.last else "",
        "error": one_line(status.last.error) if status.last else "",
    }
    for name, value in facts.items():
        if value:
            out.print(text(f"{name:<10}", "dim").append(value))

"""`ragstone reembed --refresh` and `--status`: embeddings that are looked after, by hand and by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.render.output import moment, one_line, text
from ragstone.serve.cli.render.progress import fill_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.engine.embeddings.refresh import RefreshReport
    from ragstone.engine.embeddings.triggers import RefreshStatus


async def refresh_now(session: Session) -> int:
    """Refresh the kb here and now."""
    async with session.workspace() as workspace:
        with fill_progress(session) as on_progress:
            report = await workspace.embeddings.refresh(on_progress=on_progress)
    from ragstone.schemas.embeddings import RefreshSchema

    session.show(RefreshSchema.of(report), lambda out: _draw(out, report))
    return FAILURE if report.outcome == "not promoted" else OK


async def show_status(session: Session) -> int:
    """Show when the kb was refreshed and will be."""
    async with session.workspace() as workspace:
        status = await workspace.embeddings.status()
    from ragstone.schemas.embeddings import RefreshStatusSchema

    session.show(RefreshStatusSchema.of(status), lambda out: _draw_status(out, status))
    return OK


def _draw(out: Console, report: RefreshReport) -> None:
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

"""`ragstone reembed --refresh` and `--status`: embeddings that are looked after, by hand and by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.output import moment, one_line, text
from ragstone.serve.cli.progress import fill_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.refresh.refresher import RefreshReport
    from ragstone.refresh.triggers import RefreshStatus


async def refresh_now(session: Session) -> int:
    """Refresh the kb here and now."""
    async with session.engine() as engine:
        with fill_progress(session) as on_progress:
            report = await engine.refresh(on_progress=on_progress)
    session.show(refresh_json(report), lambda out: _draw(out, report))
    return FAILURE if report.outcome == "not promoted" else OK


async def show_status(session: Session) -> int:
    """Show when the kb was refreshed and will be."""
    async with session.engine() as engine:
        status = await engine.refresh_status()
    session.show(status_json(status), lambda out: _draw_status(out, status))
    return OK


def refresh_json(report: RefreshReport) -> dict[str, Any]:
    """The shape that `ragstone reembed --refresh --json` prints."""
    from ragstone.serve.cli.reembed import report_json

    looked = report.freshness
    return {
        "kb": report.kb,
        "outcome": report.outcome,
        "model": report.model or None,
        "written": report.written,
        "refused": report.refused,
        "sampled": looked.sampled,
        "differing": looked.differing,
        "lowest_cosine": None if looked.lowest is None else round(looked.lowest, 6),
        "reembedded": report_json(report.anew) if report.anew else None,
    }


def status_json(status: RefreshStatus) -> dict[str, Any]:
    """The shape that `ragstone reembed --status --json` prints."""
    from ragstone.core.clock import canonical
    from ragstone.core.wire_jobs import job_json

    return {
        "kb": status.kb,
        "every": status.settings.every,
        "when": list(status.settings.when),
        "next_at": canonical(status.next_at) if status.next_at else None,
        "last": job_json(status.last) if status.last else None,
    }


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

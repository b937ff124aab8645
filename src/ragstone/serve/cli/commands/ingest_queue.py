"""`ragstone ingest --queue`: files that a worker takes in later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.render.failures import draw_failures
from ragstone.serve.cli.render.output import one_line, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.jobs import DocumentStatus
    from ragstone.core.types import Failure


async def queue_files(session: Session, paths: Sequence[Path]) -> int:
    """Queue each document; what was queued will not be lost."""
    from ragstone.core.types import SKIPPED
    from ragstone.ingest.work import describe_skipped

    async with session.workspace(create=True) as workspace:
        queued, others = await workspace.documents.queue(*paths)
    failed = [one for one in others if one.code != SKIPPED]
    _show(session, queued, failed)
    session.warn(describe_skipped([one for one in others if one.code == SKIPPED]))
    if not failed:
        return OK
    return PARTIAL if queued else FAILURE


def _show(session: Session, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
    from ragstone.schemas.documents import QueuedDocumentsSchema

    shape = QueuedDocumentsSchema.of(queued=queued, failed=failed)
    session.show(shape, lambda out: _draw(out, queued, failed))
    if any(_state(status) == "pending" for status in queued):
        session.remark("next", session.options.command("worker", "--until-idle"))


def _draw(out: Console, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
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
    """That of the newest version: an earlier one may be live while it waits."""
    return status.job.state if status.job else status.status

"""`ragstone ingest --watch`: take in files, and again whenever they change."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import OK
from ragstone.serve.cli.render.ingest import in_words
from ragstone.serve.cli.render.output import console, write_json_line
from ragstone.serve.cli.session import Session
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from ragstone.core.types import IngestReport
    from ragstone.engine.workspace import Workspace

QUIET_SECONDS = 1.0
"""How long files must stay as they are before they are read."""


async def keep_ingesting(session: Session, paths: Sequence[Path]) -> int:
    """Ingest now and after each change, one line per round, until told to stop."""
    async with session.workspace(create=True) as workspace:
        await until_signal(_ingest_rounds(session, workspace, paths))
    return OK


async def _ingest_rounds(session: Session, workspace: Workspace, paths: Sequence[Path]) -> None:
    from ragstone.ingest.sources.files.watch import watch_rounds

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


def _tell(session: Session, report: IngestReport, told: Set[str]) -> set[str]:
    """Say what a round did, and of what went wrong what the round before did not say; all of that is given back."""
    from ragstone.core.clock import now

    if session.options.json:
        from ragstone.schemas.documents import IngestRoundSchema

        write_json_line(IngestRoundSchema.of(report, at=now()))
        return set()
    line = f"{now():%H:%M:%S} UTC  {in_words(report)}; {report.documents:,} documents in all"
    console().print(line)
    reasons = {f"{one.uri}: {one.error.removeprefix(f'{one.uri} ')}": one.advice for one in report.failed}
    session.warn(reason for reason in reasons if reason not in told)
    for hint in dict.fromkeys(hint for reason, hint in reasons.items() if hint and reason not in told):
        session.remark("hint", hint)
    warnings = (*report.warnings, *report.degraded)
    session.warn(warning for warning in warnings if warning not in told)
    return {*reasons, *warnings}

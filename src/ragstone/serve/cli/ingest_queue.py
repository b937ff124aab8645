"""`ragstone ingest --queue`: files that a worker takes in later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.core.errors import InputError, ParseError
from ragstone.core.jobs import DocumentStatus
from ragstone.core.types import Failure
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.ingest_report import draw_failures
from ragstone.serve.cli.output import one_line, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.ingest.sources.walk import Found
    from ragstone.intake import Intake


async def queue_files(session: Session, paths: Sequence[Path]) -> int:
    """Queue each file as an upload; what was queued will not be lost."""
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="check the spelling; nothing was queued")
    settings = session.settings()
    queued: list[DocumentStatus] = []
    failed: list[Failure] = []
    async with session.engine(settings, create=True) as engine:
        async for entry in _uploads(engine.intake, paths, settings.limits.file_mb):
            if isinstance(entry, DocumentStatus):
                queued.append(entry)
            else:
                failed.append(entry)
    _show(session, queued, failed)
    if not failed:
        return OK
    return PARTIAL if queued else FAILURE


async def _uploads(
    intake: Intake, paths: Sequence[Path], file_mb: int
) -> AsyncIterator[DocumentStatus | Failure]:
    import asyncio

    for found in await asyncio.to_thread(list, _files(paths)):
        yield found if isinstance(found, Failure) else await _upload(intake, found, file_mb)


def _files(paths: Sequence[Path]) -> Iterator[Found | Failure]:
    from ragstone.ingest.sources.walk import find, real

    seen: set[Path] = set()
    for path in paths:
        for found in find(path):
            if isinstance(found, Failure):
                yield found
            elif (place := real(found.path)) not in seen:
                seen.add(place)
                yield found


async def _upload(intake: Intake, found: Found, file_mb: int) -> DocumentStatus | Failure:
    import asyncio

    from ragstone.ingest.sources.walk import as_text, real

    place = as_text(real(found.path).as_posix())
    try:
        content = await asyncio.to_thread(_content, found.path, file_mb)
        # Known by its place: the same file, changed and queued again, is the same document.
        return await intake.upload(content, found.path.name, external_id=place)
    except (ParseError, InputError) as error:
        return Failure(found.shown, error.code, str(error))
    except OSError as error:
        return Failure(found.shown, "unreadable", f"{found.shown} cannot be read: {error.strerror or error}")


def _content(path: Path, file_mb: int) -> bytes:
    if not path.is_file():
        raise InputError(f"{path} is not a regular file")
    with path.open("rb") as file:
        # One byte more than is allowed is enough to be refused; a huge file is not read for that.
        return file.read(file_mb * 1024 * 1024 + 1)


def _show(session: Session, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
    from ragstone.core.wire import failure_json
    from ragstone.core.wire_jobs import status_json

    shape = {
        "queued": [status_json(status) for status in queued],
        "failed": [failure_json(failure) for failure in failed],
    }
    session.show(shape, lambda out: _draw(out, queued, failed))
    if any(status.status == "pending" for status in queued):
        session.remark("next", f"ragstone worker --until-idle{session.options.as_typed()}")


def _draw(out: Console, queued: Sequence[DocumentStatus], failed: Sequence[Failure]) -> None:
    if queued:
        # The job comes first, since that is what one asks for next.
        rows = table("id", "status", "document", "file")
        for status in queued:
            job = status.job.id if status.job else "–"
            rows.add_row(job, status.status, status.document_id, text(one_line(status.uri)))
        out.print(rows)
    if failed:
        draw_failures(out, failed)
    if not (queued or failed):
        out.print("No documents were found there.")

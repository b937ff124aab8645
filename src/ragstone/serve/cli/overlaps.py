"""Whether a new source would bring what the knowledge base has already: a source owns what it brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.core.errors import NotFoundError
from ragstone.serve.cli.output import counted

if TYPE_CHECKING:
    from ragstone.core.jobs import SourceRecord
    from ragstone.engine import Engine

KIND = "files"
PAGE = 1000
NAMED = 5
"""How many documents are named one by one."""


async def overlaps(engine: Engine, added: SourceRecord, options: str) -> list[str]:
    """A warning for each other way by which documents under the folder of a source have come or will come, or if there
    is no such folder.

    `options` are those that the commands it names have to be typed with.
    """
    folder = str(added.config.get("path", ""))
    if added.kind != KIND or not folder or "${" in folder:
        return []
    place = _place(folder)
    if not place.exists():
        return [f"there is no {place} yet: a sync fails until there is"]
    remove = f"ragstone sources remove {added.name}{options}"
    found = [
        f"source '{other.name}' reads {other.config['path']} too, so what both read is there twice; "
        f"to undo this: {remove}"
        for other in await engine.intake.sources(kb=added.kb)
        if other.name != added.name and other.kind == KIND and _meet(place, str(other.config["path"]))
    ]
    if ids := await _ingested(engine, added.kb, place):
        named = " ".join(ids) if len(ids) <= NAMED else "ID… (ids: ragstone documents)"
        found.append(
            f"'ragstone ingest' has brought {counted(len(ids), 'document')} under {place} already, and this source "
            f"will bring them again; to keep those of the source: ragstone documents delete {named}{options}; "
            f"to undo this: {remove}"
        )
    return found


def _place(folder: str) -> Path:
    return Path(folder).expanduser().resolve()


def _meet(place: Path, other: str) -> bool:
    if "${" in other:
        return False
    there = _place(other)
    return place.is_relative_to(there) or there.is_relative_to(place)


async def _ingested(engine: Engine, kb: str, place: Path) -> list[str]:
    """Ids of the documents under a place that `ragstone ingest` has brought."""
    ids: list[str] = []
    after = ""
    while True:
        try:
            page = await engine.documents(where={"source": KIND}, after=after, limit=PAGE, kb=kb)
        except NotFoundError:
            return ids  # nothing has been put into this knowledge base yet
        ids += [one.id for one in page if Path(one.external_id).is_relative_to(place)]
        if len(page) < PAGE:
            return ids
        after = page[-1].id

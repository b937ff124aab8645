"""Documents that a new source of files would bring although the knowledge base has them already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragstone.core.filters import parse_filter
from ragstone.core.jobs import SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import TenantSources

KIND = "files"
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Other ways by which documents under the folder of a source have come or will come."""

    folder: Path
    is_missing: bool = False
    """The folder does not exist: a sync fails until it does."""
    sources: tuple[SourceRecord, ...] = ()
    """Sources that read the same files."""
    document_ids: tuple[str, ...] = ()
    """Documents that were ingested from there."""


async def find_overlaps(ledger: Ledger, sources: TenantSources, tenant: str, added: SourceRecord) -> Overlaps | None:
    """Return what a new source has in common with the other sources of its kb and with what was ingested there.

    None for a source of another kind, and for a folder that only its environment knows.
    """
    path = str(added.config.get("path", ""))
    if added.kind != KIND or not path or "${" in path:
        return None
    folder = _resolve(path)
    if not folder.exists():
        return Overlaps(folder, is_missing=True)
    meeting = (
        other
        for other in await sources.all(added.kb)
        if other.name != added.name and other.kind == KIND and _meets(folder, str(other.config["path"]))
    )
    ids = await _list_ingested(ledger, tenant, added.kb, folder)
    return Overlaps(folder, sources=tuple(meeting), document_ids=tuple(ids))


async def _list_ingested(ledger: Ledger, tenant: str, name: str, folder: Path) -> list[str]:
    """Return the ids of documents under a folder that were ingested without a source."""
    kb = await ledger.kb(tenant, name)
    ids: list[str] = []
    after, where = "", parse_filter({"source": KIND})
    while kb and (page := await ledger.documents(tenant, kb, where=where, after=after, limit=PAGE)):
        ids += [document.id for document in page if Path(document.external_id).is_relative_to(folder)]
        after = page[-1].id
    return ids


def _resolve(path: str) -> Path:
    return Path(path).expanduser().resolve()


def _meets(folder: Path, other: str) -> bool:
    if "${" in other:
        return False
    there = _resolve(other)
    return folder.is_relative_to(there) or there.is_relative_to(folder)

"""Find who has brought a file already: it is one document, by whatever way it comes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragstone.core.jobs import SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import TenantSources
from ragstone.core.types import SKIPPED, Failure, KnowledgeBase
from ragstone.ingest.sources.files.walk import as_text, own_name, real

INGESTED = "files"
"""The name under which files are kept that no configured source has brought."""
MEMBER = "!/"
Owners = Mapping[str, str]
"""The source that has brought a file."""


async def find_path_owners(
    ledger: Ledger, sources: TenantSources, tenant: str, kb: KnowledgeBase, paths: Sequence[Path]
) -> Owners:
    """Return by absolute path which files at or under these paths a configured source has brought.

    A file that was ingested by its path before is not among them: it stays what it is.
    """
    roots = [real(path) for path in paths]
    found: dict[str, str] = {}
    for record in await sources.all(kb.name):
        folder = folder_of(record)
        if folder and any(is_one_in_the_other(folder, root) for root in roots):
            found |= await _list_files(ledger, tenant, kb, record.name, folder)
    if not found:
        return found
    ingested = await _list_files(ledger, tenant, kb, INGESTED)
    return {path: owner for path, owner in found.items() if path not in ingested}


async def find_source_owners(
    ledger: Ledger, sources: TenantSources, tenant: str, kb: KnowledgeBase, reader: SourceRecord
) -> Owners:
    """Return by external id which files of a source others have brought: another source, or an ingest by path."""
    folder = folder_of(reader)
    if folder is None:
        return {}
    found = await _list_files(ledger, tenant, kb, INGESTED)
    for record in await sources.all(kb.name):
        other = folder_of(record) if record.name != reader.name else None
        if other and is_one_in_the_other(folder, other):
            found = await _list_files(ledger, tenant, kb, record.name, other) | found
    within = _prefix(folder)
    own = await _list_files(ledger, tenant, kb, reader.name, folder) if found else {}
    return {path.removeprefix(within): owner for path, owner in found.items() if path not in own}


def report_owned(uri: str, owner: str) -> Failure:
    """Return the notice about a file that is passed over because it is a document already."""
    by = "by its path" if owner == INGESTED else f"by source '{owner}'"
    return Failure(uri, SKIPPED, f"already in the kb {by}")


def folder_of(record: SourceRecord) -> Path | None:
    """Return the folder under which a source names its files; None for other kinds, and if it is not known here."""
    path = str(record.config.get("path", ""))
    if record.kind != INGESTED or not path or "${" in path:
        return None
    root = real(Path(path).expanduser())
    return root.parent if root.is_file() else root


def is_one_in_the_other(folder: Path, other: Path) -> bool:
    """Return whether two folders are the same or one lies in the other."""
    return folder.is_relative_to(other) or other.is_relative_to(folder)


async def _list_files(
    ledger: Ledger, tenant: str, kb: KnowledgeBase, source: str, folder: Path | None = None
) -> dict[str, str]:
    """Return the live files of a source by absolute path; an archive counts for what is in it."""
    within = _prefix(folder) if folder else ""
    there = await ledger.of(tenant).source_documents(kb, source)
    return {within + name.partition(MEMBER)[0]: source for name, (_, hashed) in there.items() if hashed}


def _prefix(folder: Path) -> str:
    return own_name(as_text(folder.as_posix()).rstrip("/") + "/")

"""IMPORT: the documents of an archive go live in a tenant, in batches that are whole or not there at all.

Run again after it was cut short, it goes on: what is there already is not written again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ragstone.core.errors import NotFoundError
from ragstone.core.tenants import Admission
from ragstone.moves.archive_format import ArchivedKb
from ragstone.moves.archive_read import ArchiveReader, open_archive
from ragstone.moves.reports import ImportReport, OnMove
from ragstone.moves.restore import OpenedKb, Restorer
from ragstone.moves.sources import add_sources
from ragstone.stores.ledger.source_book import SecretKeys
from ragstone.stores.opening import Stores


async def import_archive(
    stores: Stores,
    tenant: str,
    path: Path,
    *,
    kbs: Sequence[str] | None,
    overwrite: bool,
    admission: Admission,
    secret_keys: SecretKeys,
    on_progress: OnMove | None,
) -> ImportReport:
    """Take in an archive after all of it was checked."""
    started = time.monotonic()
    tell = on_progress or (lambda _what, _done, _total: None)
    with ExitStack() as stack:
        opening = open_archive(path, lambda done, total: tell("check", done, total))
        reader = await asyncio.to_thread(stack.enter_context, opening)
        chosen = _chosen(reader, kbs, path)
        restorer = Restorer(stores.ledger, tenant, admission, overwrite=overwrite)
        sources, remarks = 0, list(reader.manifest.remarks)
        for kb in chosen:
            opened, said = await _import_kb(restorer, reader, kb, tell)
            added, more = await add_sources(stores, tenant, opened, reader.sources(kb), secret_keys)
            sources += added
            remarks += [*said, *more]
    done = restorer.done
    return ImportReport(
        path=str(path),
        tenant=tenant,
        kbs=tuple(kb.facts.name for kb in chosen),
        added=done.added,
        replaced=done.replaced,
        unchanged=done.unchanged,
        differing=tuple(done.differing),
        left=done.left,
        chunks=done.chunks,
        files=done.files,
        sources=sources,
        remarks=tuple(remarks),
        seconds=round(time.monotonic() - started, 3),
    )


def _chosen(reader: ArchiveReader, names: Sequence[str] | None, path: Path) -> list[ArchivedKb]:
    held = {kb.facts.name: kb for kb in reader.manifest.kbs}
    missing = [name for name in names or () if name not in held]
    if missing:
        raise NotFoundError(
            f"{path} holds no knowledge base '{missing[0]}'", hint=f"it holds: {', '.join(held) or 'none'}"
        )
    return [kb for name, kb in held.items() if names is None or name in names]


async def _import_kb(
    restorer: Restorer, reader: ArchiveReader, kb: ArchivedKb, tell: OnMove
) -> tuple[OpenedKb, list[str]]:
    opened = await restorer.open(kb.facts)
    left_out = [
        f"vectors of {space.model} (generation {space.generation}) were left out of '{kb.facts.name}'"
        for space, known in zip(kb.facts.spaces, opened.spaces, strict=True)
        if known is None
    ]
    parts = reader.parts(kb)
    seen = 0
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        await restorer.take(opened, part, reader.original)
        seen += len(part)
        tell(f"import {kb.facts.name}", seen, kb.documents)
    await restorer.look_around()
    return opened, left_out

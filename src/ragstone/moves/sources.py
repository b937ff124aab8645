"""Configured sources move with the documents they brought, so that these are not brought again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragstone.core.clock import now
from ragstone.core.errors import InputError, SettingsError
from ragstone.core.jobs import SourceRecord
from ragstone.ingest.schedule import next_run
from ragstone.moves.restore import OpenedKb
from ragstone.stores.ledger.restore_sources import restore_source
from ragstone.stores.opening import Stores


async def add_sources(
    stores: Stores, tenant: str, opened: OpenedKb, sources: Sequence[tuple[SourceRecord, Sequence[str]]]
) -> tuple[int, list[str]]:
    """Add sources of an archive, at rest until somebody resumes them; how many, and what to know about them."""
    added, remarks = 0, []
    for record, secrets in sources:
        if await stores.book.get(tenant, record.kb, record.name):
            remarks.append(f"source '{record.name}' of '{record.kb}' is there already and was left as it is")
            continue
        try:
            due = next_run(record.schedule, now())
            await put_source(stores, tenant, opened, replace(record, paused=True, next_run_at=due))
        except (InputError, SettingsError) as error:
            remarks.append(f"source '{record.name}' of '{record.kb}' was left out: {error}")
            continue
        added += 1
        needs = f" once it has been given its {', '.join(secrets)}" if secrets else ""
        remarks.append(f"source '{record.name}' of '{record.kb}' rests: resume it{needs}")
    return added, remarks


async def put_source(stores: Stores, tenant: str, opened: OpenedKb, record: SourceRecord) -> None:
    """Write a source with its place in what it reads; one of that name is replaced."""
    known = await stores.book.get(tenant, record.kb, record.name)
    if known and replace(known, id="") == replace(record, id=""):
        return
    if known:
        await stores.book.remove(tenant, known.id)
    added = await stores.book.add(
        tenant, opened.kb, record.name, record.kind, record.config, record.schedule, None
    )
    await stores.ledger.write(tenant, restore_source, added.id, record)

"""Configured sources move with the documents they brought, so that these are not brought again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ragstone.core.clock import now
from ragstone.core.errors import InputError, SettingsError
from ragstone.core.jobs import SourceRecord
from ragstone.core.types import Json
from ragstone.ingest.schedule import next_run
from ragstone.moves.restore import OpenedKb
from ragstone.stores.ledger.restore_sources import restore_source
from ragstone.stores.ledger.source_book import SecretKeys
from ragstone.stores.opening import Stores

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
"""How a reference to the environment begins, with or without a default."""


async def add_sources(
    stores: Stores,
    tenant: str,
    opened: OpenedKb,
    sources: Sequence[tuple[SourceRecord, Sequence[str]]],
    secret_keys: SecretKeys,
) -> tuple[int, list[str]]:
    """Add sources of an archive, at rest until somebody resumes them; how many, and what to know about them."""
    added, remarks = 0, []
    for record, secrets in sources:
        if await stores.book.get(tenant, record.kb, record.name):
            remarks.append(f"source '{record.name}' of '{record.kb}' is there already and was left as it is")
            continue
        try:
            reads = _checked_references(record, secret_keys(record.kind))
            due = next_run(record.schedule, now())
            await put_source(stores, tenant, opened, replace(record, paused=True, next_run_at=due))
        except (InputError, SettingsError) as error:
            remarks.append(f"source '{record.name}' of '{record.kb}' was left out: {error}")
            continue
        added += 1
        needs = f" once it has been given its {', '.join(secrets)}" if secrets else ""
        told = f"; it is then given {', '.join(reads)} of this server's environment" if reads else ""
        remarks.append(f"source '{record.name}' of '{record.kb}' rests: resume it{needs}{told}")
    return added, remarks


def _checked_references(record: SourceRecord, secret_keys: Collection[str]) -> list[str]:
    """The variables that a source reads. In an address, or where a text is to be sent, one could carry off a secret."""
    found: dict[str, None] = {}
    for key, value in record.config.items():
        names = dict.fromkeys(_references(value))
        if names and key not in secret_keys:
            raise SettingsError(f"its {key!s:.80} reads {', '.join(names)} of this server's environment")
        found.update(names)
    return [f"${{{name}}}" for name in found]


def _references(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield from REFERENCE.findall(value)
        case Mapping():
            for one in value.values():
                yield from _references(one)
        case list() | tuple():
            for one in value:
                yield from _references(one)


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

"""Stores to move between, and what is in them."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragstone.core.types import KnowledgeBase, NewVersion
from ragstone.engine.access import TenantAccess
from ragstone.ingest.sources import secret_keys
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores.factory import Stores, open_stores
from ragstone.testing.builders import make_version, put, unit_vectors
from ragstone.transfer.archive.read import import_archive
from ragstone.transfer.archive.write import export_archive
from ragstone.transfer.migrate.migrate import migrate
from ragstone.transfer.reports import ExportReport, ImportReport, MoveReport

TOPICS = ("ferry harbour crossing", "lighthouse keeper lamp", "engine room boiler", "crown fare ticket")


@dataclass(frozen=True)
class Mover:
    """Moves over the stores of an installation."""

    stores: Stores
    settings: Settings
    access: TenantAccess

    async def export_archive(self, path: Path, *, tenant: str = "default", **options: Any) -> ExportReport:
        given = {"kbs": None, "files": True, "overwrite": False, "on_progress": None, **options}
        return await export_archive(self.stores, tenant, path, secret_keys=_secrets, **given)

    async def import_archive(self, path: Path, *, tenant: str = "default", **options: Any) -> ImportReport:
        given = {"kbs": None, "overwrite": False, "on_progress": None, **options}
        await self.access.write(tenant)
        return await import_archive(self.stores, tenant, path, admission=self.access, secret_keys=_secrets, **given)

    async def migrate(self, to: Adapter, *, on_progress: Any = lambda *_: None, **options: Any) -> MoveReport:
        given = {"tenants": None, **options}
        return await migrate(self.stores, self.settings, to, secret_keys=_secrets, tell=on_progress, **given)


@dataclass(frozen=True)
class Site:
    """An installation of its own."""

    settings: Settings
    stores: Stores
    mover: Mover

    async def kb(self, name: str = "default", tenant: str = "default") -> KnowledgeBase:
        found = await self.stores.ledger.of(tenant).kb(name)
        assert found is not None
        return found

    async def uris(self, kb: str = "default", tenant: str = "default") -> list[str]:
        found = await self.stores.ledger.of(tenant).documents(await self.kb(kb, tenant), limit=10_000)
        return sorted(document.uri for document in found)


@asynccontextmanager
async def site(folder: Path, **settings: Any) -> AsyncIterator[Site]:
    """An installation in a folder, with the stores that the settings name."""
    chosen = Settings(data_dir=folder, **settings)
    stores = open_stores(chosen, _secrets)
    gate = TenantAccess(stores.tenants, chosen, lambda _: {})
    try:
        yield Site(chosen, stores, Mover(stores, chosen, gate))
    finally:
        await stores.close()


def _secrets(kind: str) -> Collection[str]:
    return secret_keys(kind)


def version(number: int, *, chunks: int = 3, word: str = "", dimension: int = 32, **given: Any) -> NewVersion:
    """A document with a topic, a number of its own in every chunk, and metadata of every kind."""
    topic = TOPICS[number % len(TOPICS)]
    texts = [f"{topic} document{number} part{part} {word}".strip() for part in range(chunks)]
    metadata = {
        "number": number,
        "share": number / 4,
        "even": number % 2 == 0,
        "tags": [topic[:5], "all"],
        "none": None,
    }
    return make_version(
        f"{number:05d}", texts, vectors=unit_vectors(chunks, dimension, seed=number), metadata=metadata, **given
    )


async def stock(one: Site, count: int, *, first: int = 0, tenant: str = "default", kb: str = "default") -> None:
    """Put documents into a kb."""
    for start in range(first, first + count, 100):
        numbers = range(start, min(start + 100, first + count))
        made = [version(number, tenant=tenant, kb=kb) for number in numbers]
        await put(one.stores.ledger, *made, tenant=tenant, kb=kb)


def contents(archive: Path) -> dict[str, bytes]:
    """The members of an archive but for the manifest, which has a time and names in it."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name != "manifest.json"}

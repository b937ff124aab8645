"""An installation without an engine: its checks, its models, and the keys and records of its stores.

An engine does not open when something that these look for is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.core.audit import AuditChain, AuditEntry
from ragstone.core.errors import NotFoundError, RagstoneError
from ragstone.core.health import Check, HealthFinding
from ragstone.core.remedies import Action, Remedy
from ragstone.settings.tree import Settings

if TYPE_CHECKING:
    from ragstone.models.installed import ModelEntry
    from ragstone.stores.factory import Renewal, Stores


async def check_installation(load_settings: Callable[[], Settings]) -> list[Check]:
    """Check Python, the settings, the models, the data folder and the packages that the settings need."""
    from ragstone.models.installed import check_model, check_reader, check_runtime
    from ragstone.stores.health import installation

    settings = Settings()
    try:
        settings = load_settings()
        read = Check("settings", "ok", f"profile {settings.profile}")
    except RagstoneError as error:
        read = Check("settings", "fail", str(error), error.advice)
    return [
        installation.check_python(),
        installation.check_sqlite(),
        read,
        check_runtime(settings),
        await check_model(settings),
        await check_reader(settings),
        *installation.check_storage(settings),
        *installation.check_packages(settings),
    ]


async def examine_stores(settings: Settings, *, repair: bool = False, forget: str = "") -> list[HealthFinding]:
    """Examine the stores that the settings name; `forget` is a vector database that was emptied by hand."""
    from ragstone.engine.components import secret_keys
    from ragstone.stores.health.check import examine_configured

    return await examine_configured(settings, secret_keys, repair=repair, forget=forget)


def create_key() -> str:
    """Return a new key for `security.key`, which is not stored."""
    from ragstone.stores.vault import new_key

    return new_key()


async def rotate_keys(settings: Settings) -> dict[str, Renewal]:
    """Encrypt the files and secrets of all tenants with the current key; return what was done for each."""
    from ragstone.stores.factory import rotate_keys

    async with _open_stores(settings) as stores:
        return await rotate_keys(stores)


async def read_audit(
    settings: Settings, *, tenant: str | None, action: str | None, since: datetime | None, limit: int
) -> list[AuditEntry]:
    """Return the audit entries of all tenants, or of all that had this name, newest first."""
    _require_data(settings)
    async with _open_stores(settings) as stores:
        return await stores.audit.entries(tenant_id=None, tenant=tenant, action=action, since=since, limit=limit)


async def verify_audit(settings: Settings, *, noted: str = "") -> AuditChain:
    """Follow the hashes of the audit record; `noted` is the hash of an entry that must be in it."""
    _require_data(settings)
    async with _open_stores(settings) as stores:
        return await stores.audit.verify(noted)


def _require_data(settings: Settings) -> None:
    if settings.store.ledger.kind == "sqlite" and not settings.data_dir.exists():
        raise NotFoundError(f"there is no data in {settings.data_dir} yet", remedy=Remedy(Action.CREATE_DATA))


def list_models(settings: Settings) -> list[ModelEntry]:
    """Return the models of the catalogue and those of the settings, with how to get those that are missing."""
    from ragstone.models import installed

    return list(installed.list_models(settings))


async def pull_model(name: str, *, revision: str | None = None) -> Path:
    """Download a model from the hub and return its folder."""
    from ragstone.models.weights import pull

    return await asyncio.to_thread(pull, name, revision=revision)


@asynccontextmanager
async def _open_stores(settings: Settings) -> AsyncIterator[Stores]:
    from ragstone.engine.components import secret_keys
    from ragstone.stores.factory import open_stores

    stores = await asyncio.to_thread(open_stores, settings, secret_keys)
    try:
        yield stores
    finally:
        await stores.close()

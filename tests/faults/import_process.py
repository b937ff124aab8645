"""Imports an archive and says after every part how many documents are in: made to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ragstone.engine.access import TenantAccess
from ragstone.settings.tree import Settings
from ragstone.stores.factory import open_stores
from ragstone.transfer.archive.read import import_archive


async def run(archive: Path, folder: Path, vectors: str) -> None:
    settings = Settings.model_validate({"data_dir": folder, "store": {"vectors": vectors}})
    stores = open_stores(settings)
    await import_archive(
        stores,
        "default",
        archive,
        kbs=None,
        overwrite=False,
        admission=TenantAccess(stores.tenants, settings, lambda _: {}),
        secret_keys=lambda _: (),
        on_progress=lambda what, done, _: print(what, done, flush=True),
    )
    await stores.close()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))

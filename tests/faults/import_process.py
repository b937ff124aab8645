"""Imports an archive and dies by SIGKILL some time after one of its parts, or at its end when that comes sooner.

`import_process.py ARCHIVE FOLDER VECTORS PART SECONDS`, where a part is the beginning of what the progress says.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

from ragstone.engine.access import TenantAccess
from ragstone.settings.tree import Settings
from ragstone.stores.factory import open_stores
from ragstone.transfer.archive.read import import_archive


async def run(archive: Path, folder: Path, vectors: str, part: str, seconds: float) -> None:
    dying = threading.Thread(target=die, args=(seconds,))

    def watch(what: str, done: int, _: object) -> None:
        if f"{what} {done}".startswith(part) and not dying.is_alive():
            dying.start()

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
        on_progress=watch,
    )
    dying.join()


def die(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:5], float(sys.argv[5])))

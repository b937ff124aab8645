"""Unpack the Milvus server into .venv once, so that the tests which start it need not do so each time."""

from __future__ import annotations

import importlib.metadata
import lzma
import shutil
import sys
from pathlib import Path

TARGET = Path(sys.prefix) / "milvus"


def unpack(packed: Path, target: Path) -> None:
    """Write every binary of `packed` to `target`."""
    target.mkdir(parents=True)
    for archive in sorted(packed.glob("*.lzma")):
        binary = target / archive.stem
        with lzma.open(archive) as source, binary.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        binary.chmod(0o755)


def main() -> None:
    """Unpack the installed version, unless that is what is there."""
    try:
        package = importlib.metadata.distribution("milvus")
    except importlib.metadata.PackageNotFoundError:
        print("No Milvus server is made for this platform: the tests that need one are skipped", file=sys.stderr)
        return
    # Written last, so half an unpacking counts as none.
    version = TARGET / "version"
    if version.exists() and version.read_text() == package.version:
        return
    shutil.rmtree(TARGET, ignore_errors=True)
    unpack(Path(str(package.locate_file("milvus"))) / "data" / "bin", TARGET / "bin")
    version.write_text(package.version)


if __name__ == "__main__":
    main()

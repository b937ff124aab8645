"""Folders of a tenant, removed for good."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from ragstone.stores.ledger.sqlite.file import translated


def count_files(folder: Path) -> int:
    """Count the files under a folder; 0 when it does not exist."""
    return sum(len(files) for _, _, files in os.walk(folder))


def remove_folder(folder: Path) -> None:
    """Remove a folder with all in it: it is gone also after a loss of power."""

    def failed(_function: object, _path: str, problem: tuple[Any, BaseException, Any]) -> None:
        if not isinstance(problem[1], FileNotFoundError):  # somebody else may be at it too
            raise problem[1]

    with translated(folder):
        shutil.rmtree(folder, onerror=failed)
        if folder.parent.exists():
            handle = os.open(folder.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

"""Moves without async."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.blocking.run import Run
from ragstone.settings.tree import Adapter

if TYPE_CHECKING:
    from ragstone.transfer.mover import Mover
    from ragstone.transfer.reports import ExportReport, ImportReport, MoveReport


class BlockingMoves:
    """`Mover` without async, for the loop of a `Ragstone`."""

    def __init__(self, mover: Mover, run: Run) -> None:
        self._mover = mover
        self._run = run

    def export_archive(self, path: str | Path, **options: Any) -> ExportReport:
        return self._run(self._mover.export_archive(path, **options))

    def import_archive(self, path: str | Path, **options: Any) -> ImportReport:
        return self._run(self._mover.import_archive(path, **options))

    def migrate(self, to: Adapter, **options: Any) -> MoveReport:
        return self._run(self._mover.migrate(to, **options))

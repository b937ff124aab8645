"""Warnings about documents that a new source would bring a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragstone.serve.cli.render.output import counted

if TYPE_CHECKING:
    from ragstone.core.jobs import SourceRecord
    from ragstone.ingest.sources.files.overlaps import Overlaps
    from ragstone.serve.cli.options import Common

NAMED = 5
"""How many documents are named one by one."""


def describe_overlaps(overlaps: Overlaps, added: SourceRecord, options: Common) -> list[str]:
    """Return a warning for each other way by which documents under the folder of a source come."""
    if overlaps.is_missing:
        return [f"there is no {overlaps.folder} yet: a sync fails until there is"]
    remove = options.command("sources", "remove", added.name)
    warnings = [
        f"source '{other.name}' reads {other.config['path']} too, so what both read is there twice; "
        f"to undo this: {remove}"
        for other in overlaps.sources
    ]
    if ids := overlaps.document_ids:
        named = " ".join(ids) if len(ids) <= NAMED else "ID… (ids: ragstone documents)"
        warnings.append(
            f"'ragstone ingest' has brought {counted(len(ids), 'document')} under {overlaps.folder} already, and "
            f"this source will bring them again; to keep those of the source: ragstone documents delete "
            f"{named}{options.as_typed()}; to undo this: {remove}"
        )
    return warnings

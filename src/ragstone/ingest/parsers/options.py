"""The options of a parser: what the settings allow, and which part of a file to read."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.errors import ParserLimit

SCANS_PER_WINDOW = 4
"""A window ends early after so many pages read by OCR, each of which takes seconds."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Sent to the child with each file; every parser gets it and reads what concerns it."""

    pages: int = 5000
    """How many pages a document may have; the pool puts its own limit here."""
    ocr: bool = True
    tables: bool = True
    first_page: int = 1
    window: int = 0
    """Read this many pages from `first_page` on and say where to go on; 0 means all. A part may hold no text."""
    unpacked_mb: int = 1000
    """How much the parts of a compressed file may hold together."""

    def check_pages(self, total: int, name: str, unit: str = "pages") -> None:
        """Refuse a document that has more pages than the settings allow."""
        if total > self.pages:
            raise ParserLimit(
                f"{name} has {total:,} {unit}; the limit is {self.pages:,}",
                hint="split it, or raise limits.pages in the settings",
            )

    def asked_pages(self, total: int) -> range:
        """Return the numbers of the pages to read of a document that has so many."""
        last = min(total, self.first_page + self.window - 1) if self.window else total
        return range(self.first_page, last + 1)


DEFAULT = ParseOptions()

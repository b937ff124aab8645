"""File names that strangers chose, made safe: a base name, never a path."""

from __future__ import annotations

import re
from collections.abc import Container

from ragstone.ingest.parsers.cleaning import one_line

MAX_NAME = 150
_OFFICE = "application/vnd.openxmlformats-officedocument"
_SUFFIXES = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "application/epub+zip": ".epub",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/tiff": ".tif",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


def safe_name(given: str, media_type: str, number: int) -> str:
    """The last part of a name without what a file system or a shell would take for more than a letter."""
    name = _UNSAFE.sub("_", one_line(given.replace("\\", "/").rpartition("/")[2])).strip(". ")
    if not name:
        return f"attachment-{number}{_SUFFIXES.get(media_type, '')}"
    stem, dot, suffix = name.rpartition(".")
    if len(name) <= MAX_NAME:
        return name
    return f"{stem[: MAX_NAME - len(suffix) - 1]}.{suffix}" if dot and len(suffix) < 20 else name[:MAX_NAME]


def unique_name(name: str, taken: Container[str]) -> str:
    """The name, with a number when a file of that name is there already."""
    stem, dot, suffix = name.rpartition(".")
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{stem}-{number}{dot}{suffix}" if stem else f"{name}-{number}"
    return unique

"""Check uploads before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ragstone.core.documents import FILENAME, within
from ragstone.core.errors import EmptyDocument, InputError, ParserLimit, UnsupportedFormat
from ragstone.ingest.parsers.dispatch import KINDS
from ragstone.ingest.parsers.draft import printable

SOURCE = "upload"
_INSIDE = re.compile(r"!/|#\d+:")
CONTAINERS = frozenset({".zip", ".mbox"})


def check_external_id(external_id: str) -> str:
    """Return the external id of an upload. Raises for one that belongs to a file inside another upload."""
    if _INSIDE.search(external_id):
        raise InputError(
            f"the external id {printable(external_id)!r} is of a file in an archive or of an attachment",
            hint="leave out '!/', and '#' before a number and a colon",
        )
    return external_id


def check_upload(content: bytes, filename: str, file_mb: int, types: Sequence[str] = ()) -> str:
    """Return the name of a file without folders. Raises for a file that no parser would take."""

    name = PurePosixPath(filename.replace("\\", "/")).name.replace("\0", "").strip()
    if name in ("", ".", ".."):
        raise InputError(f"{printable(filename)!r} is no file name", hint="give the file's own name")
    name = printable(within("the file name", name.encode("utf-8", "replace").decode(), FILENAME), FILENAME)
    suffix = PurePosixPath(name).suffix.lower()
    if types and suffix.lstrip(".") not in types:
        raise UnsupportedFormat(
            f"{name} is of a kind that is not allowed", hint=f"limits.upload_types allows: {', '.join(types)}"
        )
    if suffix and suffix not in KINDS and suffix not in CONTAINERS:
        allowed = ", ".join(sorted({*KINDS, *CONTAINERS}))
        raise UnsupportedFormat(f"{name} is of a kind that is not allowed", hint=f"allowed are: {allowed}")
    if not content:
        raise EmptyDocument(f"{name} is empty", hint="put text in it")
    if len(content) >= file_mb * 1024 * 1024:
        raise ParserLimit(
            f"{name} has {len(content) / 1024 / 1024:.0f} MB; limits.file_mb allows less than {file_mb}",
            hint="split the file, or raise the limit",
        )
    return name

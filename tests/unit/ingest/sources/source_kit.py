"""What the tests of local sources share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from ragstone.core.errors import SourceError
from ragstone.core.protocols import Source
from ragstone.core.types import SKIPPED, Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext
from ragstone.settings.tree import LimitSettings


def context(limits: LimitSettings | None = None, databases: Mapping[str, SecretStr] | None = None) -> SourceContext:
    """What local sources are given: they fetch nothing."""
    return SourceContext(cast("Any", None), limits or LimitSettings(), databases or {})


async def pages(source: Source, cursor: Json = None) -> list[Page]:
    return [page async for page in source.fetch(cursor)]


async def pages_before_error(source: Source) -> tuple[list[Page], SourceError | None]:
    """What came before a source gave up, and the error it gave up with."""
    seen: list[Page] = []
    try:
        async for page in source.fetch(None):
            seen.append(page)  # noqa: PERF401  (a comprehension would lose them with the error)
    except SourceError as error:
        return seen, error
    return seen, None


def entries(pages: Sequence[Page]) -> list[Item | Failure]:
    return [entry for page in pages for entry in page.items]


def items(pages: Sequence[Page]) -> dict[str, Any]:
    """Content by external id; fails when anything else came but skipped pictures."""
    found = [entry for entry in entries(pages) if not _is_skipped(entry)]
    assert [entry for entry in found if isinstance(entry, Failure)] == []
    assert len({entry.external_id for entry in found if isinstance(entry, Item)}) == len(found)
    return {entry.external_id: entry.content for entry in found if isinstance(entry, Item)}


def _is_skipped(entry: Item | Failure) -> bool:
    return isinstance(entry, Failure) and entry.code == SKIPPED


def failures(pages: Sequence[Page]) -> list[Failure]:
    return [entry for entry in entries(pages) if isinstance(entry, Failure)]


def write(path: Path, content: str | bytes = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path

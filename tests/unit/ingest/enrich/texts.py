"""Documents written for these tests."""

from __future__ import annotations

from typing import Any

from ragstone.core.types import Parsed
from ragstone.ingest.enrich.describe import Excerpt, read_excerpt
from ragstone.ingest.parsers.draft import Draft


def document(*parts: str, title: str = "", media_type: str = "text/plain", **metadata: Any) -> Parsed:
    """A document of paragraphs; a part that begins with `# ` is a heading, with four blanks code, with `- ` a list."""
    draft = Draft("test.txt")
    for part in parts:
        if part.startswith("# "):
            draft.add("heading", part[2:], level=2, label=part[2:])
        elif part.startswith("    "):
            draft.add("code", part)
        elif part.startswith("| "):
            draft.add("table", part)
        else:
            draft.add("list" if part.startswith("- ") else "paragraph", part)
    return draft.finish(media_type, title=title, metadata=metadata)


def reading(*parts: str, title: str = "", language: str = "en") -> Excerpt:
    return read_excerpt(document(*parts, title=title, language=language))


def block_texts(parsed: Parsed) -> list[str]:
    return [parsed.text[block.start : block.end] for block in parsed.blocks]

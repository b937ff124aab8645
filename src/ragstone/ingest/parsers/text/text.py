"""Plain text: paragraphs are what blank lines keep apart."""

from __future__ import annotations

import re

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import Draft, clean
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.decoding import decode

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def parse_text(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a text file in whatever encoding it is in."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    for paragraph in _BLANK_LINES.split(cleaned.text):
        draft.add("paragraph", paragraph)
    return draft.finish("text/plain", metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)

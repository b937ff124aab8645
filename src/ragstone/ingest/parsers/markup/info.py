"""GNU Info: the nodes of a manual as plain text, without the menus, indexes and tables by which a reader finds them."""

from __future__ import annotations

import re

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.text.paragraphs import add_plain_text
from ragstone.ingest.parsers.text.text import decode

_SEPARATOR = "\x1f"
_CODING = re.compile(rb"^coding: ([\w-]{1,40})\s*$", re.MULTILINE)
_TAIL = 1000
_INDEX = re.compile(rb"\x00\x08\[index\x00\x08\][^\x1f]*")
_IMAGE = re.compile(rb"\x00\x08\[[^\x00]{0,2000}\x00\x08\]")
_HEAD = re.compile(r"[\f\n]*File: [^\n]*\n")
_MENU = re.compile(r"^\* Menu:[ \t]*$", re.MULTILINE)
_MENU_LINE = re.compile(r"(?:\*|[ \t]{12}) *\S|-- |[ \t]*$")
_REFERENCE = re.compile(r"\*([Nn])ote\s+([^:\n]{1,200}(?:\n[^:\n]{1,200})?)(?:::|:\s+[^.,\n]{1,200}(?=[.,]))")


def parse_info(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a manual as `makeinfo` writes it."""
    declared = _CODING.search(content, max(0, len(content) - _TAIL))
    readable = _IMAGE.sub(b"", _INDEX.sub(b"", content))
    decoded = decode(readable, name, declared=declared[1].decode() if declared else "")
    nodes = decoded.text.replace("\r\n", "\n").split(_SEPARATOR)[1:]
    text = "\n\n".join(_drop_menu(node[head.end() :]) for node in nodes if (head := _HEAD.match(node)))
    cleaned = clean(_REFERENCE.sub(lambda found: f"{'See' if found[1] == 'N' else 'see'} {found[2]}", text))
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    add_plain_text(draft, cleaned.text)
    return draft.finish("text/x-info", metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)


def _drop_menu(node: str) -> str:
    """Return a node without its menu."""
    menu = _MENU.search(node)
    if not menu:
        return node
    lines = node[menu.end() :].lstrip("\n").split("\n")
    kept = next((number for number, line in enumerate(lines) if not _MENU_LINE.match(line)), len(lines))
    return node[: menu.start()] + "\n" + "\n".join(lines[kept:])

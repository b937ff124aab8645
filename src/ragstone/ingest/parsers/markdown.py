"""Markdown and MDX: the words of the page as they were written, and the structure over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.parsers.cleaning import clean
from ragstone.ingest.parsers.decoding import decode
from ragstone.ingest.parsers.draft import Draft
from ragstone.ingest.parsers.front_matter import read_front_matter
from ragstone.ingest.parsers.markup import without_markup
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "blockquote_open": "quote",
    "html_block": "paragraph",
}
_LONGEST_HEADING = 1000
_ANCHOR = re.compile(r"\s*\{#[^}\s]*\}\s*$")


def parse_markdown(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a Markdown page; each block's text is a slice of the source."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    header = read_front_matter(cleaned.text)
    page = without_markup(cleaned.text[header.body_start :], mdx=name.lower().endswith(".mdx"))
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    _add_blocks(draft, page)
    metadata = dict(header.metadata)
    title = metadata.pop("title", None)
    return draft.finish(
        "text/markdown",
        title=title if isinstance(title, str) else "",
        metadata=metadata,
        warnings=(*decoded.warnings, *header.warnings),
    )


def _add_blocks(draft: Draft, page: str) -> None:
    from markdown_it import MarkdownIt

    lines = page.splitlines(keepends=True)
    # Only headings are read inside: there the library takes quadratic time over marks that never end.
    reader = MarkdownIt("commonmark").enable("table").disable("inline")
    links: dict[str, Any] = {}
    tokens = reader.parse(page, links)
    covered = 0
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, last = token.map
        # What no token covers, such as link definitions, is text like any other.
        draft.add("paragraph", "".join(lines[covered:first]))
        covered = max(covered, last)
        if kind := _KINDS.get(token.type):
            heading = kind == "heading"
            draft.add(
                kind,
                "".join(lines[first:last]),
                level=int(token.tag[1]) if heading else 0,
                label=_label(reader, tokens[index + 1].content, links) if heading else "",
            )
    draft.add("paragraph", "".join(lines[covered:]))


def _label(reader: MarkdownIt, heading: str, links: dict[str, Any]) -> str:
    """The words of a heading; one that is too long to be one is left as it was written."""
    if len(heading) > _LONGEST_HEADING:
        return heading
    tokens: list[Token] = []
    reader.inline.parse(heading, reader, links, tokens)
    return _ANCHOR.sub("", _words(tokens))


def _words(tokens: Sequence[Token]) -> str:
    words = []
    for token in tokens:
        if token.type in ("text", "text_special", "code_inline"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            words.append(_words(token.children or ()))
    return "".join(words)

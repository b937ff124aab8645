"""HTML: what a reader reads. Scripts, navigation and what is hidden go; headings, lists, tables and code stay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragstone.core.filters import canonical_text
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import Draft, one_line
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.decoding import Decoded, decode
from ragstone.ingest.parsers.web.html_walk import walk

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_DEPTH = 400
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE
)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*)(?=[\s/>])[^<>]*>")
# Elements that end themselves, that their successor ends, or whose content is no markup.
_SHALLOW = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "p", "li", "td", "th", "tr", "dd", "dt", "option", "optgroup", "thead", "tbody", "tfoot", "colgroup",
    "html", "head", "body", "script", "style", "title", "textarea", "iframe", "noframes", "noembed", "xmp",
})  # fmt: skip
_META = {
    "author": ("author", "article:author", "dc.creator", "citation_author"),
    "date": ("article:published_time", "date", "dc.date", "citation_publication_date", "last-modified"),
    "description": ("description", "og:description", "dc.description"),
}
_MAX_META = 1000


def parse_html(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a web page."""
    decoded = decode_markup(content, name)
    return parse_markup(decoded.text, name, warnings=decoded.warnings)


def decode_markup(content: bytes, name: str) -> Decoded:
    """Return the characters of a page, in the encoding it declares unless its bytes say otherwise."""
    declared = _DECLARED.search(content[:4096])
    return decode(content, name, declared=declared[1].decode("ascii") if declared else "")


def parse_markup(markup: str, name: str, *, media_type: str = "text/html", warnings: tuple[str, ...] = ()) -> Parsed:
    """Read HTML that is already characters."""
    draft = Draft(name)
    tree = add_markup(draft, markup)
    return draft.finish(
        media_type, title=_title(tree), metadata=_metadata(tree), warnings=warnings, unseen_hint=_unseen(tree)
    )


def _unseen(tree: LexborHTMLParser) -> str:
    """Return a hint on where words may be that are not in the markup."""
    if tree.css_first("script") is not None:
        return "the page may be filled by a script; save it from a browser after it has loaded"
    return "its words may be in its pictures" if tree.css_first("img") is not None else ""


def add_markup(draft: Draft, markup: str) -> LexborHTMLParser:
    """Add the blocks of a page to a document, and return the tree they were read from."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_flatten(markup))
    walk(tree, draft)
    return tree


def _flatten(markup: str) -> str:
    """Drop tags nested deeper than any reader meant: the tree builder takes quadratic time over them."""
    if markup.count("<") <= MAX_DEPTH:
        return markup
    depth = 0

    def keep_or_drop(found: re.Match[str]) -> str:
        nonlocal depth
        if found[2].lower() in _SHALLOW or found[0].endswith("/>"):
            return found[0]
        too_deep = depth >= MAX_DEPTH
        if found[1]:
            too_deep = depth > MAX_DEPTH
            depth = max(0, depth - 1)
        else:
            depth += 1
        return " " if too_deep else found[0]

    return _TAG.sub(keep_or_drop, markup)


def _title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("head > title")
    return one_line(node.text()) if node is not None else ""


def _metadata(tree: LexborHTMLParser) -> dict[str, str]:
    given: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        key = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").lower()
        given.setdefault(key, one_line(attributes.get("content") or "")[:_MAX_META])
    metadata = {}
    for field, keys in _META.items():
        if value := next((given[key] for key in keys if given.get(key)), ""):
            metadata[field] = canonical_text(value)
    root = tree.css_first("html")
    if root is not None and (language := one_line(root.attributes.get("lang") or "")):
        metadata["language"] = language[:20].lower()
    canonical = tree.css_first("link[rel=canonical][href]")
    if canonical is not None and (url := one_line(canonical.attributes.get("href") or "")):
        metadata["url"] = url[:_MAX_META]
    return metadata

"""HTML: what a reader reads. Scripts, navigation and what is hidden go; headings, lists, tables and code stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical_text
from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, join_ideographs, one_line
from ragstone.ingest.parsers.tables import markdown_table, one_header
from ragstone.ingest.parsers.text.text import Decoded, decode

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

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
MOST_SPANNED = 50
"""Columns and rows that one cell may take: a small file must not become a large table."""
MOST_REPEATED = 200
MOST_HEADER_ROWS = 4
_UNREAD = frozenset({
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "audio", "video",
    "select", "button", "input", "textarea", "dialog", "head", "nav", "menu",
})  # fmt: skip
_FRAME = frozenset({"header", "footer", "aside"})
_CONTENT = frozenset({"main", "article"})
_FRAME_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar"})
_FRAME_WORDS = frozenset({
    "nav", "navbar", "navigation", "menu", "sidebar", "breadcrumb", "breadcrumbs", "footer", "cookie", "cookies",
    "cookie-banner", "cookie-consent", "advert", "advertisement", "ad", "ads", "promo", "social", "share",
    "sharing", "skip-link", "newsletter", "navheader", "navfooter",
})  # fmt: skip
_FRAMED_BY_ID = frozenset({"div", "ul", "ol", "table", "td", "form"})
_SECTION = re.compile("(?:sub)*(?:section|chapter|appendix|unnumbered)")
"""Begins the classes by which docutils and Texinfo mark the sections of a text."""
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol",
    "p", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
_BREAKS = _BLOCKS | {"br", "pre"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "dl"})
_LINKS_TO_SELF = frozenset({"headerlink", "id_link", "anchor-link", "hash-link", "permalink", "anchorjs-link"})
"""Classes of the small marks beside headings and terms that link to their own place."""
_UNSEEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_XHTML = re.compile(r"\s*(?:<\?xml\b|<!doctype\s[^>]{0,200}\bxhtml\b)", re.IGNORECASE)
_EMPTY = re.compile(r"<(iframe|noembed|noframes|script|style|textarea|title|xmp)\b([^<>]*)/>", re.IGNORECASE)
"""Elements that XHTML may write without an end, and that would take the rest of the page as theirs in HTML."""
_WHITE = re.compile(r"[ \t\r\n\f]+")
_AROUND_BREAK = re.compile(r" *\n *")


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

    if _XHTML.match(markup):
        markup = _EMPTY.sub(r"<\1\2></\1>", markup)
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


def walk(tree: LexborHTMLParser, draft: Draft) -> None:
    """Add the readable blocks of a page: of its `main` when that holds text, or else of all of its body."""
    for root in tree.css("main, [role=main]"):
        if root.text().strip() and not _is_hidden(root):
            _BlockWalk(draft, framed=False).over(root)
            return
    if tree.body is not None:
        _BlockWalk(draft, framed=True).over(tree.body)


class _BlockWalk:
    """The state of the pass: the text gathered so far and what encloses it."""

    def __init__(self, draft: Draft, *, framed: bool) -> None:
        self.draft = draft
        self.framed = framed
        self.text: list[str] = []
        self.items: list[str] = []
        self.lists: list[str] = []
        self.numbers: list[int] = []
        self.marker = ""
        self.in_term = self.after_term = self.termless = False
        self.depth = 0
        """The lists around the entry that is being read, which are not shown by its indent."""
        self.heading = self.pre = self.quotes = self.content = 0

    def over(self, root: LexborNode) -> None:
        for node, leaving in _events(root, self._skips):
            if node.is_text_node:
                text = node.text(deep=False)
                self.text.append(text if self.pre else _WHITE.sub(" ", join_ideographs(text)))
            elif leaving:
                self._leave(node.tag or "")
            else:
                self._enter(node)
        self._end_block()
        self._end_list()

    def _skips(self, node: LexborNode) -> bool:
        """Return whether to pass over a subtree, because it is not read or because all of it was just taken."""
        tag = node.tag or ""
        if _is_unread(node):
            return True
        if tag == "dt" and _is_signature(node):
            self._end_entry()
        if tag == "table" and node.css_first("table table, h1, h2, h3, h4, pre") is None:
            self._add("table", _table(node))
            return True
        if not self.framed or self.content:
            return False
        if tag == "header" and (title := node.css_first("h1")) is not None:
            self._add("heading", _visible(title), level=1)
            return True
        return tag in _FRAME or _is_frame(node)

    def _enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "br":
            self.text.append("\n")
            return
        if tag in _BLOCKS or tag in _HEADINGS or tag == "pre":
            self._end_block()
        if tag in _HEADINGS:
            self._end_list()
            self.heading = _HEADINGS[tag]
        elif tag in _LISTS:
            self.lists.append(tag)
            self.numbers.append(_first_number(node) - 1)
        elif tag == "dt":
            if self.lists in ([], ["dl"]):
                self._end_entry()
            self.in_term = True
        elif tag == "li" and self.lists:
            self.numbers[-1] += 1
            self.marker = f"{self.numbers[-1]}. " if self.lists[-1] == "ol" else "- "
        self._count(tag, 1)

    def _leave(self, tag: str) -> None:
        if tag in _BLOCKS or tag in _HEADINGS or tag == "pre":
            self._end_block()
        if tag in _HEADINGS:
            self.heading = 0
        elif tag == "dt":
            self.in_term = False
        elif tag in _LISTS:
            self.lists.pop()
            self.numbers.pop()
            if not self.lists:
                self._end_list()
        self._count(tag, -1)

    def _count(self, tag: str, step: int) -> None:
        if tag == "pre":
            self.pre += step
        elif tag == "blockquote":
            self.quotes += step
        elif tag in _CONTENT:
            self.content += step

    def _add(self, kind: BlockKind, text: str, *, level: int = 0) -> None:
        self._end_block()
        self._end_list()
        self.draft.add(kind, text, level=level, label=text if level else "")

    def _end_block(self) -> None:
        """Put the gathered text where it belongs: a list item, or a block of its own."""
        joined = "".join(self.text)
        self.text.clear()
        if not joined.strip():
            return
        text = joined.strip("\n") if self.pre else _inline(joined)
        if self.heading:
            text = text.replace("\n", " ")
            self.draft.add("heading", text, level=self.heading, label=text)
        elif self.lists:
            self._add_item(text)
        else:
            self.draft.add("code" if self.pre else "quote" if self.quotes else "paragraph", text)

    def _add_item(self, text: str) -> None:
        if self.lists[-1] == "dl":
            self._add_definition(text)
            return
        indent = "  " * max(0, len(self.lists) - 1 - self.depth)
        first, *rest = text.split("\n")
        self.items.append(indent + (self.marker or "  ") + first)
        self.items.extend(f"{indent}  {line}" for line in rest)
        self.marker = ""
        self.after_term = False

    def _add_definition(self, text: str) -> None:
        """Add a term, or a paragraph of its description, indented below it."""
        indent = "  " * max(0, len(self.lists) - 1 - self.depth)
        if self.in_term:
            term = ", ".join(line.strip(", ") for line in text.split("\n"))
            if self.after_term:
                self.items[-1] += f", {term}"
            else:
                self.items += [*self._gap(), indent + term]
            self.after_term = True
            return
        self.termless = self.termless or not self.items
        self.items += [*([] if self.after_term else self._gap()), *(f"{indent}  {line}" for line in text.split("\n"))]
        self.after_term = False

    def _gap(self) -> list[str]:
        return [""] if self.items else []

    def _end_entry(self) -> None:
        """End the block of a term when another one follows its description."""
        if self.items and not self.after_term:
            self._end_list()
            self.depth = max(0, len(self.lists) - 1)

    def _end_list(self) -> None:
        if self.items:
            self.draft.add("paragraph" if self.termless else "list", "\n".join(self.items))
            self.items = []
        self.after_term = self.termless = False
        self.depth = 0


def _events(root: LexborNode, skips: Callable[[LexborNode], bool]) -> Iterator[tuple[LexborNode, bool]]:
    """Yield text, and elements as they open and (with True) close, in document order."""
    open_nodes = [root]
    yield root, False
    node = root.first_child
    while open_nodes:
        if node is None:
            node = open_nodes.pop()
            yield node, True
            node = node.next if open_nodes else None
        elif node.is_text_node:
            yield node, False
            node = node.next
        elif not node.is_element_node or skips(node):
            node = node.next
        else:
            yield node, False
            open_nodes.append(node)
            node = node.first_child


def _table(table: LexborNode) -> str:
    """Return a Markdown table under its caption."""
    lines = [_visible(caption) for caption in table.css("caption")]
    rows: list[list[str]] = []
    deep = _header_rows(table)
    merged: dict[int, tuple[str, int]] = {}
    for row in table.css("tr"):
        cells: list[str] = []
        cell = row.first_child
        while cell is not None:
            if cell.tag in ("td", "th") and not _is_hidden(cell):
                _go_on(cells, merged)
                text, down = _visible(cell), _span(cell, "rowspan")
                for number in range(_span(cell, "colspan") if len(cells) < MOST_SPANNED else 1):
                    once = number > 0 and len(rows) >= deep
                    if down > 1:
                        merged[len(cells)] = "" if once or len(text) > MOST_REPEATED else text, down
                    cells.append("" if once or (number and len(text) > MOST_REPEATED) else text)
            cell = cell.next
        _go_on(cells, merged)
        rows.append(cells)
        merged = {column: (text, down - 1) for column, (text, down) in merged.items() if down > 1}
    named = True if deep or _names_columns(table) else None
    return "\n".join((*lines, markdown_table([*one_header(rows[:deep]), *rows[deep:]], has_header=named)))


def _names_columns(table: LexborNode) -> bool:
    """Return whether the first row is marked as a header."""
    first = table.css_first("tr")
    return table.css_first("thead tr") is not None or (first is not None and first.css_first("td") is None)


def _header_rows(table: LexborNode) -> int:
    """Return how many rows name the columns together, below cells that span several; 0 for no such header."""
    first = table.css_first("tr")
    cells = first.css("th, td") if first is not None else []
    if not any(_span(cell, "colspan") > 1 for cell in cells):
        return 0
    deep = max(len(table.css("thead tr")), *(_span(cell, "rowspan") for cell in cells))
    return deep if 1 < deep <= MOST_HEADER_ROWS else 0


def _go_on(cells: list[str], merged: Mapping[int, tuple[str, int]]) -> None:
    """Repeat cells that reach down from a row above."""
    while len(cells) in merged:
        cells.append(merged[len(cells)][0])


def _span(cell: LexborNode, name: str) -> int:
    """Return how many columns or rows a cell reaches over, within bounds: a file may say anything."""
    said = str(cell.attributes.get(name) or "")
    return min(max(int(said), 1), MOST_SPANNED) if said.isdecimal() and len(said) < 6 else 1


def _first_number(numbered: LexborNode) -> int:
    said = str(numbered.attributes.get("start") or "")
    return int(said) if said.isdecimal() and len(said) < 6 else 1


def _visible(root: LexborNode) -> str:
    """Return the words of an element on one line."""
    words = []
    for node, _ in _events(root, _is_unread):
        words.append(node.text(deep=False) if node.is_text_node else " " if node.tag in _BREAKS else "")
    return " ".join(join_ideographs("".join(words)).split())


def _is_unread(node: LexborNode) -> bool:
    return (node.tag or "") in _UNREAD or _is_hidden(node) or (node.tag == "a" and _links_to_self(node))


def _inline(text: str) -> str:
    return _AROUND_BREAK.sub("\n", re.sub(" +", " ", text)).strip()


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or bool(_UNSEEN_STYLE.search(attributes.get("style") or ""))
    )


def _links_to_self(node: LexborNode) -> bool:
    return not _LINKS_TO_SELF.isdisjoint((node.attributes.get("class") or "").split())


def _is_signature(node: LexborNode) -> bool:
    """Return whether a term is that of a function, a class or an option, as Sphinx marks it."""
    return "sig" in (node.attributes.get("class") or "").split()


def _is_frame(node: LexborNode) -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    classes = (attributes.get("class") or "").lower().split()
    # The id of a heading, a term or a section is its anchor, made of its words: "Cookies" is a topic like any other.
    named = (attributes.get("id") or "").lower().split() if node.tag in _FRAMED_BY_ID else []
    words = classes if any(map(_SECTION.match, classes)) else classes + named
    return (attributes.get("role") or "") in _FRAME_ROLES or not _FRAME_WORDS.isdisjoint(words)

"""reStructuredText: sections, lists, tables, terms and notes as a reader of the built page sees them.

Only the tree is taken from docutils: nothing is included, read from disk or run through its writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ragstone.core.types import BlockKind, Parsed
from ragstone.ingest.parsers.definitions import add_definition, format_definition
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean, join_ideographs
from ragstone.ingest.parsers.markup.rst_reader import NotReadable, read_tree
from ragstone.ingest.parsers.tables import markdown_table, one_header
from ragstone.ingest.parsers.text.paragraphs import split_paragraphs
from ragstone.ingest.parsers.text.text import decode

if TYPE_CHECKING:
    from docutils import nodes

MOST_SPANNED = 50
_ERROR = 3
_UNREAD = frozenset({
    "comment", "target", "substitution_definition", "raw", "pending", "meta", "decoration", "footnote_reference",
    "system_message",
})  # fmt: skip
_CODE = frozenset({"literal_block", "doctest_block", "math_block"})
_NOTES = {
    "attention": "Attention", "caution": "Caution", "danger": "Danger", "error": "Error", "hint": "Hint",
    "important": "Important", "note": "Note", "tip": "Tip", "warning": "Warning", "admonition": "",
}  # fmt: skip
_SETTINGS_OF_THE_PAGE = frozenset({"orphan", "tocdepth", "nocomments", "nosearch", "no-search"})
_WHITE = re.compile(r"\s+")


def parse_rst(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a reStructuredText page; one that docutils cannot take in time is read as plain text."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    title = ""
    try:
        tree = read_tree(cleaned.text)
        walk = _Walk(draft, tree)
        walk.add_all(tree.children, 0)
        title = walk.title()
    except (NotReadable, RecursionError) as problem:
        why = str(problem) if isinstance(problem, NotReadable) else "it is nested too deep"
        draft = Draft(name)
        draft.hidden = cleaned.hidden
        draft.warnings.append(f"read as plain text, not as reStructuredText: {why}")
        for paragraph in split_paragraphs(cleaned.text):
            draft.add("paragraph", paragraph)
    return draft.finish("text/x-rst", title=title, metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)


class _Walk:
    """Goes over the tree of a page and adds its blocks."""

    def __init__(self, draft: Draft, tree: nodes.document) -> None:
        self._draft = draft
        self._tree = tree
        self._substitutions = tree.substitution_defs

    def title(self) -> str:
        """Return the title of a page that has one section with all others in it."""
        sections = [node for node in self._tree.children if _kind(node) == "section"]
        return self.words(sections[0].children[0]) if len(sections) == 1 else ""

    def add_all(self, children: Sequence[nodes.Node], level: int, kind: BlockKind = "paragraph") -> None:
        for node in children:
            self._add(node, level, kind)

    def _add(self, node: nodes.Node, level: int, kind: BlockKind) -> None:
        name = _kind(node)
        if name == "section":
            self.add_all(node.children, level + 1)
        elif name == "title":
            words = self.words(node)
            self._draft.add("heading", words, level=min(max(level, 1), 6), label=words)
        elif name in _CODE:
            self._draft.add("code", node.astext())
        elif name in ("definition_list", "option_list"):
            self._add_definitions(node)
        elif name == "table":
            self._draft.add("table", self._table(node))
        elif name in ("bullet_list", "enumerated_list") or name == "field_list":
            self._draft.add("list", "\n".join(self.pieces(node)))
        elif name in _NOTES:
            self._add_note(node, level)
        elif name == "block_quote":
            self.add_all(node.children, level, "quote")
        elif name in ("container", "compound", "topic", "sidebar", "figure", "legend", "docinfo"):
            self.add_all(node.children, level, kind)
        else:
            for piece in self.pieces(node):
                self._draft.add("code" if name == "system_message" else kind, piece)

    def _add_note(self, node: nodes.Node, level: int) -> None:
        opening, rest = self._note_opening(node)
        self._draft.add("paragraph", opening)
        self.add_all(rest, level)

    def _note_opening(self, node: nodes.Node) -> tuple[str, list[nodes.Node]]:
        """Return the kind of a note with its first paragraph, and what follows."""
        rest = list(node.children)
        said = _NOTES[_kind(node)] or (self.words(rest.pop(0)) if rest and _kind(rest[0]) == "title" else "")
        first = self.words(rest.pop(0)) if rest and _kind(rest[0]) == "paragraph" else ""
        return f"{said}: {first}".strip(": ") if said else first, rest

    def _add_definitions(self, node: nodes.Node, owner: str = "") -> None:
        for item in node.children:
            terms, body = self._definition(item)
            terms = [_qualify(term, owner) for term in terms]
            inner = [child for child in body if _is_object(child)]
            pieces = self._pieces_of(child for child in body if not _is_object(child))
            if _is_object(node) and not body and _leads_to_section(node):
                # A mark for the index, whose words are those of the heading that follows.
                continue
            add_definition(self._draft, terms, pieces)
            for child in inner:
                self._add_definitions(child, _owner_name(terms, item))

    def _definition(self, item: nodes.Node) -> tuple[list[str], list[nodes.Node]]:
        terms: list[str] = []
        body: list[nodes.Node] = []
        for child in item.children:
            name = _kind(child)
            if name in ("term", "option_group"):
                terms.append(self._options(child) if name == "option_group" else self.words(child))
            elif name == "classifier":
                terms[-1] += f" ({self.words(child)})"
            elif name in ("definition", "description"):
                body += child.children
        return terms, body

    def _options(self, group: nodes.Node) -> str:
        options = (option.children for option in group.children)
        return ", ".join("".join(part.get("delimiter", "") + part.astext() for part in parts) for parts in options)

    def pieces(self, node: nodes.Node) -> list[str]:
        """Return the text of a node inside of another one: paragraphs, and lists as indented lines."""
        name = _kind(node)
        if name == "system_message":
            return _unparsed(node)
        if name in _UNREAD:
            return []
        if name in ("bullet_list", "enumerated_list"):
            return ["\n".join(self._items(node))]
        if name in ("definition_list", "option_list"):
            entries = (self._definition(item) for item in node.children)
            return [format_definition(terms, self._pieces_of(body)) for terms, body in entries]
        if name == "field_list":
            return ["\n".join(self._fields(node))]
        if name == "table":
            return [self._table(node)]
        if name in _CODE or name == "line_block":
            return [_lines(node)]
        if name in _NOTES:
            opening, rest = self._note_opening(node)
            return [opening, *self._pieces_of(rest)]
        if name in ("footnote", "citation"):
            return [" ".join(self._pieces_of(node.children))]
        if name in (
            "paragraph",
            "title",
            "subtitle",
            "rubric",
            "caption",
            "attribution",
            "label",
            "image",
            "reference",
        ):
            return [words] if (words := self.words(node)) else []
        return self._pieces_of(node.children) if node.children else [node.astext()]

    def _pieces_of(self, children: Iterable[nodes.Node]) -> list[str]:
        return list(chain.from_iterable(self.pieces(child) for child in children))

    def _items(self, node: nodes.Node) -> Iterator[str]:
        numbered = _kind(node) == "enumerated_list"
        for number, item in enumerate(node.children, start=int(node.get("start", 1)) if numbered else 1):
            mark = f"{number}. " if numbered else "- "
            lines = "\n".join(self._pieces_of(item.children)).split("\n")
            yield mark + lines[0]
            yield from (f"  {line}" for line in lines[1:])

    def _fields(self, node: nodes.Node) -> Iterator[str]:
        for field in node.children:
            name, body = self.words(field.children[0]), " ".join(self._pieces_of(field.children[1].children))
            if name not in _SETTINGS_OF_THE_PAGE:
                yield f"{_field_name(name)}: {body}" if body else _field_name(name)

    def _table(self, node: nodes.Node) -> str:
        """Return a Markdown table under its title."""
        above = [self.words(child) for child in node.children if _kind(child) == "title"]
        rows: list[list[str]] = []
        deep = 0
        for group in (part for child in node.children if _kind(child) == "tgroup" for part in child.children):
            if _kind(group) in ("thead", "tbody"):
                rows += self._rows(group)
                deep = len(rows) if _kind(group) == "thead" else deep
        header = one_header(rows[:deep]) if deep > 1 else rows[:deep]
        return "\n".join((*above, markdown_table([*header, *rows[deep:]], has_header=bool(deep) or None)))

    def _rows(self, group: nodes.Node) -> Iterator[list[str]]:
        spanned: dict[int, tuple[str, int]] = {}
        for row in group.children:
            cells: list[str] = []
            for entry in row.children:
                _go_on(cells, spanned)
                text = " ".join(self._pieces_of(entry.children))
                if down := min(int(entry.get("morerows", 0)), MOST_SPANNED):
                    spanned[len(cells)] = text, down
                cells += [text, *[""] * min(int(entry.get("morecols", 0)), MOST_SPANNED)]
            _go_on(cells, spanned)
            yield cells

    def words(self, node: nodes.Node) -> str:
        """Return the words of a node on one line."""
        return _WHITE.sub(" ", join_ideographs("".join(self._spoken(node)))).strip()

    def _spoken(self, node: nodes.Node) -> Iterator[str]:
        name = _kind(node)
        if name == "Text":
            yield node.astext()
        elif name == "substitution_reference":
            yield self._substituted(node)
        elif name == "image":
            yield str(node.get("alt", ""))
        elif name not in _UNREAD:
            for child in node.children:
                yield from self._spoken(child)

    def _substituted(self, node: nodes.Node) -> str:
        """Return the words that a name stands for, one step deep: what they name in turn stays a name."""
        definition = self._substitutions.get(node.get("refname", "")) or self._substitutions.get(node.astext())
        return str((node if definition is None else definition).astext())


def _kind(node: nodes.Node) -> str:
    return type(node).__name__


def _is_object(node: nodes.Node) -> bool:
    """Return whether a node is the description of an option, a setting, a function or the like."""
    return _kind(node) == "definition_list" and "object" in node.get("classes", ())


def _leads_to_section(node: nodes.Node) -> bool:
    """Return whether nothing but a heading follows a node, in its own section or behind it."""
    siblings = node.parent.children if _kind(node.parent) in ("section", "document") else []
    later = next((other for other in siblings[node.parent.index(node) + 1 :] if _kind(other) not in _UNREAD), None)
    return _kind(later) == "section" if later is not None else _kind(node.parent) == "section"


def _owner_name(terms: Sequence[str], item: nodes.Node) -> str:
    """Return the name of a class whose members are described inside of it."""
    if "class" not in item.get("classes", ()) or not terms:
        return ""
    return re.split(r"[(\[\s]", re.sub(r"^(?:class|exception|final|abstract)\s+", "", terms[0]))[0]


def _qualify(term: str, owner: str) -> str:
    bare = re.split(r"[(\s]", term)[0]
    return f"{owner}.{term}" if owner and "." not in bare and " " not in term.split("(")[0].strip() else term


def _unparsed(node: nodes.Node) -> list[str]:
    """Return the source of what docutils could not make sense of."""
    if int(node.get("level", 0)) < _ERROR:
        return []
    return [child.astext() for child in node.children if _kind(child) == "literal_block"]


def _lines(node: nodes.Node) -> str:
    if _kind(node) != "line_block":
        return str(node.astext())
    return "\n".join(_lines(child) if _kind(child) == "line_block" else child.astext() for child in node.children)


def _field_name(name: str) -> str:
    """Return the name of a field as a reader says it: a parameter by its own name."""
    kind, _, rest = name.partition(" ")
    return rest if kind in ("param", "parameter", "arg", "argument", "key", "keyword", "raises") and rest else name


def _go_on(cells: list[str], spanned: dict[int, tuple[str, int]]) -> None:
    """Repeat cells that reach down from a row above."""
    while len(cells) in spanned:
        text, down = spanned.pop(len(cells))
        if down > 1:
            spanned[len(cells)] = text, down - 1
        cells.append(text)

"""Where definitions begin in a source file, from its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from ragstone.ingest.parsers.cleaning import one_line
from ragstone.ingest.parsers.code_languages import (
    CONTAINERS,
    DEFINITIONS,
    FUNCTIONS,
    HOLDERS,
    LEADS,
    TRANSPARENT,
    WRAPPERS,
    CodeLanguage,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 8
"""How deep classes in classes are followed; what is deeper stays in one piece."""
SECONDS = 4.0
"""A grammar may need quadratic time for a broken file: then the file is cut by lines instead."""
_STEP = 1024
_LONGEST_NAME = 100
_WRAPPED = 4
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)?\)$")


class TookTooLong(Exception):
    """The syntax tree of a file was not done in time."""


class Mark(NamedTuple):
    """A row from which on another definition holds the text."""

    row: int
    path: tuple[str, ...]


class _Definition(NamedTuple):
    names: tuple[str, ...]
    body: Node | None


def outline(text: str, language: CodeLanguage) -> list[Mark]:
    """The marks of a file in order, from row 0 on. Raises `ImportError` where the grammar is not installed."""
    from tree_sitter import Language, Parser

    grammar = getattr(import_module(language.package), language.grammar)
    source = text.encode("utf-8")
    began = process_time()
    late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal late
        late = late or process_time() - began > SECONDS
        return b"" if late else source[offset : offset + _STEP]

    tree = Parser(Language(grammar())).parse(read)
    if late:
        raise TookTooLong
    walk = _Walk(source)
    walk.members(tree.root_node, (), 0)
    return walk.marks


class _Walk:
    """Goes down a tree, from definition to definition."""

    def __init__(self, source: bytes) -> None:
        self.marks = [Mark(0, ())]
        self._source = source
        self._free = 0
        """The first row that belongs to no definition yet."""

    def members(self, node: Node, path: tuple[str, ...], depth: int) -> None:
        """Mark the definitions among the children of a node."""
        described_from = described_to = statement = -1
        for child in _children(node):
            first, last = _rows(child)
            if child.type in LEADS and first > statement:
                if described_from < 0 or first > described_to + 1:
                    described_from = first
                described_to = last
                continue
            definition = self._definition(child)
            if definition:
                described = described_from >= 0 and first <= described_to + 1
                self._mark(described_from if described else first, child, definition, path, depth)
            described_from = -1
            statement = last
        if statement >= self._free:
            self._resume(path)

    def _mark(
        self, first: int, node: Node, definition: _Definition, path: tuple[str, ...], depth: int
    ) -> None:
        row, last = _rows(node)
        if first >= self._free:
            if first > self._free:
                self._resume(path)
            inner = path + definition.names
            self.marks.append(Mark(first, inner))
            if definition.body and depth < MAX_DEPTH:
                self._free = row + 1
                self.members(definition.body, inner, depth + 1)
        # One that begins on a line of another one stays with that.
        self._free = max(self._free, last + 1)

    def _resume(self, path: tuple[str, ...]) -> None:
        if self.marks[-1].path != path:
            self.marks.append(Mark(self._free, path))

    def _definition(self, node: Node) -> _Definition | None:
        for _ in range(_WRAPPED):
            if node.type not in WRAPPERS:
                break
            inside = [
                child for child in node.named_children if child.type in DEFINITIONS | HOLDERS | WRAPPERS
            ]
            if not inside:
                return None
            node = inside[-1]
        if node.type in HOLDERS:
            return self._held(node)
        if node.type not in DEFINITIONS:
            return None
        body = node.child_by_field_name("body") if node.type in CONTAINERS else None
        return _Definition(self._names(node), body)

    def _held(self, node: Node) -> _Definition | None:
        """A variable or a field whose value is a function."""
        holder = next((child for child in node.named_children if child.type == "variable_declarator"), node)
        value = holder.child_by_field_name("value")
        if value is None or value.type not in FUNCTIONS:
            return None
        return _Definition(self._names(holder), None)

    def _names(self, node: Node) -> tuple[str, ...]:
        if node.type == "type_declaration":
            node = next(iter(node.named_children), node)
        fields = (node.child_by_field_name(field) for field in ("name", "property", "type"))
        named = next(filter(None, fields), None)
        name = self._text(named).partition("<")[0] if named else "default"
        receiver = node.child_by_field_name("receiver")
        owner = _RECEIVER.search(self._text(receiver)) if receiver else None
        return (owner[1], name) if owner else (name,)

    def _text(self, node: Node) -> str:
        end = min(node.end_byte, node.start_byte + _LONGEST_NAME)
        return one_line(self._source[node.start_byte : end].decode("utf-8", "ignore"))


def _children(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in TRANSPARENT:
            yield from child.named_children
        else:
            yield child


def _rows(node: Node) -> tuple[int, int]:
    """The first and last row of a node; a comment may say that it ends where the next row begins."""
    # Unpacked, for `Point.row` gives away a reference it does not own and brings the process down.
    first, _ = node.start_point
    last, column = node.end_point
    return first, max(first, last - (column == 0))

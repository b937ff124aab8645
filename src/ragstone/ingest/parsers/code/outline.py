"""Programming languages by suffix, and what their grammars call the things that have a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from ragstone.ingest.parsers.draft import one_line

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """A language, the package that has its grammar, and the function of it that gives the grammar."""

    name: str
    media_type: str
    package: str
    grammar: str = "language"


_PYTHON = CodeLanguage("python", "text/x-python", "tree_sitter_python")
_JAVASCRIPT = CodeLanguage("javascript", "text/javascript", "tree_sitter_javascript")
_TYPESCRIPT = CodeLanguage("typescript", "text/x-typescript", "tree_sitter_typescript", "language_typescript")
_TSX = CodeLanguage("typescript", "text/x-typescript", "tree_sitter_typescript", "language_tsx")
_GO = CodeLanguage("go", "text/x-go", "tree_sitter_go")
_RUST = CodeLanguage("rust", "text/x-rust", "tree_sitter_rust")
_JAVA = CodeLanguage("java", "text/x-java", "tree_sitter_java")
LANGUAGES = {
    ".py": _PYTHON,
    ".js": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".cjs": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".ts": _TYPESCRIPT,
    ".tsx": _TSX,
    ".go": _GO,
    ".rs": _RUST,
    ".java": _JAVA,
}


def _kinds(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTAINERS = _kinds(
    "class_definition class_declaration abstract_class_declaration class interface_declaration internal_module module "
    "impl_item trait_item mod_item enum_declaration record_declaration annotation_type_declaration"
)
"""Definitions whose body holds other definitions."""
FUNCTIONS = _kinds("arrow_function function_expression generator_function class")
"""Values that make a variable or a field a definition."""
DEFINITIONS = CONTAINERS | _kinds(
    "function_definition function_declaration generator_function_declaration function_signature function_expression "
    "function_item method_definition method_declaration abstract_method_signature type_alias_declaration "
    "type_declaration struct_item enum_item union_item macro_definition constructor_declaration "
    "compact_constructor_declaration"
)
HOLDERS = _kinds("lexical_declaration variable_declaration public_field_definition field_definition")
"""Declarations that are definitions when their value is a function."""
WRAPPERS = _kinds("decorated_definition export_statement ambient_declaration expression_statement")
LEADS = _kinds("comment line_comment block_comment attribute_item decorator")
"""What stands before a definition and describes it."""
TRANSPARENT = _kinds("ERROR enum_body_declarations")
"""What holds definitions without being one: their members count as if it were not there."""


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


class OutlineMark(NamedTuple):
    """A row from which on another definition holds the text."""

    row: int
    path: tuple[str, ...]


class _NamedNode(NamedTuple):
    names: tuple[str, ...]
    body: Node | None


def outline(text: str, language: CodeLanguage) -> list[OutlineMark]:
    """Return the marks of a file in order, from row 0 on. Raises `ImportError` where the grammar is not installed."""
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
    walk = _OutlineWalk(source)
    walk.members(tree.root_node, (), 0)
    return walk.marks


class _OutlineWalk:
    """Goes down a tree, from definition to definition."""

    def __init__(self, source: bytes) -> None:
        self.marks = [OutlineMark(0, ())]
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

    def _mark(self, first: int, node: Node, definition: _NamedNode, path: tuple[str, ...], depth: int) -> None:
        row, last = _rows(node)
        if first >= self._free:
            if first > self._free:
                self._resume(path)
            inner = path + definition.names
            self.marks.append(OutlineMark(first, inner))
            if definition.body and depth < MAX_DEPTH:
                self._free = row + 1
                self.members(definition.body, inner, depth + 1)
        # One that begins on a line of another one stays with that.
        self._free = max(self._free, last + 1)

    def _resume(self, path: tuple[str, ...]) -> None:
        if self.marks[-1].path != path:
            self.marks.append(OutlineMark(self._free, path))

    def _definition(self, node: Node) -> _NamedNode | None:
        for _ in range(_WRAPPED):
            if node.type not in WRAPPERS:
                break
            inside = [child for child in node.named_children if child.type in DEFINITIONS | HOLDERS | WRAPPERS]
            if not inside:
                return None
            node = inside[-1]
        if node.type in HOLDERS:
            return self._function_value(node)
        if node.type not in DEFINITIONS:
            return None
        body = node.child_by_field_name("body") if node.type in CONTAINERS else None
        return _NamedNode(self._names(node), body)

    def _function_value(self, node: Node) -> _NamedNode | None:
        """Return the name of a variable or a field whose value is a function."""
        holder = next((child for child in node.named_children if child.type == "variable_declarator"), node)
        value = holder.child_by_field_name("value")
        if value is None or value.type not in FUNCTIONS:
            return None
        return _NamedNode(self._names(holder), None)

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
    """Return the first and last row of a node; a comment may say that it ends where the next row begins."""
    # Unpacked, for `Point.row` gives away a reference it does not own and brings the process down.
    first, _ = node.start_point
    last, column = node.end_point
    return first, max(first, last - (column == 0))

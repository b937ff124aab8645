"""Source code: the file as it is, in one block per definition, with the names of what they define."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import PurePosixPath
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from ragstone.core.types import Json, Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean, one_line
from ragstone.ingest.parsers.text.text import decode

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CHARS = 2_000_000
"""Larger files are generated: their lines are enough."""
MAX_SYMBOLS_BYTES = 24 * 1024
"""Metadata is kept whole in memory and in the ledger; what is beyond this has no names."""
_CLOSING = ")]}"
MAX_DEPTH = 8
"""The depth to which classes in classes are followed; deeper ones stay in one piece."""
SECONDS = 4.0
"""A grammar may need quadratic time for a broken file: then the file is cut by lines instead."""
_STEP = 1024
_LONGEST_NAME = 100
_WRAPPED = 4
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)?\)$")


def parse_code(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a source file; `metadata["symbols"]` lists where each definition begins: `[start, "Class", "method"]`."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    language = LANGUAGES.get(PurePosixPath(name).suffix.lower())
    marks, problem = _marks(cleaned.text, language)
    paths = list(_add_blocks(draft, cleaned.text.split("\n"), marks))
    parsed = draft.finish(
        language.media_type if language else "text/plain",
        metadata={"encoding": decoded.encoding, **({"programming_language": language.name} if language else {})},
        warnings=(*decoded.warnings, *([problem] if problem else [])),
    )
    symbols = _symbols([block.start for block in parsed.blocks], paths)
    return replace(parsed, metadata={**parsed.metadata, "symbols": symbols})


def _marks(text: str, language: CodeLanguage | None) -> tuple[list[OutlineMark], str]:
    """Return the definitions of a file, and why they could not be told apart."""
    whole = [OutlineMark(0, ())]
    if language is None:
        return whole, ""
    if len(text) > MAX_CHARS:
        return whole, f"the file has more than {MAX_CHARS:,} characters: it is cut between lines"
    try:
        return outline(text, language), ""
    except ImportError:
        return whole, "cut between lines; for whole functions and classes: pip install 'ragstone[code]'"
    except TookTooLong:
        return whole, f"its syntax could not be read as {language.name} in time: it is cut between lines"


def _add_blocks(draft: Draft, lines: Sequence[str], marks: Sequence[OutlineMark]) -> Iterator[tuple[str, ...]]:
    """Add the text of each definition, and give the path of each block that was added."""
    ends = [*(mark.row for mark in marks[1:]), len(lines)]
    for mark, end in zip(marks, ends, strict=True):
        rows = [(mark.row, end)] if mark.path else _paragraphs(lines, mark.row, end)
        for first, last in rows:
            block = "\n".join(lines[first:last])
            if block.strip():
                draft.add("code", block)
                yield mark.path


def _paragraphs(lines: Sequence[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield rows that belong together: another run begins at the margin, behind a blank line."""
    start = first
    for row in range(first + 1, last):
        line = lines[row]
        at_margin = line[:1].strip() and line[0] not in _CLOSING
        if at_margin and not lines[row - 1].strip():
            yield start, row
            start = row
    yield start, last


def _symbols(starts: Sequence[int], paths: Sequence[tuple[str, ...]]) -> list[Json]:
    """Return where the path changes, as far as there is room; definitions beyond it have no entry."""
    symbols: list[Json] = []
    room = MAX_SYMBOLS_BYTES
    before: tuple[str, ...] = ()
    for start, path in zip(starts, paths, strict=True):
        if path == before:
            continue
        entry = [start, *path]
        room -= len(json.dumps(entry)) + 2
        if room < 0:
            return [*symbols, [start]]
        symbols.append(entry)
        before = path
    return symbols


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
"""Nodes that stand before a definition and describe it."""
TRANSPARENT = _kinds("ERROR enum_body_declarations")
"""Nodes that hold definitions without being one: their members count as if the node were not there."""


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

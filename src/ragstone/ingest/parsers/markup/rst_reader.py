"""Read reStructuredText with docutils, with the directives and roles of Sphinx, within bounds of size and time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles, states, tableparser
from docutils.utils import new_document, unescape

MAX_CHARS = 2_000_000
LONGEST_LINE = 10_000
LONGEST_PARAGRAPH = 50_000
"""A longer one is taken as it is: docutils copies what is left of it at every mark inside."""
MOST_TABLE_CHARS = 100_000
SECONDS = 10.0
_PLAIN = frozenset({
    "table", "list-table", "csv-table", "replace", "unicode", "rubric", "epigraph", "highlights", "pull-quote",
    "compound", "container", "line-block", "image", "figure",
})  # fmt: skip
"""Directives that docutils reads as they should be read."""
_NOTES = frozenset({"attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning"})
_TITLED_NOTES = {"seealso": "See also", "todo": "To do", "topic": "", "sidebar": "", "admonition": "", "dropdown": ""}
_VERSIONS = {
    "versionadded": "Added in version {}",
    "versionchanged": "Changed in version {}",
    "versionremoved": "Removed in version {}",
    "deprecated": "Deprecated since version {}",
    "deprecated-removed": "Deprecated since version {}",
}
_CODE = frozenset({
    "code", "code-block", "sourcecode", "parsed-literal", "highlight-block", "doctest", "testcode", "testoutput",
    "productionlist", "prompt", "math", "console", "terminal", "ipython",
})  # fmt: skip
_DROPPED = frozenset({
    "contents", "toctree", "include", "literalinclude", "raw", "index", "highlight", "highlightlang", "meta",
    "module", "currentmodule", "role", "default-role", "sectnum", "section-numbering", "target-notes", "header",
    "footer", "title", "date", "sectionauthor", "codeauthor", "moduleauthor", "plot", "graphviz", "digraph", "graph",
    "program", "testsetup", "testcleanup", "tabularcolumns", "acks", "class", "restructuredtext-test-directive",
})  # fmt: skip
_OBJECTS = frozenset({
    "function", "data", "exception", "method", "classmethod", "staticmethod", "attribute", "property", "decorator",
    "decoratormethod", "option", "cmdoption", "envvar", "confval", "setting", "describe", "object", "type", "macro",
    "member", "var", "struct", "union", "enum", "enumerator", "cfunction", "ctype", "cvar", "templatetag",
    "templatefilter", "fieldlookup", "django-admin", "django-admin-option", "signal", "opcode", "pdbcommand",
    "directive", "role", "rst:directive", "rst:role", "command", "configvalue", "variable", "concept", "config",
    "http:get", "http:post", "http:put", "http:delete", "http:patch", "get", "post", "put", "delete", "patch",
    "glossary-term", "interface", "constant", "field", "event", "parameter", "class", "py:class",
})  # fmt: skip
_CLASSES = frozenset({"class", "exception", "interface", "struct"})
_TARGET = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBERED = {"pep": "PEP ", "rfc": "RFC ", "issue": "issue #", "cve": "CVE-", "ticket": "#", "bpo": "bpo-", "gh": "gh-"}
_INLINE = frozenset({
    "emphasis", "strong", "literal", "code", "math", "subscript", "sub", "superscript", "sup", "title-reference",
    "title", "t",
})  # fmt: skip


class NotReadable(Exception):
    """A page is too large, or took too long, to be read as reStructuredText."""


def read_tree(text: str) -> nodes.document:
    """Return the tree of a page; nothing it names is opened. Raises `NotReadable`."""
    if len(text) > MAX_CHARS:
        raise NotReadable(f"it has more than {MAX_CHARS:,} characters")
    if any(len(line) > LONGEST_LINE for line in text.split("\n")):
        raise NotReadable(f"it has a line of more than {LONGEST_LINE:,} characters")
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = ""
    settings.line_length_limit = LONGEST_LINE
    document = new_document("page", settings)
    with _with_sphinx():
        Parser(inliner=_bounded_inliner()).parse(text, document)
    return document


def _bounded_inliner() -> states.Inliner:
    """Return the reader of marks inside of paragraphs, which works while there is time."""
    inliner = states.Inliner()
    read = inliner.parse
    until = process_time() + SECONDS

    def read_in_time(text: str, lineno: int, memo: Any, parent: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
        if process_time() > until:
            raise NotReadable("it took too long")
        return ([nodes.Text(text)], []) if len(text) > LONGEST_PARAGRAPH else read(text, lineno, memo, parent)

    # Not a subclass: docutils looks up its patterns in the class itself.
    inliner.parse = read_in_time
    return inliner


@contextmanager
def _with_sphinx() -> Iterator[None]:
    """Let docutils find a reader for every directive and role, in the way of Sphinx: its own search is replaced."""
    searched, asked, grid = directives.directive, roles.role, tableparser.GridTableParser.parse

    def find_directive(name: str, language: Any, document: Any) -> tuple[Any, list[Any]]:
        found = _directive_class(name)
        return (found, []) if found else searched(name, language, document)

    def find_role(name: str, language: Any, lineno: int, reporter: Any) -> tuple[Any, list[Any]]:
        bare = name.rpartition(":")[2].lower()
        return asked(bare, language, lineno, reporter) if not bare or bare in _INLINE else (_say_reference, [])

    def parse_grid(parser: Any, block: Any) -> Any:
        if sum(map(len, block)) > MOST_TABLE_CHARS:
            raise tableparser.TableMarkupError("the table is too large")
        return grid(parser, block)

    directives.directive, roles.role, tableparser.GridTableParser.parse = find_directive, find_role, parse_grid
    try:
        yield
    finally:
        directives.directive, roles.role, tableparser.GridTableParser.parse = searched, asked, grid


def _directive_class(name: str) -> type[Directive] | None:
    """Return the reader of a directive; None for one that docutils reads itself."""
    name = name.lower()
    bare = name.rpartition(":")[2]
    if bare in _PLAIN:
        return None
    if ":" not in name and name in _VERSIONS:
        return _Version
    if bare in _NOTES or bare in _TITLED_NOTES:
        return _TitledNote if bare in _TITLED_NOTES else _Note
    if bare in _CODE:
        return _Code
    if name in ("glossary", "only", "ifconfig", "hlist", "centered", "parsed", "automodule"):
        return _Content
    if bare in _OBJECTS and name not in ("role", "title"):
        return _Object
    if bare.startswith("auto") and bare[4:] in _OBJECTS:
        return _AutoObject
    return _Dropped if bare in _DROPPED or bare.startswith("auto") else _Unknown


class _AnyOption(dict[str, Callable[[str], str]]):
    """Takes every option: one that is not known must not cost the content."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[[str], str]:
        return lambda value: value or ""


class _Directive(Directive):  # type: ignore[misc]
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def bare_name(self) -> str:
        return str(self.name).lower().rpartition(":")[2]

    def read_content(self, into: nodes.Element) -> nodes.Element:
        """Read the indented text below a directive as the children of a node."""
        self.state.nested_parse(self.content, self.content_offset, into)
        return into

    def read_line(self, text: str) -> list[nodes.Node]:
        found, _ = self.state.inline_text(" ".join(text.split()), self.lineno)
        return list(found)


class _Dropped(_Directive):
    """Not for readers, or about other files: nothing of it stays."""

    def run(self) -> list[nodes.Node]:
        return []


class _Note(_Directive):
    optional_arguments = 0

    def run(self) -> list[nodes.Node]:
        return [self.read_content(getattr(nodes, self.bare_name())())]


class _TitledNote(_Directive):
    def run(self) -> list[nodes.Node]:
        said = _TITLED_NOTES[self.bare_name()]
        argument = self.arguments[0] if self.arguments else ""
        note = nodes.admonition("", nodes.title("", "", *self.read_line(said or argument)))
        if said and argument:
            note += nodes.paragraph("", "", *self.read_line(argument))
        return [self.read_content(note)]


class _Version(_Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        said = _VERSIONS[self.bare_name()].format(self.arguments[0])
        rest = self.read_line(self.arguments[1]) if len(self.arguments) > 1 else []
        inner = self.read_content(nodes.container()).children
        if not rest and inner and isinstance(inner[0], nodes.paragraph):
            rest = list(inner.pop(0).children)
        stop = ": " if rest else "."
        return [nodes.paragraph("", "", nodes.Text(said + stop), *rest), *inner]


class _Code(_Directive):
    def run(self) -> list[nodes.Node]:
        lines = "\n".join(self.content)
        if not lines and self.arguments:
            lines = self.arguments[0]
        caption = self.options.get("caption", "")
        above = [nodes.paragraph("", "", *self.read_line(caption))] if caption else []
        return [*above, nodes.literal_block(lines, lines)] if lines.strip() else above


class _Content(_Directive):
    """Only its content is for readers."""

    def run(self) -> list[nodes.Node]:
        return list(self.read_content(nodes.container()).children)


class _Object(_Directive):
    """An option, a setting, a function: a term with its description."""

    def run(self) -> list[nodes.Node]:
        signatures = re.sub(r"\\\n\s*", "", self.arguments[0] if self.arguments else "").split("\n")
        if self.name == "class" and not self.content and signatures[0].islower():
            # As docutils has it, about the look of what follows.
            return []
        item = nodes.definition_list_item(classes=["class"] if self.bare_name() in _CLASSES else [])
        for signature in filter(None, map(str.strip, signatures)):
            words = unescape(signature)
            item += nodes.term(words, "", nodes.Text(words))
        item += self.read_content(nodes.definition())
        return [nodes.definition_list("", item, classes=["object"])]


class _AutoObject(_Object):
    """A function or a class that Sphinx describes by the words of the program, and what the page adds to them."""

    def bare_name(self) -> str:
        return super().bare_name().removeprefix("auto")

    def run(self) -> list[nodes.Node]:
        described = super().run()
        return described if described and described[0][0][-1].children else []


class _Unknown(_Directive):
    """Of an extension: its argument is taken for a title where there is text below it."""

    def run(self) -> list[nodes.Node]:
        found = list(self.read_content(nodes.container()).children)
        if not found or not self.arguments or "/" in self.arguments[0]:
            return found
        return [nodes.paragraph("", "", *self.read_line(self.arguments[0])), *found]


def _say_reference(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Return the words of a reference: its title, or else its target as one says it."""
    bare = name.rpartition(":")[2].lower()
    words = unescape(text)
    if bare.startswith("raw"):
        return [], []
    if titled := _TARGET.fullmatch(words.strip()):
        return [nodes.inline(rawtext, titled[1])], []
    if bare in _NUMBERED:
        words = _NUMBERED[bare] + words.lstrip("#")
    elif bare == "doc":
        words = words.strip("/")
    elif bare in ("ref", "numref"):
        words = words.replace("-", " ").replace("_", " ")
    elif bare in ("file", "samp"):
        words = _BRACES.sub(r"\1", words)
    elif bare == "menuselection":
        words = words.replace("-->", "›")
    elif words.startswith("~"):
        words = words.rpartition(".")[2].lstrip("~")
    return [nodes.inline(rawtext, words.lstrip("!"))], []

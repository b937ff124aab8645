"""Source code: blocks per definition, names for chunkers, and files that mean harm."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers import code
from ragstone.ingest.parsers.code import LANGUAGES, parse_code
from ragstone.ingest.parsers.draft import broken_rules

PYTHON = '''
"""A module."""
import os

LIMIT = 3  # not more

# About ships.
@dataclass
class Ship(Base):
    """A ship."""

    name: str = ""

    # How fast.
    @property
    def speed(self) -> int:
        """Knots."""

        return 3

    async def sail(self): return 1
    tail = 2

def a(): pass
def b():
    def inner():
        pass
    return inner


if LIMIT:
    a()
'''
TYPESCRIPT = """
import x from "y";

// The harbour.
@Injectable()
export class Harbour<T> extends Place {
  size = 1;
  /** Lets one in. */
  @Log
  enter(ship: T): void {
  }
  leave = () => {
  };
}
export default function () {
}
export const tide = async () => {
};
namespace Sea {
  export function wave() {}
}
interface Boat { sail(): void }
abstract class Raft { abstract float(): void; }
"""
JAVASCRIPT = """
class A {
  #secret = 1;
  [Symbol.iterator]() {
  }
}
const f = function () {
};
const limit = 3;
"""
GO = """
package main

import "fmt"

// Run runs.
func (s *Server[T]) Run(a int) error { return nil }

type Server[T any] struct {
	a int
}

func main() {}
"""
RUST = """
use std::fmt;

/// A ship.
#[derive(Debug)]
pub struct Ship<T> { a: T }

impl<T> fmt::Display for Ship<T> {
    /// Writes it.
    #[inline]
    fn fmt(&self) {
    }
}
mod dock {
    pub fn open() {}
}
macro_rules! go { () => {} }
"""
JAVA = """
package a;
import b;

/** A ship. */
@Entity
public class Ship {
  int x;

  // Sails.
  @Override public void sail() {
  }
  Ship() {}
  enum Kind {
    BIG, SMALL;
    void z() {}
  }
}
record Crew(int a) {}
"""


def named(parsed: Parsed) -> list[tuple[str, str]]:
    """Each block's path and the first line of it."""
    marks = [(start, ".".join(path)) for start, *path in parsed.metadata["symbols"]]
    return [
        (
            next((name for start, name in reversed(marks) if start <= block.start), ""),
            parsed.text[block.start : block.end].split("\n")[0].strip(),
        )
        for block in parsed.blocks
    ]


@pytest.mark.req("R-CHK-10")
@pytest.mark.parametrize(
    ("name", "source", "definitions"),
    [
        (
            "ship.py",
            PYTHON,
            [
                ("", '"""A module."""'),
                ("", "LIMIT = 3  # not more"),
                ("Ship", "# About ships."),
                ("Ship.speed", "# How fast."),
                ("Ship.sail", "async def sail(self): return 1"),
                ("Ship", "tail = 2"),
                ("a", "def a(): pass"),
                ("b", "def b():"),
                ("", "if LIMIT:"),
            ],
        ),
        (
            "harbour.ts",
            TYPESCRIPT,
            [
                ("", 'import x from "y";'),
                ("Harbour", "// The harbour."),
                ("Harbour.enter", "/** Lets one in. */"),
                ("Harbour.leave", "leave = () => {"),
                ("default", "export default function () {"),
                ("tide", "export const tide = async () => {"),
                ("Sea", "namespace Sea {"),
                ("Sea.wave", "export function wave() {}"),
                ("Boat", "interface Boat { sail(): void }"),
                ("Raft", "abstract class Raft { abstract float(): void; }"),
            ],
        ),
        (
            "a.js",
            JAVASCRIPT,
            [
                ("A", "class A {"),
                ("A.[Symbol.iterator]", "[Symbol.iterator]() {"),
                ("f", "const f = function () {"),
                ("", "const limit = 3;"),
            ],
        ),
        (
            "main.go",
            GO,
            [
                ("", "package main"),
                ("", 'import "fmt"'),
                ("Server.Run", "// Run runs."),
                ("Server", "type Server[T any] struct {"),
                ("main", "func main() {}"),
            ],
        ),
        (
            "ship.rs",
            RUST,
            [
                ("", "use std::fmt;"),
                ("Ship", "/// A ship."),
                ("Ship", "impl<T> fmt::Display for Ship<T> {"),
                ("Ship.fmt", "/// Writes it."),
                ("dock", "mod dock {"),
                ("dock.open", "pub fn open() {}"),
                ("go", "macro_rules! go { () => {} }"),
            ],
        ),
        (
            "Ship.java",
            JAVA,
            [
                ("", "package a;"),
                ("Ship", "/** A ship. */"),
                ("Ship.sail", "// Sails."),
                ("Ship.Ship", "Ship() {}"),
                ("Ship.Kind", "enum Kind {"),
                ("Ship.Kind.z", "void z() {}"),
                ("Crew", "record Crew(int a) {}"),
            ],
        ),
    ],
)
def test_definitions_are_blocks_with_what_describes_them(
    name: str, source: str, definitions: list[tuple[str, str]]
) -> None:
    parsed = parse_code(source.encode(), name)
    assert named(parsed) == definitions
    assert broken_rules(parsed) == []
    assert parsed.text.split() == source.split()
    assert {block.kind for block in parsed.blocks} == {"code"}
    assert parsed.warnings == ()


@pytest.mark.parametrize(
    ("name", "media_type", "language"),
    [
        ("a.py", "text/x-python", "python"),
        ("a.MJS", "text/javascript", "javascript"),
        ("a.tsx", "text/x-typescript", "typescript"),
        ("a.go", "text/x-go", "go"),
        ("a.rs", "text/x-rust", "rust"),
        ("a.java", "text/x-java", "java"),
    ],
)
def test_what_it_says_the_file_is(name: str, media_type: str, language: str) -> None:
    parsed = parse_code(b"x", name)
    assert (parsed.media_type, parsed.metadata["programming_language"]) == (media_type, language)
    assert parsed.title == ""


def test_lines_and_indentation_stay_as_they_are() -> None:
    source = "class A:\n    def f(self):\n\n        return '''\n  text\n'''\n"
    parsed = parse_code(source.encode(), "a.py")
    assert parsed.text == "class A:\n\n    def f(self):\n\n        return '''\n  text\n'''"


@pytest.mark.req("R-CHK-10")
@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(:\n    x\n\nclass B:\n    def m(self):\n        return (\n\n    def k(self):\n        pass\n", "B.k"),
        ("class A {{{\n" * 3, ""),
        ("}}}} )\n\ndef good():\n    pass\n", "good"),
    ],
)
def test_broken_syntax_gives_all_the_text(source: str, names: str) -> None:
    parsed = parse_code(source.encode(), "a.py")
    assert parsed.text.split() == source.split()
    assert any(found == names for found, _ in named(parsed))


@pytest.mark.parametrize("suffix", [".py", ".ts", ".java"])
def test_without_the_grammar_it_is_read_by_lines_and_says_so(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    source = "import a\n\nclass A:\n    x = 1\n\n    y = 2\n\ndef f():\n    pass\n"
    parsed = parse_code(source.encode(), f"a{suffix}")
    assert named(parsed) == [("", "import a"), ("", "class A:"), ("", "def f():")]
    assert parsed.warnings == ("cut between lines; for whole functions and classes: pip install 'ragstone[code]'",)


def test_a_language_without_a_grammar_is_read_by_lines() -> None:
    parsed = parse_code(b"int x;\n\nint y;\n", "a.c")
    assert (parsed.media_type, len(parsed.blocks), parsed.warnings) == ("text/plain", 2, ())


def test_a_generated_file_is_read_by_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_CHARS", 20)
    parsed = parse_code(PYTHON.encode(), "a.py")
    assert parsed.metadata["symbols"] == []
    assert parsed.warnings == ("the file has more than 20 characters: it is cut between lines",)


def test_a_grammar_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "SECONDS", -1.0)
    parsed = parse_code(PYTHON.encode(), "a.py")
    assert parsed.text.split() == PYTHON.split()
    assert parsed.warnings == ("its syntax could not be read as python in time: it is cut between lines",)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "(" * 50_000),
        ("a.py", "".join(" " * depth + f"class A{depth}:\n" for depth in range(400))),
        ("a.java", "class A {\n" * 5000),
        ("a.java", "class A {\n" * 5000 + "}\n" * 5000),
        ("a.rs", "mod a {\n" * 5000),
        ("a.ts", "export default " * 5000),
        ("a.ts", "'\"\n" * 500),
        ("a.js", "function a(){} " * 5000),
        ("a.go", "func (" * 5000),
    ],
)
def test_deep_and_strange_files_are_read_whole(name: str, source: str) -> None:
    parsed = parse_code(source.encode(), name)
    assert parsed.text.split() == source.split()
    assert broken_rules(parsed) == []


def test_names_are_bounded_and_what_is_beyond_has_none() -> None:
    source = "\n".join(f"def {'long_' * 15}{number}(): pass" for number in range(1000))
    parsed = parse_code(source.encode(), "a.py")
    symbols = parsed.metadata["symbols"]
    assert len(json.dumps(symbols)) <= code.MAX_SYMBOLS_BYTES + 32
    assert 100 < len(symbols) < 500
    assert symbols[-1] == [parsed.blocks[len(symbols) - 1].start]


@pytest.mark.parametrize(("content", "error"), [(b" \n", EmptyDocument), (b"\x00\x01\x02", ParseError)])
def test_what_is_no_text_is_refused(content: bytes, error: type[ParseError]) -> None:
    with pytest.raises(error, match=r"a\.py"):
        parse_code(content, "a.py")


PIECES = st.sampled_from(
    [
        *("class A:", "def f():", "class A {", "}", "fn f() {", "func f() {", "@d", "# c", "// c", "/* c", "*/"),
        *("é", "'", "\n", "\n\n", "    ", "\t", '"""', "export ", "(", ")", "\ufeff", "x = 1;"),
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=60).map("".join), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_in_any_language_is_kept_whole(source: str, suffix: str) -> None:
    try:
        parsed = parse_code(source.encode(), f"a{suffix}")
    except EmptyDocument:
        assert not source.replace("\ufeff", "").strip()
        return
    assert broken_rules(parsed) == []
    assert parsed.text.split() == source.replace("\ufeff", "").split()
    starts = {block.start for block in parsed.blocks}
    assert all(start in starts for start, *_ in parsed.metadata["symbols"])

"""Hostile tables, records and source code."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.faults.hostile_file import Hostile

TABLE_RULE = "| --- |"


def csv_files() -> Iterator[Hostile]:
    """Tables of text that lie about their rows."""
    formulas = "name,note\n" + "".join(
        f"{sign}x,\"{sign}cmd|' /C calc'!A0\"\n" for sign in ("=", "+", "-", "@", "\t=", "\r=")
    )
    long_header = ",".join(f"a column called {number} " + "x" * 80 for number in range(2000))
    tables = {
        "formulas": (formulas.encode(), r"=cmd\|' /C calc'!A0"),
        "a quotation mark that never ends": (b'a,b\n"x,y\n' + b"1,2\n" * 100_000, "was never closed"),
        "nothing but quotation marks": (b'"' * 1_000_001, ""),
        "quotation marks and commas": (b'",' * 300_000, ""),
        "a hundred thousand columns": (b"x," * 100_000 + b"\n" + b"y," * 100_000, "y"),
        "a million cells": (b"a,b,c,d,e\n" + b"1,2,3,4,5\n" * 200_000, TABLE_RULE),
        "one cell": (b"a,b\n" + b"x" * 2_000_000 + b",y", "y"),
        "rows of all lengths": (b"\n".join(b"x," * width for width in range(1500)), "x"),
        "every delimiter": (b"a,b;c\td|e\n" * 20_000, "a"),
        "old line ends": (b"a,b\r" * 50_000, "a"),
        "lines in cells": (b'a,b\n"' + b"\n" * 900 + b'x",y\n', "x"),
        "a name for its delimiter": (b"sep=;\na;b\nsep=,\n", "sep=,"),
        "pipes in cells": (b"a,b\n|x|,\\|y\\|\n", r"\|x\|"),
        "hidden cells": ("a,b\nx\u200by,\u202ez\n".encode(), "hidden characters were removed"),
    }
    for name, (content, says) in tables.items():
        yield Hostile(f"{name}.csv", content, "read", says)
    repeating = long_header.encode() + b"\n" + b"1,2\n" * 20_000
    yield Hostile("a header longer than its rows.csv", repeating, "refused", "characters of text", bomb=True)
    yield Hostile("tabs.tsv", b"\t" * 500_000 + b"x", "read", "x")
    yield Hostile("nul in a cell.csv", b"a,b\nx\x00,y", "refused", "is not text")
    yield Hostile("only commas.csv", b"," * 500_000, "refused", "no text was found")


def json_files() -> Iterator[Hostile]:
    """Records that are deep, long, broken, or larger than they look."""
    key = "k" * 1000
    deep_keys = f'{{"{key}":' * 300 + "{" + ",".join(f'"{n}":1' for n in range(5000)) + "}" + "}" * 300
    refused = {
        "brackets": (b"[" * 1_000_000, "nested too deep"),
        "braces": (b'{"a":' * 200_000, "nested too deep"),
        "brackets that are closed": (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        "keys that multiply": (deep_keys.encode(), "characters of text"),
        "cut off": (b'{"text": "words', "is not valid JSON"),
        "more behind it": (b'{"text": "words"} {"text": "more"}', "is not valid JSON"),
        "a comment": (b'{"text": "words"} // no', "is not valid JSON"),
        "nothing in it": (b"[[], {}, null, [[]]]", "no text was found"),
        "a pickle": (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix", "is not text"),
    }
    for name, (content, says) in refused.items():
        yield Hostile(f"{name}.json", content, "refused", says)
    read = {
        "a number of a million digits": (b'{"n": ' + b"9" * 1_000_000 + b', "text": "words"}', "words"),
        "numbers without end": (b'{"a": 1e999999999, "b": -NaN, "text": "words"}'.replace(b"-NaN", b"NaN"), "1e999"),
        "half characters": (rb'{"text": "a \ud800 b \udc00 c \u0000 d"}', "a \ufffd b"),
        "hidden orders": (rb'{"text": "wo\u200brds \u202e x"}', "2 hidden characters were removed"),
        "a key many times": (b"{" + b'"a": 1,' * 200_000 + b'"text": "words"}', "words"),
        "names of python": (b'{"__class__": "x", "__proto__": {"a": 1}, "constructor": "y"}', "__class__: x"),
        "lists of lists": (b"[" + b"[1]," * 200_000 + b"[2]]", "2"),
        "one long text": (b'{"text": "' + b"word " * 400_000 + b'"}', "word word"),
        "a mark before it": (b'\xef\xbb\xbf{"text": "words"}', "words"),
        "two bytes a letter": ('{"text": "words and more words"}'.encode("utf-16-le"), "words"),
    }
    for name, (content, says) in read.items():
        yield Hostile(f"{name}.json", content, "read", says)
    lines = b'{"text": "good"}\n' + b"[" * 100_000 + b'\n{"broken\n\xef\xbb\xbf{"text": "also good"}\n'
    yield Hostile("lines of which some are broken.jsonl", lines, "read", "2 lines cannot be read as JSON")
    yield Hostile("sixty thousand lines.jsonl", b'{"a":1}\n' * 60_000, "read", "a: 1")
    yield Hostile("more lines than may be.jsonl", b"1\n" * 300_000, "refused", "more than 250,000 paragraphs")


SUFFIXES = ("py", "js", "ts", "go", "rs", "java")


def code_files() -> Iterator[Hostile]:
    """What makes a grammar look back."""
    runs = {
        "braces": b"{" * 50_000,
        "brackets": b"(" * 50_000,
        "quotation marks": b"\"'`" * 6000,
        "generics": b"a<" * 2000,
        "comments": b"/*" * 50_000 + b"\n# x\n// y",
    }
    for suffix in SUFFIXES:
        for name, content in runs.items():
            yield Hostile(f"{name}.{suffix}", content, "read")
    noise = random.Random(5)
    tokens = [*"(){}[]<>;,.=+-*/\"'`#@&|!?:\\\n\t ", "if", "class", "fn", "func", "def", "=>", "async"]
    for suffix in SUFFIXES:
        scrambled = " ".join(noise.choice(tokens) for _ in range(20_000))
        yield Hostile(f"scrambled.{suffix}", scrambled.encode(), "read")
    yield from (
        Hostile(name, content, "read", says)
        for name, content, says in (
            ("fifty thousand functions.py", b"def f():\n    pass\n\n" * 50_000, "def f()"),
            ("classes in classes.py", b"".join(b" " * n + b"class A:\n" for n in range(900)), "class A"),
            ("classes in classes.java", b"class A {" * 5000, "class A"),
            ("functions in functions.js", b"function f() {" * 5000, "function f"),
            ("templates in templates.js", b"`${" * 20_000, "${"),
            ("elements in elements.jsx", b"<A>" * 20_000, "<A>"),
            ("elements in elements.tsx", b"<A<B>>" * 10_000, "<A"),
            ("conditions.ts", b"type A = " + b"B extends C ? D : " * 5000 + b"E;", "type A"),
            ("strings with a fence.rs", b"let a = r" + b"#" * 50_000 + b'"x', "let a"),
            ("macros.rs", b"m!{" * 20_000, "m!"),
            ("lifetimes.rs", b"'a " * 60_000, "in time: it is cut between lines"),
            ("receivers.go", b"func (a *" * 10_000 + b"A) b() {}", "func"),
            ("annotations.java", b"@A(" * 20_000, "@A"),
            ("one line of sums.py", b"a = " + b"1 + " * 100_000 + b"1", "a = 1"),
            ("a string of three marks.py", b'"""' * 50_001, '"""'),
            ("tabs and spaces.py", b"".join(b"\t" * (n % 90) + b" " * (n % 7) + b"if a:\n" for n in range(5000)), "if"),
            ("lambdas.py", b"lambda: " * 20_000 + b"1", "lambda"),
            ("words turned round.py", "access = 'user\u202e \u2066# admin\u2069 \u2066'\n".encode(), "hidden"),
            ("more than two megabytes.js", b"a();\n" * 450_000, "more than 2,000,000 characters"),
            ("a name without end.go", b"func " + b"a" * 500_000 + b"() {}", "func a"),
        )
    )
    yield Hostile("generics without end.java", b"a<" * 20_000)
    yield Hostile("compiled.py", b"\xcb\r\r\n" + bytes(64) + random.Random(3).randbytes(2000), "refused")
    yield Hostile("nul in code.go", b"package a\x00\n", "refused", "is not text")

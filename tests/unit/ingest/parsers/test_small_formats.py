"""Org files, notebooks, subtitles, and single files packed by gzip."""

from __future__ import annotations

import gzip
import json
from time import process_time

import pytest

from ragstone.core.errors import ParseError, ParserLimit, UnsupportedFormat
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions, broken_rules


def blocks(parsed: Parsed) -> list[tuple[str, str]]:
    assert broken_rules(parsed) == []
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


ORG = """\
#+TITLE: Harbour /rules/
# for writers
* TODO [#A] Mooring :boats:urgent:
:PROPERTIES:
:ID: 42
:END:
Keep *right* of the =--pier=, see [[https://example.org][the map]].[fn:1]
Twice.

- rope :: holds the boat
  well
- anchor :: of iron
- [ ] first
  1. inner
** Fees
| Boat | Fee |
|------+-----|
| Ada  |  12 |
#+BEGIN_SRC python
  pay(12)
#+END_SRC
#+begin_comment
unseen
#+end_comment
After.
"""


def test_an_org_file() -> None:
    parsed = parse(ORG.encode(), "a.org")
    assert (parsed.title, parsed.media_type) == ("Harbour rules", "text/org")
    assert blocks(parsed) == [
        ("heading", "Mooring"),
        ("paragraph", "Keep right of the --pier, see the map. Twice."),
        ("list", "rope\n  holds the boat well"),
        ("list", "anchor\n  of iron"),
        ("list", "- first\n  1. inner"),
        ("heading", "Fees"),
        ("table", "| Boat | Fee |\n| --- | --- |\n| Ada | 12 |"),
        ("code", "pay(12)"),
        ("paragraph", "After."),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "*a /b =c ~d +e _f " * 5_000,
        "".join(" " * n + "- x\n" for n in range(2_000)),
        ":A:\n" * 10_000,
        "#+begin_src\n" * 5_000,
        "1. x\n" * 5_000,
        "[[" * 50_000,
    ],
)
def test_a_hostile_org_file_ends_in_time(source: str) -> None:
    began = process_time()
    blocks(parse(b"x\n" + source.encode(), "a.org"))
    assert process_time() - began < 3


NOTEBOOK = {
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "They *rise*."]},
        {
            "cell_type": "code",
            "source": "rise(3)",
            "outputs": [
                {"output_type": "stream", "text": ["3 metres\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 30, "text/plain": "<Figure 1>"}},
                {"output_type": "execute_result", "data": {"text/plain": ["42"], "text/html": "<b>42</b>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "too high", "traceback": ["…"]},
            ],
        },
        {"cell_type": "raw", "source": None},
    ],
}


def test_a_notebook() -> None:
    parsed = parse(json.dumps(NOTEBOOK).encode(), "a.ipynb")
    assert parsed.title == "Tides"
    assert blocks(parsed) == [
        ("heading", "# Tides"),
        ("paragraph", "They *rise*."),
        ("code", "rise(3)"),
        ("code", "3 metres"),
        ("code", "42"),
        ("code", "ValueError: too high"),
    ]


def test_an_old_notebook_and_one_that_is_none() -> None:
    cells = [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": "1"}]
    old = {"worksheets": [{"cells": cells}]}
    assert blocks(parse(json.dumps(old).encode(), "a.ipynb")) == [("heading", "Old"), ("code", "1")]
    with pytest.raises(ParseError, match="not a notebook"):
        parse(b"{", "a.ipynb")


SRT = """\
1
00:00:01,000 --> 00:00:03,000
<i>The ferry</i>

2
00:00:03,000 --> 00:00:05,500
{\\an8}leaves at nine.

3
00:02:10,000 --> 00:02:12,000
It is late.
"""
VTT = """\
WEBVTT - talk

NOTE for writers

STYLE
::cue { color: red }

intro
00:01.000 --> 00:03.000 align:start
<v Ann>The ferry &amp; I</v>

00:03.000 --> 00:05.000
The ferry &amp; I
leave.
"""


def test_subtitles_are_sentences_under_their_time() -> None:
    assert blocks(parse(SRT.encode(), "a.srt")) == [
        ("heading", "00:00:01"),
        ("paragraph", "The ferry leaves at nine."),
        ("heading", "00:02:10"),
        ("paragraph", "It is late."),
    ]
    parsed = parse(VTT.encode(), "a.vtt")
    assert parsed.media_type == "text/vtt"
    assert blocks(parsed) == [("heading", "00:00:01"), ("paragraph", "Ann: The ferry & I The ferry & I leave.")]


def test_a_file_packed_by_gzip_is_what_it_holds() -> None:
    page = gzip.compress(b".TH FERRY 1\n.SH NAME\nferry \\- cross\n")
    assert parse(page, "ferry.1.gz").title == "FERRY(1)"
    with pytest.raises(ParseError, match="damaged gzip"):
        parse(page[:-9], "ferry.1.gz")
    with pytest.raises(ParserLimit, match="more than 1 MB"):
        parse(gzip.compress(bytes(5_000_000)), "bomb.1.gz", ParseOptions(unpacked_mb=1))
    with pytest.raises((ParseError, UnsupportedFormat)):
        parse(gzip.compress(page), "twice.gz.gz")

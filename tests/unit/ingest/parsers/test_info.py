"""Info manuals: what makeinfo writes around the text is left out, and its NUL marks do not make it binary."""

from __future__ import annotations

import pytest

from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

MANUAL = b"""This is ferry.info, produced by makeinfo version 6.8 from ferry.texi.

INFO-DIR-SECTION Boats
START-INFO-DIR-ENTRY
* Ferry: (ferry).    Crossing
END-INFO-DIR-ENTRY

\x1f
File: ferry.info,  Node: Top,  Next: Fares,  Up: (dir)

The Ferry
*********

Crosses the bay.\x00\x08[image src="a.png" alt="boat"\x00\x08]

* Menu:

* Fares::             What it costs
                      on weekdays
* Crew::              Who sails

   Ask the crew.

\x1f
File: ferry.info,  Node: Fares,  Prev: Top,  Up: Top

1 Fares
=======

A ticket is 4 francs (*note Crew::).  *Note The
desk: Crew, too.

'-r'
'--return'
     There and back.

     Valid for a day.

\x1f
File: ferry.info,  Node: Index,  Prev: Fares,  Up: Top

Index
*****

\x00\x08[index\x00\x08]
* Menu:

* francs:      Fares.   (line  6)

\x1f
Tag Table:
Node: Top\x7f210
\x1f
End Tag Table

\x1f
Local Variables:
coding: iso-8859-1
End:
"""


@pytest.mark.req("R-EXT-08")
@pytest.mark.parametrize("name", ["ferry.info", "ferry.info.txt", "ferry"])
def test_a_manual_is_read_without_menus_indexes_and_tables(name: str) -> None:
    parsed = parse(MANUAL, name)
    assert broken_rules(parsed) == []
    assert (parsed.media_type, parsed.title) == ("text/x-info", "The Ferry")
    assert parsed.text == (
        "The Ferry\n\nCrosses the bay.\n\nAsk the crew.\n\n1 Fares\n\n"
        "A ticket is 4 francs (see Crew).  See The\ndesk, too.\n\n"
        "'-r', '--return'\n  There and back.\n\n  Valid for a day.\n\nIndex"
    )
    assert [(block.level, block.label) for block in parsed.blocks if block.kind == "heading"] == [
        (1, "The Ferry"),
        (2, "1 Fares"),
        (1, "Index"),
    ]


def test_letters_are_read_in_the_encoding_that_the_manual_names() -> None:
    parsed = parse(MANUAL.replace(b"Ask the crew.", b"Ask Ren\xe9."), "ferry.info")
    assert "Ask René." in parsed.text

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import pytest

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

MARKUP = re.compile(r"`|::$|<<|>>|^\[|^={2,}|^\+$|\{[a-z-]+\}|include::|\[\[", re.MULTILINE)


def read(source: str, name: str = "page.adoc") -> Parsed:
    parsed = parse(source.encode(), name)
    assert broken_rules(parsed) == []
    return parsed


def blocks(source: str) -> list[tuple[str, str]]:
    parsed = read(source)
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


PAGE = """\
// for writers
= Harbour *rules*
Ann Keeper <ann@example.org>
:fee: 12 euros
:toc:

The fee is {fee} for a `boat`, _always_. See <<mooring,how to moor>>, link:map.html[the map],
https://example.org/tides[tides] and linkgit:git-add[1].

[[mooring]]
== Mooring

ifdef::backend[]
include::secret.txt[]
endif::[]

Keep right.footnote:[Since 1990.] +
Press kbd:[Enter].

=== Night

NOTE: Lights **on**.

[WARNING]
.High tide
====
Wait.

* or go
** slowly
* home
====

.Paying
[source,python]
----
pay(12) # <1>
----
<1> Once.

Then:

 indented code
   stays

____
Said so.
____

////
unseen
////

++++
<b>raw</b>
++++
"""


def test_a_page_reads_as_it_is_built() -> None:
    parsed = read(PAGE)
    assert parsed.title == "Harbour rules"
    assert parsed.media_type == "text/asciidoc"
    assert not MARKUP.search(parsed.text)
    assert blocks(PAGE) == [
        ("heading", "Harbour rules"),
        ("paragraph", "The fee is 12 euros for a boat, always. See how to moor, the map, tides and git-add(1)."),
        ("heading", "Mooring"),
        ("paragraph", "Keep right. (Since 1990.) Press Enter."),
        ("heading", "Night"),
        ("paragraph", "Note: Lights on."),
        ("paragraph", "Warning: High tide: Wait."),
        ("list", "- or go\n  - slowly\n- home"),
        ("paragraph", "Paying"),
        ("code", "pay(12) #"),
        ("list", "1. Once."),
        ("paragraph", "Then:"),
        ("code", "indented code\n  stays"),
        ("paragraph", "Said so."),
    ]
    assert [block.level for block in parsed.blocks if block.kind == "heading"] == [1, 2, 3]


TERMS = """\
OPTIONS
-------
-n::
--dry-run::
\tDo *nothing*; only say
\twhat would be done.
+
The default is `off`.
+
----
moor -n
----

'<path>'...::
  Where to look:
+
--
* here
* there
--

depth;; how deep it is

port::

The number of a port.

After the list.

. First
. Second
+
with more
"""


def test_a_term_is_one_block_with_its_description() -> None:
    assert blocks(TERMS) == [
        ("heading", "OPTIONS"),
        ("list", "-n, --dry-run\n  Do nothing; only say what would be done.\n\n  The default is off.\n\n  moor -n"),
        ("list", "<path>...\n  Where to look:\n\n  - here\n  - there\n\n  depth\n    how deep it is"),
        ("list", "port\n  The number of a port."),
        ("paragraph", "After the list."),
        ("list", "1. First\n2. Second\n  with more"),
    ]


@pytest.mark.parametrize(
    "table",
    [
        '.Berths\n[cols="1,2",options="header"]\n|===\n|Boat |Berth\n|Ada\n|4\n|===\n',
        ".Berths\n|===\n|Boat |Berth\n\n|Ada |`4`\n|===\n",
        ".Berths\n,===\nBoat,Berth\nAda,4\n,===\n",
        '.Berths\n[cols="2*"]\n|===\n|Boat\n|Berth\na|Ada\n|4\n|===\n',
    ],
)
def test_a_table_is_a_table(table: str) -> None:
    assert blocks(table) == [("table", "Berths\n| Boat | Berth |\n| --- | --- |\n| Ada | 4 |")]


def test_a_page_cannot_read_another_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("sesame\n")
    assert "sesame" not in read(f"= T\n\nBefore.\n\ninclude::{secret}[]\n\nimage::{secret}[alt]\n").text


@pytest.mark.parametrize("name", ["page.txt", "page", "page.asc", "page.asciidoc"])
def test_the_markup_is_known_without_its_suffix(name: str) -> None:
    assert read(PAGE, name).media_type == "text/asciidoc"


@pytest.mark.parametrize(
    "prose",
    [
        "Minutes\n=======\n\nWe met at 9:00.\n\nNext time\n---------\n\nBring [tools].\n",
        "-----BEGIN PGP SIGNATURE-----\n\nwords of it\n-----END PGP SIGNATURE-----\n",
        "[section]\nkey=value\n\n[other]\nkey=value\n",
    ],
)
def test_other_text_is_not_taken_for_it(prose: str) -> None:
    assert parse(prose.encode(), "a.asc" if "PGP" in prose else "a.txt").media_type == "text/plain"


HOSTILE = {
    "marks": "= T\n\n" + "*a _b `c #d ^e ~f <<g {h} link:i[ " * 5_000,
    "lists": "= T\n\n" + "".join(f"{'*' * (n % 6 + 1)} x\n" for n in range(10_000)),
    "terms": "= T\n\n" + "a::\n" * 10_000,
    "delimiters": "= T\n\n" + "".join(f"{'=' * (4 + n % 50)}\n" for n in range(5_000)),
    "blocks": "= T\n\n" + "--\n====\n****\n____\n" * 2_000,
    "tables": "= T\n\n|===\n" + "|a " * 30_000,
    "spans": "= T\n\n|===\n" + "99+|a\n" * 5_000,
    "attributes": "".join(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}x\n" for n in range(300)) + "\n" + "{a299}" * 10_000,
    "continued": "= T\n\n* x\n" + "+\n" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_in_time(name: str) -> None:
    began = process_time()
    parsed = parse(HOSTILE[name].encode(), "page.adoc")
    assert process_time() - began < 3
    assert broken_rules(parsed) == []

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import pytest

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.markup import rst_reader

MARKUP = re.compile(r"``|:[a-z:]+:`|^\.\. |`_|\|\w+\||::$", re.MULTILINE)


def read(source: str, name: str = "page.rst") -> Parsed:
    parsed = parse(source.encode(), name)
    assert broken_rules(parsed) == []
    return parsed


def blocks(source: str) -> list[tuple[str, str]]:
    parsed = read(source)
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


PAGE = """\
.. This comment is for writers.
.. _harbour:

============
Harbour rules
============

:Author: nobody

Boats keep *right* of the ``--pier``. See :ref:`the tide table <tides>`, `the map <https://example.org>`_
and |club|. [1]_

.. |club| replace:: the rowing club
.. [1] Since 1990.

Mooring
=======

.. setting:: MOORING_FEE

Fees
----

Default: ``12`` euros.

.. note:: Paid at :file:`/etc/{pier}`.

.. versionadded:: 2.4
   The fee can be waived.

.. code-block:: python
   :linenos:

   pay(12)
"""


def test_a_page_reads_as_it_is_built() -> None:
    parsed = read(PAGE)
    assert parsed.title == "Harbour rules"
    assert parsed.media_type == "text/x-rst"
    assert not MARKUP.search(parsed.text)
    assert [(block.label, block.level) for block in parsed.blocks if block.kind == "heading"] == [
        ("Harbour rules", 1),
        ("Mooring", 2),
        ("Fees", 3),
    ]
    assert "Boats keep right of the --pier. See the tide table, the map and the rowing club." in parsed.text
    assert "Note: Paid at /etc/pier." in parsed.text
    assert "Added in version 2.4: The fee can be waived." in parsed.text
    assert "writers" not in parsed.text
    assert "MOORING_FEE" not in parsed.text
    assert parsed.text.endswith("pay(12)")


GRID = """\
+------+-------+
| Boat | Berth |
+======+=======+
| Ada  | 4     |
+------+-------+
"""
SIMPLE = """\
====  =====
Boat  Berth
====  =====
Ada   4
====  =====
"""
LIST = """\
.. list-table:: Berths
   :header-rows: 1

   * - Boat
     - Berth
   * - Ada
     - 4
"""
CSV = """\
.. csv-table:: Berths
   :header: Boat, Berth

   Ada, 4
"""


@pytest.mark.parametrize(("source", "caption"), [(GRID, ""), (SIMPLE, ""), (LIST, "Berths\n"), (CSV, "Berths\n")])
def test_every_kind_of_table_becomes_the_same_table(source: str, caption: str) -> None:
    assert blocks(source) == [("table", f"{caption}| Boat | Berth |\n| --- | --- |\n| Ada | 4 |")]


TERMS = """\
anchor : iron
   Holds the boat.

   Two of them hold better.

--rope N   Length of the rope.
-v         Say more.

.. option:: --wait SECONDS, -w SECONDS

   Wait so long. The default is ``30``.

.. confval:: berths
   :type: int

   How many there are.

.. py:class:: Pier(name)

   A place for boats.

   .. py:method:: close(reason=None)

      Close it.

   .. attribute:: Pier.length

.. tide-gauge:: North
   :unknown: 1

   Shows the level.

:param depth: how deep it is
:returns: nothing
"""


def test_a_term_is_one_block_with_its_description() -> None:
    assert blocks(TERMS) == [
        ("list", "anchor (iron)\n  Holds the boat.\n\n  Two of them hold better."),
        ("list", "--rope N\n  Length of the rope."),
        ("list", "-v\n  Say more."),
        ("list", "--wait SECONDS, -w SECONDS\n  Wait so long. The default is 30."),
        ("list", "berths\n  How many there are."),
        ("list", "Pier(name)\n  A place for boats."),
        ("list", "Pier.close(reason=None)\n  Close it."),
        ("paragraph", "Pier.length"),
        ("paragraph", "North"),
        ("paragraph", "Shows the level."),
        ("list", "depth: how deep it is\nreturns: nothing"),
    ]


NOTES = """\
.. warning::

   High tide.

   - Wait.
   - Or go.

     Slowly.

.. seealso:: :doc:`/tides/index`, :pep:`8`, :meth:`~pier.Pier.close` and :kbd:`Ctrl+C`

.. admonition:: For crews

   Ask first.

.. deprecated:: 3.1

.. toctree::
   :maxdepth: 2

   tides
   fees

.. index:: boats; pier

.. only:: html

   Seen by all.
"""


def test_notes_keep_their_kind_and_what_is_for_tools_goes() -> None:
    assert blocks(NOTES) == [
        ("paragraph", "Warning: High tide."),
        ("list", "- Wait.\n- Or go.\n  Slowly."),
        ("paragraph", "See also: tides/index, PEP 8, close and Ctrl+C"),
        ("paragraph", "For crews: Ask first."),
        ("paragraph", "Deprecated since version 3.1."),
        ("paragraph", "Seen by all."),
    ]


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: {}",
        ".. include:: {}\n   :literal:",
        ".. literalinclude:: {}",
        ".. raw:: html\n   :file: {}",
        ".. csv-table::\n   :file: {}",
        ".. csv-table::\n   :url: file://{}",
        ".. figure:: {}",
        ".. |x| image:: {}",
    ],
)
def test_a_page_cannot_read_another_file(directive: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("sesame,opens\n")
    assert "sesame" not in read(f"Before.\n\n{directive.format(secret)}\n\nAfter.\n").text


RAW = """\
One.

.. raw:: html

   <script>evil()</script>

.. role:: raw-html(raw)
   :format: html

Two :raw-html:`<br>` three.
"""


def test_raw_html_is_not_text() -> None:
    assert blocks(RAW) == [("paragraph", "One."), ("paragraph", "Two three.")]


def test_what_cannot_be_parsed_is_kept() -> None:
    broken = "+---+---+\n| a | b |\n+---+\n| c |\n+---+---+\n\nAn *open mark and :broken: words.\n"
    parsed = read(broken)
    assert "| a | b |" in parsed.text
    assert "An *open mark and :broken: words." in parsed.text


@pytest.mark.parametrize("name", ["page.rst.txt", "page.txt", "page"])
def test_the_markup_is_known_without_its_suffix(name: str) -> None:
    assert read(PAGE, name).media_type == "text/x-rst"


@pytest.mark.parametrize(
    "prose",
    [
        "Minutes\n=======\n\nWe met at 9:00.\n\nNext time\n---------\n\nSee the `notes`.\n",
        "# Title\n\nSome `code` here\n\n```\n.. x::\n```\n",
        "A list::\n\n  of words\n\nand nothing more.\n",
    ],
)
def test_other_text_is_not_taken_for_it(prose: str) -> None:
    assert parse(prose.encode(), "a.txt").media_type == "text/plain"


HOSTILE = {
    "nested quotes": "".join(" " * depth + "x\n\n" for depth in range(400)),
    "nested lists": "".join("  " * depth + "- x\n\n" for depth in range(300)),
    "open marks": "*a `b ``c |d " * 20_000,
    "marks by line": "*a `b ``c |d\n" * 20_000,
    "substitutions": "".join(f".. |a{n}| replace:: {f'|a{n + 1}| ' * 20}\n" for n in range(300)) + "\n|a0|\n",
    "grid": ("+" + "-+" * 300 + "\n") + ("|" + "x|" * 300 + "\n+" + "-+" * 300 + "\n") * 150,
    "targets": "".join(f".. _t{n}: t{n + 1}_\n" for n in range(3000)) + "\nt0_\n",
    "titles": "".join(f"T{n}\n{mark * 4}\n\n" for n, mark in enumerate("=-~^\"'+*#.:" * 100)),
    "footnotes": "[#]_ " * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rst_reader, "SECONDS", 1.0)
    began = process_time()
    parsed = parse(HOSTILE[name].encode(), "page.rst")
    assert process_time() - began < 3
    assert broken_rules(parsed) == []


def test_a_page_that_took_too_long_is_read_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rst_reader, "SECONDS", -1.0)
    parsed = read("Title\n=====\n\nWords.\n")
    assert parsed.text == "Title\n=====\n\nWords."
    assert parsed.warnings == ("read as plain text, not as reStructuredText: it took too long",)


def test_what_a_page_adds_to_the_words_of_a_program_is_read() -> None:
    page = """\
Ferry
=====

.. automodule:: ferry

   .. attribute:: DECKS

      How many decks there are.

   .. autofunction:: leave

.. autoclass:: Ferry(name)
   :members:

   For example:

   .. doctest::

      >>> Ferry("Sula")

   .. automethod:: sink

      Never do this.

.. autoclass:: Raft
   :members:

   .. automethod:: float
"""
    parsed = parse(page.encode(), "api.rst")
    assert parsed.text.split("\n\n", 1)[1] == (
        "DECKS\n  How many decks there are.\n\n"
        'Ferry(name)\n  For example:\n\n  >>> Ferry("Sula")\n\n'
        "Ferry.sink\n  Never do this."
    )


def test_lines_of_chinese_go_on_without_a_space() -> None:
    assert parse("渡轮每小时\n出发 *一\n次* 。\n\n- 冬季\n  时刻表\n".encode(), "page.rst").text == (
        "渡轮每小时出发 一次 。\n\n- 冬季时刻表"
    )

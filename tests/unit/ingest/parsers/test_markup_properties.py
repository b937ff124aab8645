"""Whatever order markup comes in, a parser ends in time with blocks that are in order, and loses no plain word."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

PIECES = {
    "rst": "\n|\n\n|  |.. note::|.. option:: -x|====|----|- |1. |*|**|``|`a <b>`_|:ref:`|+--+|::|.. |.. _a:|[1]_",
    "adoc": "\n|\n\n|  |= |== |----|====|--|+|a::|* |** |. |NOTE: |[source]|.T|{a}|:a: b|``|<<|>>|link:x[|]|,===|////",
    "1": "\n|\n.SH |\n.TP\n|\n.IP |\n.RS\n|\n.RE\n|\n.nf\n|\n.fi\n"
    "|\n.Bl -tag\n|\n.It |\n.El\n|\n.Op |Fl |\\fB|\\(|\\*(|\n.TS\n|\n.TE\n|\n.if n |\\{|\\}|\n.de a\n|\n..\n|\t",
    "org": "\n|\n\n|  |* |** |- |- a :: |1. |#+begin_src\n|#+end_src\n|:A:\n|:END:\n|[[a][b]]|=|~|#+TITLE: ",
    "srt": "\n|\n\n|1\n|00:00:01,000 --> 00:00:02,000\n|<i>|WEBVTT\n",
}  # fmt: skip
STARTS = {"1": ".TH A 1\n.SH B\n"}
KINDS = [(suffix, [piece for piece in pieces.split("|") if piece]) for suffix, pieces in PIECES.items()]


@pytest.mark.parametrize(("suffix", "pieces"), KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_order_of_marks_is_read(suffix: str, pieces: list[str], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.sampled_from([*pieces, "harbour ", "boat. "]), max_size=40))
    source = STARTS.get(suffix, "") + "".join(drawn)
    began = process_time()
    try:
        parsed = parse(source.encode(), f"a.{suffix}")
    except EmptyDocument:
        return
    assert process_time() - began < 2
    assert broken_rules(parsed) == []


@pytest.mark.parametrize("suffix", ["rst", "adoc", "org"])
@given(words=st.lists(st.sampled_from(["harbour", "boat", "pier", "tide", "rope", "anchor"]), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_plain_words_stay_as_they_are(suffix: str, words: list[str]) -> None:
    text = " ".join(words)
    assert parse(text.encode(), f"a.{suffix}").text == text

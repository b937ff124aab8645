"""Sentence boundaries: what ends one, what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.language.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Prof. Jones. They spoke.", ["Dr. Smith met Prof. Jones.", "They spoke."]),
        ("Use one, e.g. Redis. It works.", ["Use one, e.g. Redis.", "It works."]),
        ("Lee et al. Nature 2020. Done.", ["Lee et al. Nature 2020.", "Done."]),
        ("As shown by Lee et al. This is new.", ["As shown by Lee et al.", "This is new."]),
        ("See Fig. 2 and Eq. 3. Good.", ["See Fig. 2 and Eq. 3.", "Good."]),
        ("Take 3.5 mg. Then rest.", ["Take 3.5 mg.", "Then rest."]),
        ("J. R. Tolkien wrote it.", ["J. R. Tolkien wrote it."]),
        ("They took vitamin C. The dose was low.", ["They took vitamin C.", "The dose was low."]),
        ("Solve for x. Done. See b. 5 there.", ["Solve for x.", "Done.", "See b. 5 there."]),
        ("Version v1.2.3 is out. Upgrade.", ["Version v1.2.3 is out.", "Upgrade."]),
        ("Go to https://a.example/b.html?c=1. Read it.", ["Go to https://a.example/b.html?c=1.", "Read it."]),
        ("Wait... What? Fine.", ["Wait...", "What?", "Fine."]),
        ("She left… Then it rained.", ["She left…", "Then it rained."]),
        ('"Yes!" he said. "No." She left.', ['"Yes!" he said.', '"No."', "She left."]),
        ("(It is so.) And [this too.] Yes.", ["(It is so.)", "And [this too.]", "Yes."]),
        ("It is No. 5. No. We go.", ["It is No. 5.", "No.", "We go."]),
        ("In the U.S. Army. In the U.S. The law.", ["In the U.S. Army.", "In the U.S.", "The law."]),
        ("1. Introduction to things", ["Introduction to things"]),
        ("It grew by 12 approx. two days later.", ["It grew by 12 approx. two days later."]),
        ("Call it. moduleControllerCreate makes one.", ["Call it.", "moduleControllerCreate makes one."]),
        ("今日は。元気ですか？「はい。」そう", ["今日は。", "元気ですか？", "「はい。」", "そう"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
    ],
)
def test_stops(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


WRAPPED = (
    "Use a store, e.g.\nredis or a file.",
    "It grew by approx.\ntwo metres.",
    "Pens, ink, etc.\nare sold by Hill Corp.\nand others.",
    "It costs misc.\nfees in the U.S.\nand on the 3.\nmai, says J.\nsmith.",
    'She said "stop."\nand left...\nthen came back.',
    "What?\nhe asked.",
)
"""Sentences that a line break behind a stop does not end."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A line\nthat wraps. Next", ["A line\nthat wraps.", "Next"]),
        ("- Ann pays refunds.\ntimeout exits with 124.", ["Ann pays refunds.", "timeout exits with 124."]),
        ("It is well-known. \r\ncron runs.", ["It is well-known.", "cron runs."]),
        ("It exits with 124.\ncron runs `rm`.\nls is next", ["It exits with 124.", "cron runs `rm`.", "ls is next"]),
        *((text, [text]) for text in WRAPPED),
        ("No stop\n\nNew paragraph", ["No stop", "New paragraph"]),
        ("No stop\r\n\r\nNew paragraph", ["No stop", "New paragraph"]),
        ("# Title\nBody text", ["Title", "Body text"]),
        ("Title\n=====\nBody text", ["Title\n=====", "Body text"]),
        ("Intro:\n- one\n  goes on\n- two\n3) three", ["Intro:", "one\n  goes on", "two", "three"]),
        ("> Quoted. More", ["Quoted.", "More"]),
        ("| a | b |\n| c. D | d |", ["| a | b |", "| c. D | d |"]),
        ("Run:\n```sh\nls\n```\nThen go", ["Run:", "```sh", "ls", "```", "Then go"]),
    ],
)
def test_lines(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("", []), (" \n\t\n ", []), (".", ["."]), ("- ", ["-"]), ("a", ["a"])])
def test_almost_nothing(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@settings(deadline=None)
@given(st.text(alphabet="aB1 .!?\n-#>|'\"()。\t*", max_size=200))
def test_spans_are_ordered_and_only_marks_lie_outside(text: str) -> None:
    position = 0
    for start, end in sentence_spans(text):
        assert position <= start < end
        assert text[start:end] == text[start:end].strip()
        assert not any(char in "aB" for char in text[position:start] if "a)" not in text and "B)" not in text)
        position = end
    assert not text[position:].strip()


@pytest.mark.parametrize("piece", [".", ". ", "a.", "(", "\n", "- \n", "> ", ".'", "#", "Dr. ", "1. ", "```\n"])
def test_a_long_hostile_text_is_covered(piece: str) -> None:
    text = piece * 20_000
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert not text[spans[-1][1] :].strip() if spans else not text.strip()

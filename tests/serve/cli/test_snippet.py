from __future__ import annotations

import pytest

from ragstone.serve.cli.render.snippet import Snippet, snippet


def _marked(short: Snippet) -> list[str]:
    return [short.text[start:end] for start, end in short.marks]


def test_a_short_passage_is_shown_whole() -> None:
    short = snippet("A dog travels\nfor two crowns.", "dogs")
    assert short.text == "A dog travels for two crowns."
    assert _marked(short) == ["dog"]


def test_words_are_marked_by_their_stem_and_in_identifiers() -> None:
    short = snippet("Call moduleControllerCreate when connecting; connections drop.", "connect controller")
    assert _marked(short) == ["moduleControllerCreate", "connecting", "connections"]


@pytest.mark.parametrize("padding", ["lorem ipsum " * 100, "x" * 1200 + " "])
def test_the_window_is_where_the_words_are(padding: str) -> None:
    short = snippet(f"{padding}The lighthouse was painted in 1931. {padding}", "when was the lighthouse painted")
    assert "lighthouse was painted" in short.text
    assert _marked(short) == ["lighthouse", "painted"]
    assert short.text.startswith("… ")
    assert short.text.endswith(" …")
    assert len(short.text) <= 244


def test_the_window_holds_as_many_words_as_it_can() -> None:
    text = "dog " + "and " * 100 + "a dog in a boat " + "and " * 100
    assert "dog in a boat" in snippet(text, "dog boat").text


def test_the_window_is_rather_where_all_words_are_than_where_one_is_often() -> None:
    rows = " ".join(f"| T-{number} | {number * 7} litres |" for number in range(100, 160))
    short = snippet(f"tank tank tank tank {rows}", "tank T-148 litres")
    assert "T-148" in short.text
    assert [word for word in _marked(short) if word.startswith("T-")] == ["T-148"]


def test_a_passage_without_the_words_is_shown_from_its_start() -> None:
    short = snippet("one two three " * 50, "zebra")
    assert short.text.startswith("one two three")
    assert short.marks == ()


def test_markup_and_a_repeated_heading_are_left_out() -> None:
    short = snippet("## Dogs\n\nA **dog** pays `two` crowns.", "pays", heading="Dogs")
    assert short.text == "A dog pays two crowns."
    assert snippet("## Dogs", "pays", heading="Dogs").text == "Dogs"

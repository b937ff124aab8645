"""Where a text may be cut."""

from __future__ import annotations

import pytest

from ragstone.ingest.chunkers.cutting import is_between_characters, is_between_words, last_cut, next_word


@pytest.mark.parametrize(
    ("text", "places"), [("ab cd", [0, 2, 3, 5]), ("東京x", [0, 1, 2, 3]), ("か\u3099き\u3099", [0, 2, 4])]
)
def test_between_words(text: str, places: list[int]) -> None:
    assert [place for place in range(len(text) + 1) if is_between_words(text, place)] == places


@pytest.mark.parametrize(
    ("text", "places"), [("abc", [1, 2]), ("e\u0301x", [2]), ("👩\u200d👧x", [3]), ("🇫🇷🇩🇪", [2]), ("👍🏽x", [2])]
)
def test_between_characters(text: str, places: list[int]) -> None:
    assert [place for place in range(1, len(text)) if is_between_characters(text, place)] == places


def test_a_cut_falls_between_words_then_between_characters_then_anywhere() -> None:
    assert last_cut("one two", 6, 0) == 4
    assert last_cut("e\u0301" * 10, 9, 0) == 8
    assert last_cut("a" + "\u0301" * 50, 40, 0) == 40


def test_a_word_is_found_before_the_ceiling_or_not_at_all() -> None:
    assert next_word("one two three", 1, 8) == 4
    assert next_word("one two", 5, 7) == 7

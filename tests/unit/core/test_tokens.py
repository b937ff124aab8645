"""Counting without a model's tokenizer."""

from __future__ import annotations

import pytest

from ragstone.core.model_types import WordTokenizer


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n", []),
        ("one two", ["one", "two"]),
        ("Don't, 3.5!", ["Don", "'", "t", ",", "3", ".", "5", "!"]),
        ("naïve 日本", ["naïve", "日", "本"]),
        ("internationalisation", ["internat", "ionalisa", "tion"]),
    ],
)
def test_words_and_marks_are_tokens(text: str, tokens: list[str]) -> None:
    tokenizer = WordTokenizer()
    assert [text[start:end] for start, end in tokenizer.offsets(text)] == tokens
    assert tokenizer.name == "words"

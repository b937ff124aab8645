"""Counting tokens when no model's own tokenizer is at hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A letter of a script without blanks is about a token, and so is every eight letters of one endless word.
WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,8}|[^\w\s]"
)


class WordTokenizer:
    """Words and punctuation marks: close to a word-piece count for English, exact nowhere."""

    name = "words"

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        return [match.span() for match in WORD.finditer(text)]

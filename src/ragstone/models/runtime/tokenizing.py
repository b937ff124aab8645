"""Text to token ids, with the model's own tokenizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ragstone.core.errors import ModelError

# Texts come in batches from threads of our own; the library's pool would fight the model for the cores
# and warns after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class ModelTokenizer:
    """A model's tokenizer: `offsets` for chunkers, ids for the model. Safe from several threads."""

    def __init__(self, name: str, definition: bytes) -> None:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_buffer(definition)
        except Exception as error:  # The library raises bare Exception for what it cannot read.
            raise ModelError(f"the tokenizer of {name} cannot be read: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.name = name
        self.padding = _padding_id(tokenizer)

    @cached_property
    def brackets(self) -> tuple[int, int]:
        """The special tokens before and after a text."""
        special = self._tokenizer.encode("").ids
        if len(special) != 2:
            raise ModelError(f"the tokenizer of {self.name} does not put one token before and one after a text")
        return special[0], special[1]

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the span of each token in characters, special tokens left out."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def ids(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Ids of each text without special tokens; None for a text that cannot be tokenised."""
        try:
            return self._ids(texts)
        except (TypeError, ValueError):  # One text that is not valid Unicode fails the whole batch.
            return [self._ids_or_none(text) for text in texts]

    def pairs(self, query: str, passages: Sequence[str], longest: int) -> list[tuple[list[int], list[int]]]:
        """Ids and type ids of (query, passage); only the passage is cut, unless the query alone is too long."""
        query = self._shorten(query, longest // 2)
        encodings = self._tokenizer.encode_batch([(query, passage) for passage in passages])
        return [self._cut_pair(encoding, longest) for encoding in encodings]

    def _ids(self, texts: Sequence[str]) -> list[list[int] | None]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _ids_or_none(self, text: str) -> list[int] | None:
        try:
            return self._ids([text])[0]
        except (TypeError, ValueError):
            return None

    def _shorten(self, text: str, tokens: int) -> str:
        offsets = self.offsets(text)
        return text if len(offsets) <= tokens else text[: offsets[tokens - 1][1]]

    def _cut_pair(self, encoding: Any, longest: int) -> tuple[list[int], list[int]]:
        ids, types = encoding.ids, encoding.type_ids
        if len(ids) <= longest:
            return ids, types
        # The passage stands last, before one end token: cutting there leaves the query whole.
        return [*ids[: longest - 1], ids[-1]], [*types[: longest - 1], types[-1]]


def _padding_id(tokenizer: Any) -> int:
    for token in ("<pad>", "[PAD]"):
        found = tokenizer.token_to_id(token)
        if found is not None:
            return int(found)
    return 0

"""Context for a model: the best passages first, whole, within a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.answer.sanitize import has_address, sanitize, strip_hidden, unlink
from ragstone.core.protocols import Tokenizer
from ragstone.core.types import Hit
from ragstone.language.sentences import sentence_spans

_MAX_VALUE_CHARS = 200
_MAX_METADATA = 8
_DELIMITER = re.compile(r"<(?=\s*/?\s*passage)", re.I)
_OWN_MARK = re.compile(r"[\[【]\s*(\d[\d,;\s–-]{0,40})[\]】]")


@dataclass(frozen=True, slots=True)
class PackedPassage:
    """A numbered hit as a model sees it; `hit` is the untouched original."""

    number: int
    hit: Hit
    rendered: str
    tokens: int


def pack(hits: Sequence[Hit], limit: int, tokenizer: Tokenizer) -> list[PackedPassage]:
    """Number hits in the order given and keep those that fit whole.

    A hit that does not fit leaves room for a smaller one behind it. Only when the very first is too long by
    itself is it shortened, at the end of a sentence.
    """
    packed: list[PackedPassage] = []
    left = limit
    for hit in hits:
        passage = _passage(len(packed) + 1, hit, hit.text, tokenizer)
        if passage.tokens > left and not packed:
            passage = _shorten(hit, left, tokenizer) or passage
        if passage.tokens <= left:
            packed.append(passage)
            left -= passage.tokens
    return packed


def _passage(number: int, hit: Hit, text: str, tokenizer: Tokenizer) -> PackedPassage:
    facts = "".join(f' {name}="{value}"' for name, value in _facts(hit))
    columns = f"{_escape(hit.table_head.text)}\n" if hit.table_head else ""
    rendered = f'<passage number="{number}"{facts}>\n{columns}{_escape(text)}\n</passage>'
    return PackedPassage(number, hit, rendered, len(tokenizer.offsets(rendered)))


def _shorten(hit: Hit, limit: int, tokenizer: Tokenizer) -> PackedPassage | None:
    """Return the longest run of whole sentences from the start of the hit that fits, found by halving."""
    ends = [end for _, end in sentence_spans(hit.text)]
    best = None
    low, high = 0, len(ends) - 1
    while low <= high:
        middle = (low + high) // 2
        passage = _passage(1, hit, hit.text[: ends[middle]], tokenizer)
        if passage.tokens <= limit:
            best, low = passage, middle + 1
        else:
            high = middle - 1
    return best


def _facts(hit: Hit) -> list[tuple[str, str]]:
    """Return what a model should know about where a passage is from."""
    named = {"title": hit.title, "section": hit.section, "page": "" if hit.page is None else str(hit.page)}
    others = {
        name: str(value)
        for name, value in hit.metadata.items()
        if name not in named and isinstance(value, str | int | float)
    }
    facts = [*named.items(), *list(others.items())[:_MAX_METADATA]]
    return [(_word(name), _value(value)) for name, value in facts if value and not has_address(value)]


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name)[:40]


def _value(value: str) -> str:
    return _escape(sanitize(value)[:_MAX_VALUE_CHARS]).replace('"', "'").replace(">", "›")


def _escape(text: str) -> str:
    """Return text that cannot end its passage, pose as a citation mark or hide anything."""
    visible = unlink(strip_hidden(text))
    return _OWN_MARK.sub(r"(\1)", _DELIMITER.sub("‹", visible))

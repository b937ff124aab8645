"""Tables: the row that names the columns goes with every part of one that had to be cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ragstone.core.types import Block

_RULE = re.compile(r"[ \t|:+=-]*-[ \t|:+=-]*")
_CAPTION_AND_NAMES = 3
"""How many lines may go by until the one that names the columns."""
_LONGEST_HEADER = 400


def header_of(text: str, table: Block) -> tuple[int, str]:
    """Where a table's head ends, and its words: caption, names of the columns, the rule under them."""
    ends = list(islice(_line_ends(text, table), _CAPTION_AND_NAMES + 1))
    barred = (number for number, end in enumerate(ends) if "|" in text[table.start : end])
    names = next(barred, 0) % _CAPTION_AND_NAMES
    below = names + 1
    if below < len(ends) and _RULE.fullmatch(text[ends[names] + 1 : ends[below]][:_LONGEST_HEADER]):
        names = below
    return ends[names], text[table.start : ends[names]][:_LONGEST_HEADER]


def _line_ends(text: str, table: Block) -> Iterator[int]:
    end = table.start - 1
    while end < table.end:
        found = text.find("\n", end + 1, table.end)
        end = table.end if found < 0 else found
        yield end

"""The frame of an article: what stands between its checked sentences and says nothing by itself.

Only sentences are checked. A heading, a question, a row of a table or a few words without a verb could state something
all the same, so they stay only where they say no more than the sentences that hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from ragstone.language.analyzer import analyze
from ragstone.language.grammar import first_verb, tokenize

MOST_HEADING_CHARS = 120
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+(\S.*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t]*")
_BLOCK = re.compile(r"[ \t>]*(?:```|~~~|\||<|!\[|\[[^\]]*\]:)")
"""Code, tables, pictures, tags and addresses of links."""
_SAYS = re.compile(r"\w")
_PLAIN = frozenset(
    analyze(
        "introduction overview background summary conclusion history context details example examples more about "
        "next steps what why how when where who further reading key points questions answers basics use limits"
    )
)
_FEWEST_WORDS = 4
"""Words of a heading that may be a sentence."""


def known_terms(texts: Iterable[str]) -> frozenset[str]:
    """Return the terms that headings may have: those of the topic, of what holds and of its sources."""
    return frozenset(term for text in texts for term in analyze(text)) | _PLAIN


def keep_frame(text: str, known: AbstractSet[str]) -> str:
    """Return what may stay of a text between two checked sentences: blanks, marks of lists, and plain headings."""
    return "\n".join(_keep_line(line, known) for line in text.split("\n"))


def _keep_line(line: str, known: AbstractSet[str]) -> str:
    if heading := _HEADING.fullmatch(line):
        return line if _is_plain(heading[1], known) else ""
    if _BLOCK.match(line):
        return ""
    if not _SAYS.search(line) or _ITEM.fullmatch(line):
        return line
    item = _ITEM.match(line)
    return item[0] if item else " " * (line[0].isspace() or line[-1].isspace())


def _is_plain(heading: str, known: AbstractSet[str]) -> bool:
    if len(heading) > MOST_HEADING_CHARS or not known >= set(analyze(heading)):
        return False
    return len(heading.split()) < _FEWEST_WORDS or first_verb(tokenize(heading)) is None

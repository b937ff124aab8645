"""Find encoded data in text: keys, certificates, pictures and files as letters, which nobody can ask for."""

from __future__ import annotations

import re
from typing import NamedTuple

SHORTEST = 100
"""Characters of the shortest run that is taken for data; words and names are shorter."""
_SHARES = (0.15, 0.15, 0.03)
"""The least shares of capitals, small letters and figures of a run: names of files and slugs have fewer of one."""
_LIKELY = re.compile(r"[A-Za-z0-9+/_=-]{40}|-----BEGIN |(?:[0-9A-Fa-f]{2}[ :]){65}")
_ARMOUR = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,60}-----[^-]{0,200000}(?:-[^-]{1,200}){0,20}-----END [A-Z0-9 ]{1,60}-----"
)
_ADDRESS = re.compile(r"\bdata:[\w.+/-]{0,80}(?:;[\w=.-]{1,80}){0,4},[^\s\"'()<>\]]*+")
_LINES = re.compile(
    r"(?<![^\s\"'(,>:=])(?:[A-Za-z0-9+/]{40,}={0,2}(?:\s{1,20}|$)){3,}(?:[A-Za-z0-9+/]{2,}={1,2}|[A-Za-z0-9+/]{16,})?"
)
_RUN = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{{{SHORTEST},}}+={{0,2}}")
_HEX = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{129,}+"
    r"|(?<![0-9A-Za-z])(?<![0-9A-Fa-f][ :])(?:[0-9A-Fa-f]{2}[ :]){65,}(?:[0-9A-Fa-f]{2})?"
)


class WithoutBlobs(NamedTuple):
    """Text without encoded data, and how many stretches of it were taken out."""

    text: str
    blobs: int


def drop_blobs(text: str) -> WithoutBlobs:
    """Return text without armoured blocks, `data:` addresses, and long runs of base64 or hexadecimal figures."""
    if len(text) < SHORTEST or not _LIKELY.search(text):
        return WithoutBlobs(text, 0)
    dropped = 0

    def drop(found: re.Match[str]) -> str:
        nonlocal dropped
        if found.re in (_LINES, _RUN) and not _is_encoded(found[0]):
            return found[0]
        if found.re is _HEX and not _is_hexadecimal(found[0]):
            return found[0]
        if found.re is _ADDRESS and len(found[0]) < SHORTEST:
            return found[0]
        dropped += 1
        return ""

    for pattern in (_ARMOUR, _ADDRESS, _LINES, _RUN, _HEX):
        text = pattern.sub(drop, text)
    return WithoutBlobs(text, dropped)


def _is_encoded(run: str) -> bool:
    """Return whether letters of both sizes and figures are mixed as in encoded data."""
    length = sum(not character.isspace() for character in run)
    counts = (sum(map(str.isupper, run)), sum(map(str.islower, run)), sum(map(str.isdigit, run)))
    return all(count >= share * length for count, share in zip(counts, _SHARES, strict=True))


def _is_hexadecimal(run: str) -> bool:
    """Return whether figures and letters are mixed; a number of many figures is not data."""
    figures, letters = sum(map(str.isdigit, run)), sum(map(str.isalpha, run))
    return figures * 5 > len(run) and letters * 10 > len(run)

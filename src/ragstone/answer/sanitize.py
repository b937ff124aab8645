"""Text that is safe to show and to send: no hidden characters, no links that fetch or lead anywhere."""

from __future__ import annotations

import re
import unicodedata

from ragstone.language.grammar import words_of
from ragstone.language.units import unit_of

_HIDDEN_RANGES = (
    (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F),  # controls
    (0xAD, 0xAD), (0x061C, 0x061C), (0x180E, 0x180E), (0xFEFF, 0xFEFF),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),  # zero width, direction
    (0xFE00, 0xFE0F), (0xE0100, 0xE01EF),  # variation selectors carry smuggled bytes
    (0xE0000, 0xE007F),  # tags
)  # fmt: skip
_HIDDEN = {code: None for first, last in _HIDDEN_RANGES for code in range(first, last + 1)}

_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\s]{0,2000}(?:\s[^()\n]{0,500})?\)")
_STRONG = re.compile(r"\*\*([^*\n]{1,500})\*\*")
_REFERENCE = re.compile(r"://|\bwww\.|\b(?:https?|data|javascript|mailto|file|vbscript):\S", re.I)
_BARE_ADDRESS = re.compile(r"(?<![\w.])(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}[/?]\S", re.I)
_NAMED_PLACE = re.compile(r"(?<![\w.@-])(?:[\w.+-]{1,64}@)?(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w(])")
_SPECIAL = re.compile(
    r"[\\\\/@<>{}\[\]|`^=*_]|&(?!$)|[$#~](?!\d)|%\w|[^\W_][:;?!(][^\W\d_]|[^\W\d_]\+|^[-–]{1,2}[^\W\d_]", re.I
)
"""Marks that words of plain prose do not have: those of paths, addresses, commands and templates."""
_PLAIN_SLASH = re.compile(r"[\d.,]{1,20}/[\d.,]{1,20}|and/or|(?:he/she|his/her|him/her|s/he)", re.I)
_UNIT_SLASH = re.compile(r"(?P<over>[^\W\d_]{1,12})/(?P<under>[^\W\d_]{1,12})")
_AROUND_WORD = ".,;:!?\"'()“”‘’„«»…"
_COMMANDS = words_of(
    "bash chmod cmd curl del eval exec iex netcat nohup perl powershell pwsh rm scp ssh sudo telnet wget"
)
_WORD = re.compile(r"\w{1,60}")
_MARKUP_LINK = re.compile(r"\]\s*[(\[:]|</?[a-z!]", re.I)
_IMAGE = re.compile(r"!\[|<(?:img|svg|iframe|script|object|embed|link|style|video|audio)\b", re.I)


def strip_hidden(text: str) -> str:
    """Return the text without characters that a reader cannot see but a model reads."""
    return text.translate(_HIDDEN)


def unlink(text: str) -> str:
    """Return the text with the words of its Markdown links and images in place of their markup."""
    return _MARKDOWN_LINK.sub(r"\1", text)


def sanitize(text: str) -> str:
    """Return one line of visible text, without Markdown of links, images and bold, with single spaces."""
    return " ".join(_STRONG.sub(r"\1", unlink(strip_hidden(text))).split())


def has_image(text: str) -> bool:
    """Return whether showing the text as Markdown or HTML could load or run something by itself."""
    return _IMAGE.search(text) is not None


def has_address(text: str) -> bool:
    """Return whether the text names an address that a reader or a program could follow, in whatever letters."""
    folded = unicodedata.normalize("NFKC", text)
    return _REFERENCE.search(folded) is not None or _BARE_ADDRESS.search(folded) is not None


def has_link(text: str) -> bool:
    """Return whether the text holds an address, link markup or a tag."""
    return has_address(text) or _MARKUP_LINK.search(unicodedata.normalize("NFKC", text)) is not None


def named_places(text: str) -> set[str]:
    """Return all words that look like a host or a mail address, such as `pumps.example` or `Node.js`."""
    return {match.group().casefold() for match in _NAMED_PLACE.finditer(unicodedata.normalize("NFKC", text))}


def find_foreign_words(text: str, passages: str) -> list[str]:
    """Return the words of a text that look like part of an address, a command or a template and are in no passage."""
    held = unicodedata.normalize("NFKC", passages).casefold()
    words = [word.strip(_AROUND_WORD) for word in unicodedata.normalize("NFKC", text).casefold().split()]
    words = [word.removesuffix("'s").removesuffix("’s") for word in words]
    foreign = [word for word in words if _is_special(word) and not _is_held(word, held)]
    commands = _COMMANDS.intersection(words)
    return [*foreign, *sorted(commands.difference(_WORD.findall(held)) if commands else ())]


def _is_special(word: str) -> bool:
    if not _SPECIAL.search(word) or _PLAIN_SLASH.fullmatch(word):
        return False
    units = _UNIT_SLASH.fullmatch(word)
    return units is None or any(unit_of(unit) is None for unit in (units["over"], units["under"]))


def _is_held(word: str, passages: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", passages) is not None

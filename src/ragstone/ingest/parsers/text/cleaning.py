"""The one normalisation every format goes through, before offsets are counted."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

# Joiners shape letters in these scripts (Arabic to Sinhala, Myanmar to Mongolian) and join emoji; elsewhere they hide.
_JOINING = "\u0600-\u0dff\u1000-\u109f\u1780-\u18af"
_EMOJI = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_HIDDEN = re.compile(
    f"(?<![{_JOINING}])\u200c"
    f"|(?<![{_JOINING}{_EMOJI}])(?<![{_EMOJI}]\ufe0f)\u200d"
    f"|(?<![{_EMOJI}])[\ufe0e\ufe0f](?!\u20e3)"
    "|[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufe00-\ufe0d\U000e0000-\U000e01ef]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufdd0-\ufdef\ufffe\uffff]")
_UNCLEAN_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_MARKS = 30
"""No language sets more marks on one letter; composing a tower of them takes quadratic time."""
_MAY_BE_TOWER = re.compile(f"[\u0300-\U0010ffff]{{{_MOST_MARKS + 1}}}")
_LAST_MARK = 0x1FFFF
_UNCHOSEN = re.compile(
    r"(?i)\(?(?:untitled(?:[ -]?document)?|unspecified|anonymous|no title|document|presentation)[ -]?\d*\)?"
    r"|microsoft \w+ - .*|word document|powerpoint presentation"
    r"|.*\.(?:docx?|pptx?|xlsx?|rtf|odt|indd|qxd|tex|dvi|ps|pdf)"
)


class Cleaned(NamedTuple):
    """Text as it may be stored, and how many hidden characters were taken out of it."""

    text: str
    hidden: int


def clean(text: str) -> Cleaned:
    """Unix line ends, composed letters, plain spaces; nothing invisible that a reader would not see."""
    if text.isascii() and not _UNCLEAN_ASCII.search(text):
        return Cleaned(text, 0)
    text = _SURROGATE.sub("\ufffd", _LINE_END.sub("\n", text))
    text, hidden = _HIDDEN.subn("", _CONTROL.sub("", text))
    if _MAY_BE_TOWER.search(text):
        length = len(text)
        text = _towers().sub(r"\1", text)
        hidden += length - len(text)
    return Cleaned(unicodedata.normalize("NFC", _SPACE.sub(" ", text)), hidden)


@cache
def _towers() -> re.Pattern[str]:
    """Combining marks, the first few of them in a group."""
    marks = "".join(chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.combining(chr(code)))
    return re.compile(f"([{marks}]{{{_MOST_MARKS}}})[{marks}]+")


def one_line(text: str) -> str:
    """Return the words of a title or a label, cleaned, on one line."""
    return " ".join(clean(text).text.split())


def chosen_title(text: str) -> str:
    """Return a title or an author as a file gives it; empty for what a program wrote there when no person chose one."""
    title = one_line(text)
    return "" if _UNCHOSEN.fullmatch(title) else title


def printable(name: str, most: int = 200) -> str:
    """Return a file's name as it may stand in a message: no control characters, not endless, its suffix kept."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in name)
    return shown if len(shown) <= most else f"{shown[: most - 50]}…{shown[-49:]}"

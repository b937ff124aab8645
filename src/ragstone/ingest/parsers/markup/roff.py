"""The language below man pages: requests, strings, conditions and escapes. Nothing is included or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_EXPANDED = 1_000_000
LONGEST_STRING = 500
_REQUEST = re.compile(r"[.'][ \t]*([^\s\\\"]*)[ \t]*(.*)", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)\\[\"#].*", re.DOTALL)
_ARGUMENT = re.compile(r"\"((?:[^\"]|\"\")*)(?:\"|$)|((?:\\.|[^\s\\])+|\\$)", re.DOTALL)
_STRING = re.compile(r"\\\*(?:\(([^\n]{2})|\[([^\]\n]{1,40})\]|([^\n(\[]))")
_CONDITION = re.compile(r"(!?)(?:([a-z])(?=[\s.'\\]|$)|'[^'\n]*'[^'\n]*'|\\?[^\s]+)[ \t]*", re.DOTALL)
_DEFINES = frozenset({"de", "de1", "am", "am1", "ig", "dei", "ami"})
_ESCAPE = re.compile(
    r"\\(?:"
    r"\((?P<two>[^\n]{2})"
    r"|\[(?P<name>[^\]\n]{1,60})\]"
    r"|[fFgkmMnVY](?:\([^\n]{2}|\[[^\]\n]{0,60}\]|[-+]?[^\n\[(])"
    r"|s(?:[-+]?\([^\n]{2}|[-+]?\[[^\]\n]{0,20}\]|[-+]?'[^'\n]{0,20}'|[-+]?[0-9][0-9]?)"
    r"|N'(?P<code>[0-9]{1,6})'"
    r"|[oZ]'(?P<over>[^'\n]{0,80})'"
    r"|[hvwlLDXRxbABCHS]'[^'\n]{0,200}'"
    r"|(?P<one>[^\n])"
    r"|$)"
)
_ONE = {
    "-": "-", " ": " ", "~": " ", "0": " ", "e": "\\", "\\": "\\", "E": "\\", "t": "\t", "'": "'", "`": "`", ".": ".",
    "_": "_", "\"": "", "@": "@",
}  # fmt: skip
_NAMES = {
    "aq": "'", "dq": '"', "cq": "’", "oq": "‘", "lq": "“", "rq": "”", "ga": "`", "aa": "'", "ha": "^", "ti": "~",
    "rs": "\\", "bu": "•", "em": "—", "en": "–", "hy": "-", "mi": "-", "pl": "+", "mu": "×", "di": "÷", "+-": "±",
    "co": "©", "rg": "®", "tm": "™", "de": "°", "sc": "§", "ps": "¶", "dg": "†", "dd": "‡", "eq": "=", "ne": "≠",
    "<=": "≤", ">=": "≥", "->": "→", "<-": "←", "<>": "↔", "ua": "↑", "da": "↓", "if": "∞", "12": "½", "14": "¼",
    "34": "¾", "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "⟨", "ra": "⟩", "Fo": "«", "Fc": "»", "fo": "‹",
    "fc": "›", "bv": "|", "or": "|", "ba": "|", "br": "|", "ul": "_", "ru": "_", "sl": "/", "at": "@", "sh": "#",
    "Do": "$", "Eu": "€", "ct": "¢", "Po": "£", "Ye": "¥", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ",
    "/o": "ø", "/O": "Ø", "oA": "Å", "oa": "å", "*a": "α", "*b": "β", "*m": "μ", "*p": "π", "*W": "Ω", "mc": "µ",
    "~=": "≅", "~~": "≈", "*-": "-", "ci": "○", "sq": "□", "lh": "☜", "rh": "☞", "OK": "✓", "CR": "↵", "ff": "ff",
    "fi": "fi", "fl": "fl", "Fi": "ffi", "Fl": "ffl", "no": "¬", "tno": "¬", "es": "∅", "mo": "∈", "lA": "⇐", "rA": "⇒",
    "hA": "⇔", "S1": "¹", "S2": "²", "S3": "³", "Bq": "„", "bq": "‚", "u00A0": " ", "IJ": "Ĳ", "ij": "ĳ", ",c": "ç",
    ",C": "Ç", "!=": "≠", "**": "*",
}  # fmt: skip
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", ":": "\u0308", "v": "\u030c"}


class RoffLine(NamedTuple):
    """A line of text (without a request), or a request with its arguments."""

    request: str
    text: str
    """All of a line of text; all that stands behind a request."""


def read_lines(source: str) -> Iterator[RoffLine]:
    """Yield what a terminal would show: definitions of macros left out, conditions decided, strings put in."""
    return _Reader().read(source)


class _Reader:
    def __init__(self) -> None:
        self._strings = {
            "Aq": "'",
            "lq": "“",
            "rq": "”",
            'L"': "“",
            'R"': "”",
            "--": "—",
            "C+": "C++",
            "S": "",
            "R": "®",
        }
        self._strings |= {"Tm": "™", "Lq": "“", "Rq": "”", "Ba": "|", "Lt": "<", "Gt": ">", "Le": "≤", "Ge": "≥"}
        self._strings |= {"Ne": "≠", "Am": "&", "Pm": "±", "If": "∞"}
        self._room = MOST_EXPANDED
        self._took = True
        """True if the last `ie` held: then its `el` does not."""

    def read(self, source: str) -> Iterator[RoffLine]:
        skipped = 0
        end_of_macro = ""
        for line in source.split("\n"):
            if end_of_macro:
                end_of_macro = "" if f".{_split(line)[0]}" == end_of_macro else end_of_macro
            elif skipped:
                skipped = max(0, skipped + _count_braces(line))
            else:
                kept = _COMMENT.sub(r"\1", line)
                if not kept.strip() and kept != line:
                    continue
                found = self._decide(kept)
                if found is None:
                    skipped = max(0, _count_braces(kept))
                    continue
                request, rest = _split(found)
                if request in _DEFINES:
                    end_of_macro = f".{[*rest.split(), '.', '.'][request != 'ig']}"
                elif request in ("ds", "ds1", "as"):
                    self._define(rest, adds=request == "as")
                elif request or not found.startswith((".", "'")):
                    yield RoffLine(request, self._expand(rest))

    def _decide(self, line: str) -> str | None:
        """Return a line behind its conditions; None where they do not hold."""
        for _ in range(10):
            request, rest = _split(line)
            if request not in ("if", "ie", "el", "while"):
                return line.replace("\\}", "") if line.startswith((".", "'")) else line
            if request == "el":
                holds = not self._took
            else:
                condition = _CONDITION.match(rest)
                holds = request != "while" and condition is not None and _holds(condition)
                rest = rest[condition.end() :] if condition else ""
                self._took = holds if request == "ie" else self._took
            if not holds:
                return None
            line = rest.strip().removeprefix("\\{").lstrip().removeprefix("\\").lstrip()
        return ""

    def _define(self, rest: str, *, adds: bool) -> None:
        name, _, value = rest.partition(" ")
        value = self._expand(value.strip().removeprefix('"'))
        self._strings[name] = ((self._strings.get(name, "") if adds else "") + value)[:LONGEST_STRING]

    def _expand(self, text: str) -> str:
        if "\\*" not in text:
            return text

        def put_in(found: re.Match[str]) -> str:
            value = self._strings.get(found[1] or found[2] or found[3], "")
            self._room -= len(value)
            return value if self._room > 0 else ""

        return _STRING.sub(put_in, text)


def _split(line: str) -> tuple[str, str]:
    """Return the name of a request, empty for text, and what follows it."""
    if not line.startswith((".", "'")):
        return "", line
    found = _REQUEST.fullmatch(line)
    if not found:
        return "", "" if line.strip(".' \t\\{}") == "" else line
    return found[1], found[2]


def _holds(condition: re.Match[str]) -> bool:
    """Return whether a condition holds on a terminal; of registers only that of groff is known."""
    letter = condition[2]
    said = condition[0].strip()
    holds = letter in ("n", "o", "d") if letter else said.lstrip("!") in ("\\n(.g", "\\n[.g]", "\\n(.g==1", "1")
    return holds != bool(condition[1])


def _count_braces(line: str) -> int:
    return line.count("\\{") - line.count("\\}")


def split_arguments(text: str) -> list[str]:
    """Return the arguments of a request, quotes removed, escapes still in them."""
    return [bare or quoted.replace('""', '"') for quoted, bare in _ARGUMENT.findall(text)]


def unescape(text: str) -> str:
    """Return text as it is read: characters for their names, and nothing of fonts, sizes and movements."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    name = found["two"] or found["name"]
    if name:
        return _named(name)
    if found["code"]:
        code = int(found["code"])
        return chr(code) if 32 <= code < 0xD800 else ""
    if found["over"]:
        return found["over"] if "\\" not in found["over"] else "".join(filter(str.isalnum, unescape(found["over"])))
    return _ONE.get(found["one"] or "", "")


def _named(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    if name[0] == "u" and re.fullmatch(r"u[0-9A-F]{4,6}", name):
        code = int(name[1:], 16)
        return chr(code) if code < 0xD800 or 0xE000 <= code <= 0x10FFFF else ""
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return name[1] + _ACCENTS[name[0]]
    return name if len(name) == 1 else ""

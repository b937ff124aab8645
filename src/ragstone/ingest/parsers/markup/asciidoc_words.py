"""The words of a line of AsciiDoc: references as their text, attributes as their values, marks left out."""

from __future__ import annotations

import re

LONGEST_VALUE = 300
MOST_FILLED_IN = 300_000
_KNOWN = {
    "empty": "", "sp": " ", "nbsp": " ", "zwsp": "", "wj": "", "plus": "+", "asterisk": "*", "tilde": "~", "apos": "'",
    "startsb": "[", "endsb": "]", "caret": "^", "backtick": "`", "backslash": "\\", "lt": "<", "gt": ">", "amp": "&",
    "litdd": "--", "cpp": "C++", "two-colons": "::", "two-semicolons": ";;", "vbar": "|", "brvbar": "¦", "quot": '"',
    "ldquo": "“", "rdquo": "”", "lsquo": "‘", "rsquo": "’", "deg": "°", "pp": "++",
}  # fmt: skip
_ATTRIBUTE = re.compile(r"(?<!\\)\{([\w-]{1,60})\}")
_ESCAPED = re.compile(r"\\(?=[\w*_`#{<\[^~+'(:-])")
_PASSED = re.compile(
    r"\+\+\+([^\n]{0,400}?)\+\+\+|pass:[a-z,]{0,20}\[([^\]\n]{0,400})\]"
    r"|``([^`\n][^\n]{0,400}?)``|(?<![\w`])`([^`\n]{1,400})`(?!\w)|\+\+([^\n]{1,400}?)\+\+|(?<![\w+])\+(\S[^+\n]{0,400}?)\+(?!\w)"
)
_MACROS = re.compile(
    r"(?P<see>linkgit|linkman|man):(?P<page>[\w.:+-]{1,80})\[(?P<section>[^\]\n]{0,20})\]"
    r"|(?:link|xref|mailto|https?|ftps?|irc)(?P<target>:[^\s\[\]<>]{0,500})\[(?P<text>(?:\\\]|[^\]\n]){0,300})\]"
    r"|<<(?P<anchor>[^>,\n]{1,200})(?:,(?P<label>[^>\n]{0,300}))?>>"
    r"|image::?(?P<picture>[^\s\[\]]{0,300})\[(?P<alt>[^\]\n]{0,300})\]"
    r"|footnote(?:ref)?:[\w-]{0,40}\[(?P<note>[^\]\n]{0,600})\]"
    r"|(?:kbd|btn|icon|stem|latexmath|asciimath|indexterm2):[\w-]{0,40}\[(?P<said>[^\]\n]{0,200})\]"
    r"|menu:(?P<menu>[^\[\n]{1,80})\[(?P<choice>[^\]\n]{0,200})\]"
    r"|\[\[[^\]\n]{1,200}\]\]|indexterm:\[[^\]\n]{0,200}\]|\(\(\([^)\n]{1,200}\)\)\)|anchor:[\w-]{1,80}\[[^\]\n]{0,80}\]"
    r"|\(\((?P<indexed>[^()\n]{1,200})\)\)"
)
_STRONG = re.compile(r"\*\*(?=\S)([^\n]{1,400}?)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]{1,400}?)(?<=\S)\*(?![\w*])")
_SLANTED = re.compile(r"__(?=\S)([^\n]{1,400}?)__|(?<![\w_])_(?=[^\s_])([^_\n]{1,400}?)(?<=\S)_(?![\w_])")
_QUOTED = re.compile(r"(?<![\w'`])'(?=[^\s'])([^'\n]{1,200}?)(?<=\S)'(?![\w'])")
_ROLE = re.compile(r"(?:\[[^\]\n]{1,60}\])?##([^\n]{1,300}?)##|(?:\[[^\]\n]{1,60}\])#(?=\S)([^#\n]{1,300}?)#(?!\w)")
_SCRIPT = re.compile(r"\^(\S{1,60}?)\^|(?<!\w)~(\S{1,60}?)~")
_CURLY = re.compile(r"(?:\"`([^\n]{1,400}?)`\")|(?:'`([^\n]{1,400}?)`')|``([^`'\n]{1,400}?)''")
_KEPT = re.compile("\x00([0-9]+)\x00")


class AsciidocWords:
    """Says the lines of one page, with the attributes that it sets."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._room = MOST_FILLED_IN

    def set(self, name: str, value: str) -> None:
        """Remember what an attribute stands for."""
        self._values[name.lower().strip("!")] = self.fill_in(value)[:LONGEST_VALUE]

    def fill_in(self, text: str) -> str:
        """Return text with the attributes in it replaced; names that are not known stay, and all once it is a lot."""

        def put_in(found: re.Match[str]) -> str:
            name = found[1].lower()
            value = self._values.get(name, _KNOWN.get(name, found[0]))
            self._room -= len(value)
            return value if self._room > 0 else found[0]

        return _ATTRIBUTE.sub(put_in, text)

    def say(self, text: str) -> str:
        """Return the words of a text without its marks; what stands between marks of code is left as it is."""
        if text.isalnum() or not text:
            return text
        kept: list[str] = []

        def keep(found: re.Match[str]) -> str:
            kept.append(next((group for group in found.groups() if group is not None), ""))
            return f"\x00{len(kept) - 1}\x00"

        text = _CURLY.sub(lambda found: f"“{found[1] or found[2] or found[3]}”", self.fill_in(text))
        text = _PASSED.sub(keep, text)
        text = _MACROS.sub(_say_macro, text)
        for marks in (_ROLE, _STRONG, _SLANTED, _QUOTED, _SCRIPT):
            text = marks.sub(lambda found: found[1] or found[2] if found.re.groups > 1 else found[1], text)
        text = _ESCAPED.sub("", text)
        return _KEPT.sub(lambda found: kept[int(found[1])], text)


def _say_macro(found: re.Match[str]) -> str:
    if found["see"]:
        return f"{found['page']}({found['section']})" if found["section"] else found["page"]
    if found["target"] is not None:
        words = (found["text"] or "").split(",window=")[0].strip().strip('"').replace("\\]", "]").rstrip("^")
        return words or found[0].partition("[")[0].removeprefix("link:").removeprefix("xref:").removeprefix("mailto:")
    if found["anchor"]:
        return (found["label"] or found["anchor"].strip("#_").replace("_", " ").replace("-", " ")).strip()
    if found["picture"] is not None:
        return (found["alt"] or "").partition(",")[0].strip('"')
    if found["note"]:
        return f" ({found['note']})"
    if found["menu"]:
        return f"{found['menu']} › {found['choice']}" if found["choice"] else found["menu"]
    return found["said"] or found["indexed"] or ""

"""Tell markup by its shape, where the name of a file does not say what it is."""

from __future__ import annotations

import re

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.text.text import SAMPLE, decode

_DOCBOOK = re.compile(rb"-//OASIS//DTD DocBook|-//OASIS//ELEMENTS DocBook|http://docbook\.org/ns/docbook")
_DOCBOOK_PART = re.compile(
    rb"(?:\s|<\?[^>]{0,300}>|<!--(?:(?!-->).){0,1000}-->)*"
    rb"<(?:book|part|preface|chapter|appendix|article|section|sect[1-5]|refentry|glossary|qandaset)\b",
    re.DOTALL,
)
_DOCBOOK_TEXT = re.compile(rb"<(?:para|simpara|refnamediv|glossentry)\b")
_HEAD = 2048
_INFO = re.compile(rb"\s*This is [^,\n]{1,300},\s{1,3}produced\s{1,3}by\s{1,3}(?:makeinfo|texi2any)")
_ROFF = re.compile(r"^\.(?:TH|SH|SS|PP|TP|Dd|Dt|Sh|Ss|Nm|Nd|IP|so)\b", re.MULTILINE)
_UNDERLINED = re.compile(r"^(?![ \t=~^*#.\"'`+-]{3})(\S[^\n]{1,150})\n([=~^*#.\"'`+-])\2{2,}[ \t]*$", re.MULTILINE)
_RST = re.compile(
    r"^\.\. (?:[a-zA-Z][\w:-]*::|_[^\n:]{1,80}:|\|[^\n|]{1,60}\| [\w-]+::|\[[\w#*-]{1,30}\] )"
    r"|(?<![\w`]):[a-z][\w:-]{1,30}:`[^`\n]{1,200}`"
    r"|`[^`\n]{1,200}`__?(?!\w)"
    r"|::\n\n[ \t]+\S",
    re.MULTILINE,
)
_ASCIIDOC = re.compile(
    r"^(?:={2,5} \S|\[(?:verse|source|NOTE|TIP|WARNING|IMPORTANT|CAUTION|horizontal|listing|\[|options|cols|role|%)"
    r"|include::\S+\[|(?:ifdef|ifndef|endif)::|\|===\s*$|:[\w-]+:(?: |$)|\S[^\n]{0,150}\S::\s*$)"
    r"|(?:linkgit|link|xref|https?):\S{1,150}\[[^\]\n]*\]|<<[\w-]+(?:,[^>\n]*)?>>",
    re.MULTILINE,
)
_ASCIIDOC_TITLE = re.compile(r"\s*(?:(?://[^\n]*|:[\w-]+:[^\n]*)\n\s*)*= \S[^\n]*\n")
_FEWEST = 2


def find_markup(content: bytes) -> str | None:
    """Return `man`, `rst` or `asciidoc` for text that has the shape of one, and None for any other."""
    try:
        text = decode(content[:SAMPLE], "").text.replace("\r\n", "\n")
    except ParseError:
        return None
    if is_man(text):
        return "man"
    titles = _underlined(text)
    rst = sum(1 for _ in _RST.finditer(text))
    asciidoc = sum(1 for _ in _ASCIIDOC.finditer(text))
    if rst >= _FEWEST and titles and rst >= asciidoc:
        return "rst"
    if asciidoc >= _FEWEST and (titles or _ASCIIDOC_TITLE.match(text)) and asciidoc > rst:
        return "asciidoc"
    return None


def is_docbook(content: bytes) -> bool:
    """Return whether a file of XML says that it is DocBook, or is a part of a manual that another file includes."""
    if _DOCBOOK.search(content[:_HEAD]):
        return True
    return _DOCBOOK_PART.match(content[:_HEAD]) is not None and _DOCBOOK_TEXT.search(content[:SAMPLE]) is not None


def is_info(content: bytes) -> bool:
    """Return whether a file begins as `makeinfo` lets manuals begin, and has nodes."""
    return _INFO.match(content[:SAMPLE]) is not None and b"\x1f\nFile: " in content


def is_man(text: str) -> bool:
    """Return whether a text begins as man pages do and has more than one of their requests."""
    begins = text.lstrip().startswith((".", "'", "\\"))
    return begins and len(set(_ROFF.findall(text))) >= _FEWEST


def _underlined(text: str) -> int:
    """Return how many lines are titles: underlined over their whole length, and not much further."""
    return sum(-1 <= len(found[0]) - 2 * len(found[1].rstrip()) - 1 <= 3 for found in _UNDERLINED.finditer(text))

"""The words of a page of a manual, without markup: read apart from the parsers that it checks the collection for."""

from __future__ import annotations

import html
import re
from pathlib import Path

from ragstone.ingest.parsers.dispatch import parse

_DROPPED = re.compile(
    r"\.(?:\\\"|B[dlk]|E[dlk]|Pp|Dd|Dt|Os|TH|if|ie|el|nr|so|ad|hy|ds|de|sp|br|nf|fi|ti|in|RS|RE|\.|\\}).*"
)
_MACRO = re.compile(
    r"(?<![\w-])(?:[AEL]n|Ad|Ap|Ar|Aq|Cm|Dl|Do|Dc|Dq|Dv|Er|Em|Ev|Fl|Ic|It|Li|Lk|Mt|Nd|Nm|No|Ns|Op|Oo|Oc|Pa|Po|Pc|Pf|Pq|"
    r"Ql|Qq|Qo|Qc|Sh|SH|Ss|SS|Sm|So|Sc|Sq|Sx|Sy|Ta|Tn|Va|Vt|Xr|Xo|Xc|Ux|TP|IP|PP|LP|P|B|I|BR|IR|RB|RI|BI|IB|SM|SB)(?![\w-])"
)


def page_words(page: Path) -> str:
    """Return what the page shows as one run of lower-case letters and digits."""
    suffix = page.suffix.lower()
    if suffix in {".pdf", ".epub", ".docx", ".xlsx", ".pptx", ".rtf"}:
        return words(parse(page.read_bytes(), page.name).text)
    strip = _man if re.fullmatch(r"\.[1-9]", suffix) else _STRIPPERS.get(suffix, str)
    return words(strip(page.read_text("utf-8", "replace")))


def words(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _html(text: str) -> str:
    text = re.sub(r"(?s)<!--.*?-->|<(script|style)\b.*?</\1>", " ", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def _rst(text: str) -> str:
    text = re.sub(r":[\w:+-]+:(?=`)", "", text)
    return re.sub(r"`([^`<]*?)\s*<[^`>]*>`", r"\1", text)


def _adoc(text: str) -> str:
    text = re.sub(r"<<[^,>]*,([^>]*)>>", r"\1", text)
    text = re.sub(r"linkgit:", "", text)
    return re.sub(
        r"\{[a-z]+\}|(?:link|https?|mailto):\S*?\[(?=\w)|\[[a-z]+\]|\[\[[\w-]+\]\]|^(?:ifn?def|endif|include)::.*$",
        "",
        text,
    )


def _markdown(text: str) -> str:
    return re.sub(r"\]\([^)]*\)|\]\[[^]]*\]|<a\b[^>]*>|</\w+>", "", text)


def _man(text: str) -> str:
    name = ""
    shown = []
    for line in re.sub(r"\\f(?:\[\w*\]|\(..|.)|\\s[-+]?\d|\\&|\\\((?:..)|\\\[\w+\]", "", text).splitlines():
        if not line.startswith("."):
            shown.append(line)
        elif not _DROPPED.match(line):
            named = re.match(r"\.Nm\s+(\w[\w.-]*)", line)
            name = name or (named[1] if named else "")
            line = f".Nm {name}" + line[3:] if re.match(r"\.Nm(?:\s+[^\w\s].*|\s+Ns.*|\s*)$", line) else line
            shown.append(_MACRO.sub("", line))
    return "\n".join(shown)


_STRIPPERS = {".html": _html, ".htm": _html, ".rst": _rst, ".adoc": _adoc, ".md": _markdown}

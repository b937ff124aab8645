"""The words that a page of a manual shows, without markup: read apart from the parsers, whose tests need them."""

from __future__ import annotations

import html
import re
import warnings
import zipfile
from pathlib import Path

import openpyxl
import pypdfium2

_HIDDEN_LINE = re.compile(
    r"\.(?:\\\"|B[dlk]|E[dlk]|Pp|Dd|Dt|Os|TH|if|ie|el|nr|so|ad|hy|ds|de|sp|br|nf|fi|ti|in|PD|TP|RS|RE|\.|\\}).*"
)
_MACRO = re.compile(
    r"(?<![\w-])(?:[AEL]n|A[dpqr]|B[IR]?|Cm|D[clovq]|E[mrv]|Fl|I[BRPct]?|L[ikP]|Mt|N[dmos]|O[cop]|P[acfoqP]?|Q[cloq]|"
    r"R[BI]|S[BHMSchmoqsxy]|T[Pan]|Ux|V[at]|X[cor])(?![\w-])"
)
_ROFF_ESCAPE = re.compile(r"\\[fm](?:\[\w*\]|\(..|.)|\\s[-+]?\d|\\\*?(?:\(..|\[\w+\])|\\[hvN]'[^']*'|\\[&ce]")
_INDENT = re.compile(r"(\.[IH]P\b.*?)\s+\d+n?$")


def page_words(page: Path) -> str:
    """Return what the page shows as one run of lower-case letters and digits."""
    suffix = page.suffix.lower()
    if suffix in _READERS:
        return words(_READERS[suffix](page))
    text = page.read_text("utf-8", "replace")
    return words(_strip_man(text) if re.fullmatch(r"\.[1-9]", suffix) else _STRIPPERS.get(suffix, str)(text))


def words(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _read_pdf(page: Path) -> str:
    with pypdfium2.PdfDocument(page) as document:
        return "\n".join(sheet.get_textpage().get_text_bounded() for sheet in document)


def _read_xlsx(page: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(page)
    cells = (cell for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row)
    return " ".join(str(cell) for cell in cells if cell is not None)


def _read_archive(page: Path) -> str:
    with zipfile.ZipFile(page) as archive:
        parts = [name for name in sorted(archive.namelist()) if name.endswith(("document.xml", "html", "content.xml"))]
        return "\n".join(_strip_html(archive.read(part).decode("utf-8")) for part in parts)


def _strip_html(text: str) -> str:
    text = re.sub(r"(?s)<!--.*?-->|<(script|style)\b.*?</\1>", " ", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def _strip_rst(text: str) -> str:
    return re.sub(r"(?<!`)`([^`<]+?)\s*<[^`>]*>`(?!`)", r"\1", re.sub(r":[\w:+-]+:(?=`)", "", text))


def _strip_adoc(text: str) -> str:
    text = re.sub(r"<<[^,>]*,([^>]*)>>", r"\1", text).replace("linkgit:", "")
    return re.sub(r"\{[a-z]+\}|(?:link|https?|mailto):\S*?\[(?=\w)|\[[a-z]+\]|\[\[[\w-]+\]\]", "", text)


def _strip_markdown(text: str) -> str:
    return html.unescape(
        re.sub(
            r"\]\([^)]*\)|\]\[[^]]*\]|</?(?:a|br|code|div|em|h\d|img|kbd|li|p|span|strong|td|th|tr|ul)\b[^>]*>",
            "",
            text,
        )
    )


def _strip_man(text: str) -> str:
    name = ""
    shown = []
    for line in _ROFF_ESCAPE.sub("", text).splitlines():
        named = re.match(r"\.Nm\s+(\w[\w.-]*)", line)
        name = name or (named[1] if named else "")
        if re.match(r"\.Nm(?:\s+[^\w\s].*|\s+Ns.*|\s*)$", line):
            line = f".Nm {name}{line[3:]}"
        if not _HIDDEN_LINE.match(line):
            shown.append(_MACRO.sub("", _INDENT.sub(r"\1", line)) if line.startswith(".") else line)
    return "\n".join(shown)


_READERS = {
    ".pdf": _read_pdf,
    ".xlsx": _read_xlsx,
    ".docx": _read_archive,
    ".epub": _read_archive,
    ".odt": _read_archive,
}
_STRIPPERS = {
    ".html": _strip_html,
    ".htm": _strip_html,
    ".xml": _strip_html,
    ".rst": _strip_rst,
    ".adoc": _strip_adoc,
    ".asciidoc": _strip_adoc,
    ".md": _strip_markdown,
}

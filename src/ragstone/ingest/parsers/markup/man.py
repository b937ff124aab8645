"""Man pages, of the macros man and mdoc: sections, options as terms with their descriptions, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean, join_ideographs, one_line
from ragstone.ingest.parsers.markup.mdoc import MdocWords
from ragstone.ingest.parsers.markup.parts import MarkupPart, add_parts
from ragstone.ingest.parsers.markup.roff import RoffLine, read_lines, split_arguments, unescape
from ragstone.ingest.parsers.markup.tbl import read_table
from ragstone.ingest.parsers.text.text import decode

MAX_DEPTH = 20
_LONGEST_TERM = 200
_FONTS = frozenset({"B", "I", "R", "SM", "SB", "CW", "ft", "BI", "BR", "IB", "IR", "RB", "RI", "MR", "OP"})
_JOINED = frozenset({"BI", "BR", "IB", "IR", "RB", "RI"})
_PARAGRAPHS = frozenset({"PP", "P", "LP", "HP", "Pp", "Lp"})
_BULLET = re.compile(r"(?:[•*o·○□+–—-]|\\\(bu)\s*$")
_NUMBER = re.compile(r"\(?[0-9]{1,3}[.)]?\s*$|\(?[a-z][.)]\s*$")
_SPACES = re.compile(r"(?<=\S) {2,}")
_DROPPED = frozenset({
    "IX", "PD", "DT", "AT", "UC", "Dd", "Os", "Bk", "Ek", "Sm", "Tg", "Hf", "Db", "Bf", "Ef", "TE", "T&", "SY.", "YS",
    "LINKSTYLE",
})  # fmt: skip


def parse_man(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a man page; a page that only points to another one has no text."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    page = _Page(draft)
    page.read(read_lines(cleaned.text))
    return draft.finish(
        "text/troff",
        title=page.title,
        metadata={"encoding": decoded.encoding},
        warnings=decoded.warnings,
        empty_hint="it may only point to another page: add that one",
    )


class _Page:
    """The state of the pass over one page."""

    def __init__(self, draft: Draft) -> None:
        self.title = ""
        self._draft = draft
        self._words: list[str] = []
        self._glued = False
        self._verbatim = False
        self._parts: list[MarkupPart] = []
        """All parts of the section that is being read."""
        self._open: list[list[MarkupPart]] = [self._parts]
        """The lists that parts go to, from the section down to the innermost indented stretch."""
        self._entry: list[MarkupPart | None] = [None]
        """The term or item at each depth whose description is being read."""
        self._wants: Callable[[str], None] | None = None
        """Takes the next line of text, such as a heading or a term, instead of the paragraph."""
        self._lists: list[str] = []
        self._mdoc = MdocWords()
        self._in_synopsis = False

    def read(self, lines: Iterator[RoffLine]) -> None:
        for line in lines:
            if line.request == "TS":
                self._end_paragraph()
                self._put(MarkupPart("table", read_table(lines)))
            elif line.request == "EQ":
                _skip_to(lines, "EN")
            elif line.request:
                self._run(line.request, line.text)
            else:
                self._say_line(unescape(line.text), glued=line.text.endswith("\\c"))
        self._end_section()

    def _run(self, request: str, rest: str) -> None:
        action = _ACTIONS.get(request)
        if action:
            action(self, [unescape(argument) for argument in split_arguments(rest)])
        elif request in _PARAGRAPHS or request in ("sp", "br", "Sp", "ti", "ce"):
            self._break(request)
        elif request in _FONTS:
            self._say_font(request, rest)
        elif self._mdoc.knows(request):
            self._say_line(self._mdoc.say([request, *split_arguments(rest)]))
        elif request not in _DROPPED and not request.islower():
            # A macro of the page's own: its arguments are words.
            self._say_line(" ".join(unescape(argument) for argument in split_arguments(rest)))

    def _say_font(self, request: str, rest: str) -> None:
        arguments = [unescape(argument) for argument in split_arguments(rest)]
        if request == "ft" or not arguments:
            return
        if request == "MR":
            self._say_line(f"{arguments[0]}({arguments[1]}){''.join(arguments[2:])}" if arguments[1:] else arguments[0])
        elif request == "OP":
            self._say_line(f"[{' '.join(arguments)}]")
        else:
            self._say_line(("" if request in _JOINED else " ").join(arguments), glued=rest.endswith("\\c"))

    def _say_line(self, text: str, *, glued: bool = False) -> None:
        if self._wants and (text.strip() or not self._verbatim):
            if text.strip():
                take, self._wants = self._wants, None
                take(text)
            return
        if self._verbatim:
            self._words.append(text + "\n")
            return
        if not text.strip():
            self._break("sp")
            return
        space = "" if not self._words or self._glued else "\n" if text[0] == " " else " "
        if space == " " and not join_ideographs(f"{self._words[-1][-1:]}\n{text[0]}")[1:-1]:
            space = ""
        self._words.append(space + (text.rstrip() if self._glued else text.strip()))
        self._glued = glued

    def _break(self, request: str) -> None:
        if request in _PARAGRAPHS:
            self._end_paragraph()
            if not self._lists:
                self._entry[-1] = None
        elif self._verbatim:
            self._words.append("\n" if request in ("sp", "Sp") else "")
        elif request == "br":
            self._words.append("\n")
            self._glued = True
        else:
            self._end_paragraph()

    def _end_paragraph(self) -> None:
        text = "".join(self._words)
        self._words.clear()
        self._glued = False
        if not text.strip():
            return
        if self._verbatim:
            self._put(MarkupPart("code", text.strip("\n")))
        elif text.lstrip().startswith("•"):
            self._put(MarkupPart("item", "- ", inside=[MarkupPart("paragraph", text.strip("• \t\n"))]))
        else:
            self._put(MarkupPart("paragraph", _SPACES.sub(" ", text.strip())))

    def _put(self, part: MarkupPart) -> None:
        entry = self._entry[-1]
        (entry.inside if entry else self._open[-1]).append(part)

    def _enter(self, part: MarkupPart) -> None:
        """Begin the description of a term or an item at this depth."""
        self._entry[-1] = None
        siblings = self._open[-1]
        before = siblings[-1] if siblings else None
        if part.kind == "term" and before and before.kind == "term" and not before.inside:
            before.terms += part.terms
            part = before
        else:
            siblings.append(part)
        self._entry[-1] = part

    def _indent(self, _: list[str]) -> None:
        """Begin a stretch that belongs to the open term, or to the short paragraph right before it."""
        directly = bool("".join(self._words).strip()) and not self._verbatim
        self._end_paragraph()
        if len(self._open) > MAX_DEPTH:
            self._open.append(self._open[-1])
            self._entry.append(None)
            return
        entry = self._entry[-1]
        siblings = entry.inside if entry else self._open[-1]
        last = siblings[-1] if siblings else None
        if directly and last and last.kind == "paragraph" and _is_term(last.text):
            siblings[-1] = last = MarkupPart("term", terms=[last.text])
            siblings = last.inside
        self._open.append(siblings)
        self._entry.append(None)

    def _outdent(self, _: list[str]) -> None:
        self._end_paragraph()
        if len(self._open) > 1:
            self._open.pop()
            self._entry.pop()

    def _set_title(self, arguments: list[str]) -> None:
        if arguments and not self.title:
            section = arguments[1] if len(arguments) > 1 else ""
            self.title = one_line(f"{arguments[0]}({section})" if section else arguments[0])
            self._draft.add("heading", self.title, level=1, label=self.title)

    def _head(self, arguments: list[str], level: int) -> None:
        self._end_section()

        def add(text: str) -> None:
            label = one_line(text)
            self._in_synopsis = label == "SYNOPSIS"
            self._draft.add("heading", label, level=level, label=label)

        if arguments:
            add(" ".join(arguments))
        else:
            self._wants = add

    def _end_section(self) -> None:
        self._end_paragraph()
        self._verbatim = False
        self._wants = None
        add_parts(self._draft, self._parts)
        self._parts = []
        self._open, self._entry, self._lists = [self._parts], [None], []

    def _tag(self, _: list[str]) -> None:
        self._end_paragraph()
        self._wants = lambda text: self._enter(MarkupPart("term", terms=[text]))

    def _item(self, arguments: list[str]) -> None:
        self._end_paragraph()
        if not arguments or not arguments[0].strip():
            return
        mark = arguments[0].strip()
        if _BULLET.match(mark):
            self._enter(MarkupPart("item", "- "))
        elif _NUMBER.match(mark):
            self._enter(MarkupPart("item", f"{mark.strip('().')}. "))
        else:
            self._enter(MarkupPart("term", terms=[mark]))

    def _set_verbatim(self, verbatim: bool) -> None:
        if verbatim != self._verbatim:
            self._end_paragraph()
            self._verbatim = verbatim

    def _say_link(self, arguments: list[str]) -> None:
        self._say_line(arguments[0] if arguments else "")

    def _begin_list(self, arguments: list[str]) -> None:
        self._end_paragraph()
        if self._lists:
            self._indent([])
        self._lists.append(arguments[0].lstrip("-") if arguments else "item")
        self._entry[-1] = None

    def _end_list(self, _: list[str]) -> None:
        self._end_paragraph()
        if self._lists:
            self._lists.pop()
            self._entry[-1] = None
        if self._lists:
            self._outdent([])

    def _begin_item(self, arguments: list[str]) -> None:
        self._end_paragraph()
        words = self._mdoc.say(["No", *arguments]) if arguments else ""
        kind = self._lists[-1] if self._lists else "tag"
        if kind in ("tag", "hang", "ohang", "inset", "diag"):
            self._enter(MarkupPart("term", terms=[words]))
        elif kind == "column":
            self._put(MarkupPart("paragraph", words.replace("\t", " ")))
        else:
            count = sum(part.kind == "item" for part in self._open[-1]) + 1
            self._enter(MarkupPart("item", f"{count}. " if kind == "enum" else "- "))
            if words:
                self._words.append(words)

    def _begin_display(self, arguments: list[str]) -> None:
        self._end_paragraph()
        self._verbatim = any(argument in ("-literal", "-unfilled") for argument in arguments)

    def _show_line(self, arguments: list[str]) -> None:
        self._end_paragraph()
        self._put(MarkupPart("code", self._mdoc.say(["No", *arguments])))

    def _say_name(self, arguments: list[str]) -> None:
        if self._in_synopsis:
            self._end_paragraph()
        self._say_line(self._mdoc.say(["Nm", *arguments]))


def _is_term(text: str) -> bool:
    """Return whether a paragraph before an indented one is what that describes, and no sentence."""
    return len(text) <= _LONGEST_TERM and not text.endswith((".", ":", ";", "?", "!"))


def _skip_to(lines: Iterator[RoffLine], request: str) -> None:
    for line in lines:
        if line.request == request:
            return


_ACTIONS: dict[str, Callable[[_Page, list[str]], None]] = {
    "TH": _Page._set_title,
    "Dt": _Page._set_title,
    "SH": lambda page, arguments: page._head(arguments, 2),
    "Sh": lambda page, arguments: page._head(arguments, 2),
    "SS": lambda page, arguments: page._head(arguments, 3),
    "Ss": lambda page, arguments: page._head(arguments, 3),
    "TP": _Page._tag,
    "TQ": _Page._tag,
    "IP": _Page._item,
    "RS": _Page._indent,
    "RE": _Page._outdent,
    "nf": lambda page, _: page._set_verbatim(True),
    "EX": lambda page, _: page._set_verbatim(True),
    "Vb": lambda page, _: page._set_verbatim(True),
    "fi": lambda page, _: page._set_verbatim(False),
    "EE": lambda page, _: page._set_verbatim(False),
    "Ve": lambda page, _: page._set_verbatim(False),
    "SY": _Page._say_link,
    "UR": _Page._say_link,
    "MT": _Page._say_link,
    "UE": lambda page, arguments: page._say_line("".join(arguments)),
    "ME": lambda page, arguments: page._say_line("".join(arguments)),
    "Bl": _Page._begin_list,
    "El": _Page._end_list,
    "It": _Page._begin_item,
    "Bd": _Page._begin_display,
    "Ed": lambda page, _: page._set_verbatim(False),
    "Dl": _Page._show_line,
    "D1": _Page._show_line,
    "Nm": _Page._say_name,
}

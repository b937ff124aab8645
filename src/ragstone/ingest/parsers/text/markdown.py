"""Markdown and MDX: the header is read without trusting it, and what a reader does not see is removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ragstone.core.documents import clean_metadata
from ragstone.core.errors import InputError
from ragstone.core.types import BlockKind, Json, Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.text.text import decode

if TYPE_CHECKING:
    import yaml
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARS = 64 * 1024
MAX_DEPTH = 20
_HEADER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "blockquote_open": "quote",
    "html_block": "paragraph",
}
_LONGEST_HEADING = 1000
_ANCHOR = re.compile(r"\s*\{#[^}\s]*\}\s*$")
_FENCE = re.compile(r"[ \t>]*+(?:[-*+]|\d+[.)])?[ \t]*(`{3,}|~{3,})")
_STATEMENT = re.compile(
    r"import\s+(?:['\"]|[\w*{].*?(?:\sfrom\s|,\s*$|\{\s*$))|export\s+(?:const|let|default|function|async|\{|\*)"
)
_ADMONITION = re.compile(r"^[ \t]*:{3,}[a-z]*[ \t]*(?:\[(?P<bracketed>[^\]\n]*)\])?(?P<rest>[^\n]*)$", re.MULTILINE)
_MARKS = re.compile(
    r"(?P<ticks>(?<!`)`+(?!`))"
    r"|(?P<comment><!--|\{/\*)"
    r"|(?P<expression>\{)"
    r"|(?P<tag></?[A-Za-z][\w.:-]*(?=[\s/>])|</?(?=>))"
)
_SPOKEN = re.compile(r"\b(?:title|label|description|summary|alt)=(?:\"([^\"]*)\"|'([^']*)')")
_LITERAL = re.compile(r"\{\s*([\"'`])(.*)\1\s*\}", re.DOTALL)
_LONGEST_TAG = 4000
_LONGEST_CODE = 4000
_LONGEST_STATEMENT = 3000
_ESCAPE = re.compile(r"\\([nrt\"'\\])")
_ESCAPED = {"n": "\n", "r": "", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_TILDES = re.compile(r"~{3,}")
_UNSEEN = ("script", "style")
_ELEMENTS = frozenset({
    "a", "abbr", "article", "aside", "audio", "b", "blockquote", "br", "button", "center", "cite",
    "code", "col", "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption",
    "figure", "font", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i",
    "iframe", "img", "input", "ins", "kbd", "label", "li", "main", "mark", "nav", "ol", "option", "p",
    "picture", "pre", "q", "s", "samp", "script", "section", "select", "small", "source", "span",
    "strike", "strong", "style", "sub", "summary", "sup", "svg", "path", "table", "tbody", "td",
    "tfoot", "th", "thead", "time", "tr", "tt", "u", "ul", "var", "video", "wbr",
})  # fmt: skip


class FrontMatter(NamedTuple):
    """The values of the header, and where the page begins."""

    metadata: dict[str, Json]
    body_start: int
    warnings: tuple[str, ...] = ()


def read_front_matter(text: str) -> FrontMatter:
    """Split the header off; a header that cannot be read stays part of the page."""
    header = _HEADER.match(text[: MAX_CHARS + 1])
    if header is None:
        return FrontMatter({}, 0)
    try:
        values = _load(header[1])
    except ValueError as problem:
        return FrontMatter({}, 0, (f"the front matter is not readable YAML and was kept as text: {problem}",))
    if values is None:
        return FrontMatter({}, 0)
    metadata, dropped = _storable(values)
    warnings = (f"front matter that cannot be stored was left out: {', '.join(dropped)}",) if dropped else ()
    return FrontMatter(metadata, header.end(), warnings)


def _load(header: str) -> dict[Any, Any] | None:
    import yaml

    try:
        _check_events(yaml.parse(header, yaml.SafeLoader))
        values = yaml.safe_load(header)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        raise ValueError(f"line {mark.line + 2}" if mark else "malformed") from problem
    return values if isinstance(values, dict) else None


def _check_events(events: Iterable[yaml.Event]) -> None:
    """Refuse what makes a small header mean gigabytes or hours: aliases and deep nesting."""
    import yaml

    depth = 0
    for event in events:
        match event:
            case yaml.AliasEvent():
                raise ValueError("it uses aliases")
            case yaml.CollectionStartEvent():
                depth += 1
            case yaml.CollectionEndEvent():
                depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deep")


def _storable(values: dict[Any, Any]) -> tuple[dict[str, Json], list[str]]:
    metadata: dict[str, Json] = {}
    dropped = []
    for key, value in values.items():
        try:
            metadata.update(clean_metadata({key: value}))
        except InputError:
            dropped.append(f"{key!s:.40}")
    return metadata, dropped


def parse_markdown(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a Markdown page; each block's text is a slice of the source."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    header = read_front_matter(cleaned.text)
    page = without_markup(cleaned.text[header.body_start :], mdx=name.lower().endswith(".mdx"))
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    add_markdown(draft, page)
    metadata = dict(header.metadata)
    title = metadata.pop("title", None)
    return draft.finish(
        "text/markdown",
        title=title if isinstance(title, str) else "",
        metadata=metadata,
        warnings=(*decoded.warnings, *header.warnings),
    )


def add_markdown(draft: Draft, page: str) -> None:
    """Add the blocks of a page, each of which is a slice of its source."""
    from markdown_it import MarkdownIt

    lines = page.splitlines(keepends=True)
    # Only headings are read inside: there the library takes quadratic time over marks that never end.
    reader = MarkdownIt("commonmark").enable("table").disable("inline")
    links: dict[str, Any] = {}
    tokens = reader.parse(page, links)
    covered = 0
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, last = token.map
        # What no token covers, such as link definitions, is text like any other.
        draft.add("paragraph", "".join(lines[covered:first]))
        covered = max(covered, last)
        if kind := _KINDS.get(token.type):
            heading = kind == "heading"
            draft.add(
                kind,
                "".join(lines[first:last]),
                level=int(token.tag[1]) if heading else 0,
                label=_label(reader, tokens[index + 1].content, links) if heading else "",
            )
    draft.add("paragraph", "".join(lines[covered:]))


def _label(reader: MarkdownIt, heading: str, links: dict[str, Any]) -> str:
    """Return the words of a heading; one that is too long to be one is left as it was written."""
    if len(heading) > _LONGEST_HEADING:
        return heading
    tokens: list[Token] = []
    reader.inline.parse(heading, reader, links, tokens)
    return _ANCHOR.sub("", _words(tokens))


def _words(tokens: Sequence[Token]) -> str:
    words = []
    for token in tokens:
        if token.type in ("text", "text_special", "code_inline"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            words.append(_words(token.children or ()))
    return "".join(words)


def without_markup(text: str, *, mdx: bool) -> str:
    """Return the page without HTML and JSX tags, comments and imports; code untouched, MDX exports as code."""
    parts = _split_code(text, mdx=mdx)
    if mdx:
        parts = [piece for is_code, part in parts for piece in ([(True, part)] if is_code else _exports(part))]
    budget = _SearchBudget()
    return "".join(part if is_code else _Prose(part, mdx, budget).as_read() for is_code, part in parts)


def _split_code(text: str, *, mdx: bool) -> list[tuple[bool, str]]:
    parts: list[tuple[bool, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        opening = _FENCE.match(line)
        # MDX has no indented code.
        is_code = bool(fence) or opening is not None or (not mdx and line.startswith(("    ", "\t")))
        if fence:
            if opening and opening[1].startswith(fence) and not line[opening.end() :].strip(" \t\n`~"):
                fence = ""
        elif opening:
            fence = opening[1]
        if not parts or parts[-1][0] is not is_code:
            parts.append((is_code, []))
        parts[-1][1].append(line)
    return [(is_code, "".join(lines)) for is_code, lines in parts]


@dataclass(slots=True)
class _SearchBudget:
    """The characters of one page that may be searched in vain for the end of a mark."""

    characters: int = 1_000_000


class _Prose:
    """A stretch of a page without code, on its way to what a reader sees of it."""

    def __init__(self, text: str, mdx: bool, budget: _SearchBudget) -> None:
        self._text = text
        self._mdx = mdx
        self._budget = budget
        self._never: set[str] = set()
        """Marks that were looked for up to the end of the text and are not there."""

    def as_read(self) -> str:
        self._text = _ADMONITION.sub(lambda found: (found["bracketed"] or "") + found["rest"], self._text)
        kept = []
        position = 0
        while found := _MARKS.search(self._text, position):
            kept.append(self._text[position : found.start()])
            position, seen = self._after_mark(found)
            kept.append(seen)
        kept.append(self._text[position:])
        return "".join(kept)

    def _after_mark(self, found: re.Match[str]) -> tuple[int, str]:
        """Return the place behind a mark, and what a reader sees of it."""
        start, after = found.span()
        if ticks := found["ticks"]:
            close = self._text.find(ticks, after, after + _LONGEST_CODE)
            end = close + len(ticks) if close >= 0 else after
            return end, self._text[start:end]
        if found["comment"]:
            closing = "-->" if found["comment"] == "<!--" else "*/}"
            end = self._find(closing, after)
            return (end + len(closing), "") if end >= 0 else (after, self._text[start:after])
        if found["expression"]:
            return self._after_expression(start) if self._mdx else (after, "{")
        return self._after_tag(found)

    def _after_expression(self, start: int) -> tuple[int, str]:
        end = self._closing(start, "}")
        if end < 0:
            return start + 1, "{"
        words = self._text[start:end]
        if literal := _LITERAL.fullmatch(words):
            return end, literal[2]
        # A short expression stands for a word of its sentence; a long one is program text.
        return end, words if "\n" not in words else ""

    def _after_tag(self, found: re.Match[str]) -> tuple[int, str]:
        start, after = found.span()
        name = found["tag"].lstrip("</")
        known = name.lower() in _ELEMENTS or (self._mdx and (not name or name[0].isupper()))
        end = self._closing(after, ">") if known else -1
        if end < 0:
            return after, self._text[start:after]
        if name.lower() in _UNSEEN and not found["tag"].startswith("</"):
            closed = self._find(f"</{name}", end)
            behind = self._closing(closed, ">") if closed >= 0 else end
            return behind if behind > 0 else len(self._text), ""
        if name.lower() in ("br", "hr"):
            return end, "\n"
        # A component's words for people are often in its attributes.
        spoken = [first or second for first, second in _SPOKEN.findall(self._text, after, end)]
        return end, " ".join(spoken)

    def _find(self, words: str, position: int) -> int:
        """Return the next place of these words; -1 when there is none, which holds for every later place too."""
        found = -1 if words in self._never else self._text.find(words, position)
        if found < 0:
            self._never.add(words)
        return found

    def _closing(self, position: int, closer: str) -> int:
        """Return the place behind the closing mark, past quotes and braces; -1 when there is none near."""
        text, last = self._text, min(len(self._text), position + _LONGEST_TAG)
        if self._budget.characters <= 0 or text.find(closer, position, last) < 0:
            return -1
        depth = 0
        quote = ""
        for index in range(position, last):
            character = text[index]
            if quote:
                quote = "" if character == quote else quote
            elif character in "\"'`" and (closer == ">" or depth):
                quote = character
            elif character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
            if character == closer and not quote and depth <= 0:
                return index + 1
        self._budget.characters -= last - position
        return -1


def _exports(text: str) -> list[tuple[bool, str]]:
    """Return prose apart from what the page exports, such as data and functions; imports are left out."""
    lines = text.splitlines(keepends=True)
    pieces: list[tuple[bool, str]] = []
    position = kept_from = 0
    while position < len(lines):
        if not _STATEMENT.match(lines[position]):
            position += 1
            continue
        end = _statement_end(lines, position)
        pieces.append((False, "".join(lines[kept_from:position])))
        if lines[position].startswith("export"):
            pieces.append((True, _as_code("".join(lines[position:end]))))
        position = kept_from = end
    return [*pieces, (False, "".join(lines[kept_from:]))]


def _as_code(statement: str) -> str:
    # Code kept in a string is one endless line until its escapes are what they stand for.
    written_out = _ESCAPE.sub(lambda found: _ESCAPED[found[1]], statement)
    fence = "~" * (1 + max((len(run) for run in _TILDES.findall(written_out)), default=2))
    return f"\n{fence}\n{written_out.rstrip()}\n{fence}\n"


def _statement_end(lines: list[str], first: int) -> int:
    """Return the blank line at which the statement's brackets are closed, or else the first one."""
    depth = 0
    first_blank = 0
    for index in range(first, min(len(lines), first + _LONGEST_STATEMENT)):
        if not lines[index].strip():
            first_blank = first_blank or index
            if depth <= 0:
                return index
        depth += sum(lines[index].count(bracket) for bracket in "([{")
        depth -= sum(lines[index].count(bracket) for bracket in ")]}")
    return first_blank or len(lines)

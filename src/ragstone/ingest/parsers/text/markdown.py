"""The YAML header of a Markdown page, read without trusting it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragstone.core.documents import clean_metadata
from ragstone.core.errors import InputError
from ragstone.core.types import BlockKind, Json, Parsed
from ragstone.ingest.parsers.draft import Draft, clean
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.text.decoding import decode
from ragstone.ingest.parsers.text.markup import without_markup

if TYPE_CHECKING:
    import yaml
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MAX_CHARS = 64 * 1024
MAX_DEPTH = 20
_HEADER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


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


def parse_markdown(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a Markdown page; each block's text is a slice of the source."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    header = read_front_matter(cleaned.text)
    page = without_markup(cleaned.text[header.body_start :], mdx=name.lower().endswith(".mdx"))
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    _add_blocks(draft, page)
    metadata = dict(header.metadata)
    title = metadata.pop("title", None)
    return draft.finish(
        "text/markdown",
        title=title if isinstance(title, str) else "",
        metadata=metadata,
        warnings=(*decoded.warnings, *header.warnings),
    )


def _add_blocks(draft: Draft, page: str) -> None:
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

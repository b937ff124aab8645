"""The YAML header of a Markdown page, read without trusting it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ragstone.core.documents import clean_metadata
from ragstone.core.errors import InputError
from ragstone.core.types import Json

if TYPE_CHECKING:
    import yaml

MAX_CHARS = 64 * 1024
MAX_DEPTH = 20
_HEADER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


class FrontMatter(NamedTuple):
    """What the header says, and where the page begins."""

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

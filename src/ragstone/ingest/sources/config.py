"""The context that sources are built with, and errors in their settings explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from pydantic_core import ErrorDetails

from ragstone.core.errors import SettingsError
from ragstone.core.registry import nearest
from ragstone.ingest.sources.secrets import SecretMask
from ragstone.settings.base import SettingsModel
from ragstone.settings.tree import LimitSettings

if TYPE_CHECKING:
    from ragstone.fetch.fetcher import Fetcher

LONGEST = 80
EXPECTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "int": lambda _: "a whole number",
    "float": lambda _: "a number",
    "bool": lambda _: "true or false",
    "string": lambda _: "text",
    "string_too_short": lambda context: f"text of {context['min_length']} or more characters",
    "string_too_long": lambda context: f"text of {context['max_length']:,} or fewer characters",
    "tuple": lambda _: "a list",
    "dict": lambda _: "an object",
    "literal": lambda context: f"one of {context['expected']}",
    "greater_than": lambda context: f"more than {context['gt']:,.10g}",
    "greater_than_equal": lambda context: f"{context['ge']:,.10g} or more",
    "less_than_equal": lambda context: f"{context['le']:,.10g} or less",
}
"""Descriptions of a valid value by pydantic's name of the problem, whole or up to its first `_`."""


def explain_config_error(
    problems: Sequence[ErrorDetails],
    name: str,
    configured: type[SettingsModel],
    given: Mapping[str, Any],
    mask: SecretMask,
) -> SettingsError:
    """Return the first of the problems in words; `given` is the configuration as it was written."""
    # A misspelt key comes before a missing one: most often they are the same.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    keys = list(configured.model_fields)
    hint = f"it takes: {', '.join(keys)}"
    if first["type"] == "extra_forbidden":
        return SettingsError(f"source '{name}' has no setting '{key}'", hint=nearest(key, keys) or hint)
    if first["type"] == "missing":
        return SettingsError(f"source '{name}' needs the setting '{key}'", hint=hint)
    said = mask.hide_in_addresses(_describe_problem(first, configured, given))
    return SettingsError(f"source '{name}', setting '{key}': {said}", hint=hint)


def _describe_problem(problem: ErrorDetails, configured: type[SettingsModel], given: Mapping[str, Any]) -> str:
    kind = problem["type"]
    expected = EXPECTED.get(kind) or (
        EXPECTED.get(kind.partition("_")[0]) if kind.endswith(("_type", "_parsing", "_error", "_from_float")) else None
    )
    value = _value(problem["loc"], given)
    if expected is None or not isinstance(value, str | int | float) or _is_secret(problem["loc"], configured):
        return problem["msg"].removeprefix("Value error, ")
    shown = str(value) if len(str(value)) <= LONGEST else f"{str(value)[:LONGEST]}…"
    return f"'{shown}' is not {expected(problem.get('ctx', {}))}"


def _value(place: Sequence[str | int], given: Any) -> Any:
    """Return the value as it was written, with the names of variables: what they stand for may be secret."""
    try:
        for part in place:
            given = given[part]
    except (LookupError, TypeError):
        return None
    return given


def _is_secret(place: Sequence[str | int], configured: type[SettingsModel]) -> bool:
    field = configured.model_fields.get(str(place[0])) if place else None
    return field is not None and "SecretStr" in str(field.annotation)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The means that the operator gives to sources: a guarded fetcher, bounds and named databases."""

    fetcher: Fetcher
    limits: LimitSettings
    databases: Mapping[str, SecretStr]


class StatelessSource:
    """A source that keeps nothing open between two runs."""

    async def close(self) -> None:
        """Close nothing: a connection lives no longer than a run, and the fetcher is the operator's."""

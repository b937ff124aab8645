"""Settings of sources, typed as `KEY=VALUE`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from ragstone.core.errors import InputError
from ragstone.serve.cli.render.output import text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.settings.base import SettingsModel

WORDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
}
LOOKS_LIKE_JSON = ("[", "{", '"')


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that a kind of source can be told."""

    name: str
    type: str
    required: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source and its settings."""

    kind: str
    about: str
    schedule: str
    """When it runs unless its owner says otherwise."""
    settings: tuple[Setting, ...]


async def list_kinds(session: CliSession) -> None:
    """List the kinds of source and the settings of each."""
    found = kinds()
    from ragstone.schemas.sources import SourceKindsSchema

    session.show(SourceKindsSchema.of(kinds=found), lambda out: _draw(out, found))


def kinds() -> list[Kind]:
    """Return all kinds of source there are."""
    from ragstone.ingest.sources import KINDS, SCHEDULES, SOURCES

    return [Kind(kind, _about(SOURCES.load(kind)), SCHEDULES[kind], _settings(config_of(kind))) for kind in KINDS]


def config_of(kind: str) -> type[SettingsModel]:
    """Return the class that a kind of source is configured by; an unknown kind is refused."""
    from ragstone.ingest.sources import SOURCES, config_class

    return config_class(SOURCES.load(kind))


def read_settings(kind: str, given: Sequence[str]) -> dict[str, Any]:
    """Return the settings that were typed for a kind of source. What they mean is checked when the source is added."""
    fields = config_of(kind).model_fields
    values: dict[str, list[Any]] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not (equals and key):
            raise InputError(f"{pair!r} is not KEY=VALUE", hint="such as: path=~/notes glob='**/*.md'")
        values.setdefault(key, []).append(_value(value))
    annotations = {name: field.annotation for name, field in fields.items()}
    return {key: _fit(several, annotations.get(key)) for key, several in values.items()}


def _value(typed: str) -> Any:
    """Return JSON where it is JSON, else the text itself: a pattern may well begin with a bracket."""
    if not typed.startswith(LOOKS_LIKE_JSON):
        return typed
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed


def _fit(values: list[Any], annotation: Any) -> Any:
    takes_many = get_origin(annotation) in (list, tuple, set, frozenset)
    if len(values) == 1 and not (takes_many and isinstance(values[0], str)):
        return _resolve(values[0], annotation)
    flat = [inner for value in values for inner in (value if isinstance(value, list) else [value])]
    return [_resolve(value, annotation) for value in flat]


def _resolve(value: Any, annotation: Any) -> Any:
    """Return a path as it is from here, since a worker may run in another folder; one with a variable is left alone."""
    if not isinstance(value, str) or "${" in value or Path not in (annotation, *get_args(annotation)):
        return value
    if not value:
        raise InputError("a path is empty", hint="name a file or a folder; this one is .")
    return str(Path(value).expanduser().absolute())


def _about(source: type) -> str:
    return (source.__doc__ or "").strip().partition("\n")[0]


def _settings(config: type[SettingsModel]) -> tuple[Setting, ...]:
    schema = config.model_json_schema()
    required = schema.get("required", ())
    return tuple(
        Setting(name, _type(facts), name in required, facts.get("default"))
        for name, facts in schema.get("properties", {}).items()
    )


def _type(facts: Mapping[str, Any]) -> str:
    if "enum" in facts:
        return " | ".join(map(str, facts["enum"]))
    if "anyOf" in facts:
        said = dict.fromkeys(_type(choice) for choice in facts["anyOf"] if choice.get("type") != "null")
        return " or ".join(said)
    return WORDS.get(facts.get("type", ""), "value")


def _draw(out: Console, found: Sequence[Kind]) -> None:
    for kind in found:
        out.print(
            text(f"{kind.kind:<18}", "bold").append(kind.about).append(f" ({kind.schedule.replace('_', ' ')})", "dim")
        )
        for setting in kind.settings:
            default = "" if setting.default in (None, "", [], ()) else f", {json.dumps(setting.default)}"
            how = "needed" if setting.required else f"optional{default}"
            out.print(text(f"    {setting.name:<22}").append(f"{setting.type}, {how}", "dim"))

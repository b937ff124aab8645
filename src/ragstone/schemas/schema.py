"""The base of every shape: built from a result's attributes, printed as it was given, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from ragstone.core.clock import canonical
from ragstone.core.types import Json

T = TypeVar("T")
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in UTC, such as `2026-01-31T09:00:00+00:00`."""


class Schema(BaseModel):
    """A JSON shape; its fields are in the order in which they are printed."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,
        populate_by_name=True,
        model_title_generator=lambda schema: schema.__name__.removesuffix("Schema"),
    )

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape from the attributes of a result; `values` replace or complete them.

        Nothing is checked or converted on the way out: a file name may hold what pydantic refuses in a string.
        """
        parts = _parts(cls)
        return cls.model_construct(
            **{
                name: _plain(values[name] if name in values else getattr(source, name), parts[name])
                for name in cls.model_fields
            }
        )

    def as_json(self) -> Json:
        """Return the shape as plain dicts and lists."""
        return self.model_dump(by_alias=True, warnings=False)

    @classmethod
    def read_as(cls, kind: type[T], data: Mapping[str, Json]) -> T:
        """Return the result that a shape was made from, the reverse of `of`.

        Nothing is checked: a newer service may send more fields and other words. Fields that the shape leaves out have
        their default, or are empty.
        """
        aliases = {field.alias: name for name, field in cls.model_fields.items() if field.alias}
        named = {aliases.get(name, name): value for name, value in data.items()}
        return _build(kind, cls.restore(named), _parts(cls))

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of the result from those of the shape; for shapes that arrange them otherwise."""
        return data


def _plain(value: Any, part: type[Schema] | None) -> Any:
    """Return the value with lists for tuples, text for times, and shapes for the parts of a result."""
    match value:
        case Schema() | None:
            return value
        case list() | tuple():
            return [_plain(item, part) for item in value]
        case Mapping():
            return {name: _plain(item, part) for name, item in value.items()}
        case datetime():
            return canonical(value)
        case _:
            return part.of(value) if part else value


@cache
def _parts(schema: type[Schema]) -> Mapping[str, type[Schema] | None]:
    return {name: _part(field.annotation) for name, field in schema.model_fields.items()}


def _part(annotation: Any) -> type[Schema] | None:
    """Return the shape in an annotation such as `list[HitSchema]` or `JobSchema | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Schema):
        return annotation
    found = (_part(argument) for argument in get_args(annotation))
    return next((part for part in found if part), None)


def _build(kind: type[T], data: Mapping[str, Json], parts: Mapping[str, type[Schema] | None]) -> T:
    hints = _hints(kind)  # type: ignore[arg-type]  # mypy does not know that classes are hashable
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # T stands for dataclasses only
        if field.name in data:
            values[field.name] = _read(hints[field.name], data[field.name], parts.get(field.name))
        elif field.default is MISSING and field.default_factory is MISSING:
            values[field.name] = _empty(hints[field.name])
    return kind(**values)


def _read(hint: Any, value: Json, part: type[Schema] | None) -> Any:
    """Return a JSON value as the type that the field of a result has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if value is None:
        return None
    if origin in (Union, UnionType):
        return _read(next(argument for argument in arguments if argument is not NoneType), value, part)
    if origin is list:
        return [_read(arguments[0], item, part) for item in value]
    if origin in (tuple, Sequence):
        return tuple(_read(arguments[0], item, part) for item in value)
    if origin in (dict, Mapping):
        return {name: _read(arguments[1], item, part) for name, item in value.items()}
    if hint is datetime:
        return datetime.fromisoformat(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return part.read_as(hint, value) if part else _build(hint, value, {})
    return value


def _empty(hint: Any) -> Any:
    """Return the value of a field that a shape does not have."""
    kind = get_origin(hint) or hint
    if kind is Mapping:
        return {}
    return kind() if kind in (str, int, float, bool, tuple, dict, list) else None


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)

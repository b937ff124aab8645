"""The base of every shape: built from a result's attributes, printed as it was given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Self, get_args

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from ragstone.core.clock import canonical
from ragstone.core.types import Json

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

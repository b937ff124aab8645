"""Checks that every vector provider makes, with the same messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from ragstone.core.errors import InputError, ModelMismatch, SettingsError
from ragstone.core.filters import Filter, In, leaves_of
from ragstone.core.types import Vector
from ragstone.core.vectors import RESERVED, Capabilities, Isolation, Point, VectorPartition
from ragstone.settings.tree import Adapter

CHUNK_ID = re.compile(r"[0-9a-f]{32}")


def check_isolation(name: str, isolation: Isolation, capabilities: Capabilities) -> None:
    """Refuse an isolation that the engine does not have."""
    if isolation not in capabilities.isolation:
        raise SettingsError(
            f"{name} cannot keep tenants apart by '{isolation}'",
            hint=f"choose one of: {', '.join(sorted(capabilities.isolation))}",
        )


def check_options(adapter: Adapter, known: Iterable[str]) -> None:
    """Refuse an option that has no effect."""
    known = sorted(known)
    for name in adapter.options:
        if name not in known:
            raise SettingsError(
                f"store.vectors.options.{name} is not an option of {adapter.kind}",
                hint=f"its options are: {', '.join(known)}" if known else f"{adapter.kind} has no options",
            )


def seconds_option(adapter: Adapter, name: str, default: float) -> float:
    """Return an option that is a number of seconds above zero."""
    value = adapter.options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 86_400:
        raise SettingsError(
            f"store.vectors.options.{name} is {value!r:.40}", hint="give a number of seconds above zero"
        )
    return float(value)


def check_dimension(partition: VectorPartition, dimension: int, *, what: str = "a vector") -> None:
    """Refuse vectors of another length than the partition was made for."""
    if dimension != partition.dimension:
        raise ModelMismatch(
            f"{what} of {dimension} dimensions does not fit a space of {partition.dimension}",
            hint="use the embedding model that the space was built with",
        )


def unit(vector: Vector, what: str = "the query") -> Vector:
    """Return the vector at length one; a zero vector stays as it is."""
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length):
        raise InputError(f"the vector of {what} holds a number that is not finite")
    made: Vector = np.asarray(vector / length if length else vector, np.float32)
    return made


def name_point(point: Point) -> str:
    """Return the name of a point for messages: that of its document, if it says so."""
    uri = point.payload.get("uri")
    return f"'{uri}'" if uri else f"chunk {point.chunk_id}"


def real_ids(chunk_ids: Sequence[str]) -> list[str]:
    """Return each id once, without those that cannot be ids of chunks: these never reach an engine."""
    return [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if CHUNK_ID.fullmatch(chunk_id)]


def names_reserved(where: Filter) -> bool:
    """Return whether a filter names a field that is Ragstone's own in every payload."""
    return any(leaf.field in RESERVED for leaf in leaves_of(where))


def count_values(where: Filter) -> int:
    """Count the values that a filter names; a range counts as one."""
    return sum(len(leaf.values) if isinstance(leaf, In) else 1 for leaf in leaves_of(where))


def newest_points(partition: VectorPartition, points: Sequence[Point], *, wordless: bool = True) -> list[Point]:
    """Return the last point of each chunk; refuse vectors that do not fit. Without `wordless` one may be empty."""
    for point in points:
        if wordless or len(point.vector):
            check_dimension(partition, len(point.vector))
    return list({point.chunk_id: point for point in points}.values())

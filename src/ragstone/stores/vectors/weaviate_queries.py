"""GraphQL for Weaviate. Everything that varies is ASCII text, a number or a fixed word, and is written by `literal`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ragstone.core.types import Json

VALUES = {"valueTextArray": "valueText"}
"""Fields that GraphQL names otherwise than REST does."""


def get_query(
    name: str, fields: str, *, tenant: str, where: Json, limit: int, vector: Sequence[float] | None = None
) -> str:
    """Objects of a class: the nearest to a vector, or any."""
    given: dict[str, Any] = {"limit": limit, "where": where}
    if vector is not None:
        given["nearVector"] = {"vector": list(vector)}
    return f"{{ Get {{ {name}{_arguments(given, tenant)} {{ {fields} }} }} }}"


def count_query(name: str, *, tenant: str, where: Json) -> str:
    """How many objects of a class there are."""
    return f"{{ Aggregate {{ {name}{_arguments({'where': where}, tenant)} {{ meta {{ count }} }} }} }}"


def _arguments(given: dict[str, Any], tenant: str) -> str:
    if tenant:
        given = {"tenant": tenant} | given
    return "(" + ", ".join(f"{key}: {literal(value)}" for key, value in given.items()) + ")"


def literal(value: Json, key: str = "") -> str:
    """A value as GraphQL writes it: like JSON, but with bare keys and bare words for operators."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{VALUES.get(k, k)}: {literal(v, k)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return str(value) if key == "operator" else json.dumps(value)

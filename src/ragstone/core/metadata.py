"""Metadata as it may enter the ledger: plain JSON, bounded, dates in canonical form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from ragstone.core.clock import canonical
from ragstone.core.errors import InputError
from ragstone.core.filters import FIELD, canonical_number, canonical_text
from ragstone.core.types import Metadata

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32


def clean_metadata(raw: Mapping[Any, Any]) -> Metadata:
    """A copy that can be stored and filtered; refuses what cannot."""
    cleaned = {_key(key): _value(key, value) for key, value in raw.items()}
    if len(json.dumps(cleaned)) > MAX_BYTES:
        raise InputError(f"metadata is larger than {MAX_BYTES // 1024} KiB")
    return cleaned


def _key(key: Any) -> str:
    if not isinstance(key, str) or not FIELD.fullmatch(key):
        raise InputError(
            f"metadata key {key!r:.80} is not a field name",
            hint="letters, digits, '_', '.' and '-', starting with a letter",
        )
    return key


def _value(key: str, value: Any, depth: int = 1) -> Any:
    if depth > MAX_DEPTH:
        raise InputError(f"metadata '{key}' is nested more than {MAX_DEPTH} deep")
    match value:
        case datetime() | date():
            return canonical(value)
        case str():
            return canonical_text(value.encode("utf-8", "replace").decode())
        case None | bool():
            return value
        case int():
            return canonical_number(value)
        case float() if value == value and abs(value) != float("inf"):
            return value
        case list() | tuple():
            return [_value(key, item, depth + 1) for item in value]
        case Mapping():
            return {_key(inner): _value(inner, item, depth + 1) for inner, item in value.items()}
    raise InputError(f"metadata '{key}' holds {type(value).__name__}, which is not JSON")

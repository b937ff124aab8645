"""Settings in force, without their secrets."""

from __future__ import annotations

import re

from pydantic import RootModel

from ragstone.core.types import Json
from ragstone.schemas.schema import Schema

MASK = "**********"
SECRET_KEY = re.compile(r"(password|passwd|secret|token|api_?key|credential)s?$", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*(?=@)")


class SettingsSchema(Schema, RootModel[dict[str, Json]]):
    """All settings and their values."""


def mask_secrets(value: Json, key: str = "") -> Json:
    """Return settings with passwords masked, also inside options and addresses."""
    match value:
        case dict():
            return {name: mask_secrets(inner, str(name)) for name, inner in value.items()}
        case list():
            return [mask_secrets(inner, key) for inner in value]
        case str() if SECRET_KEY.search(key):
            return MASK
        case str():
            return IN_ADDRESS.sub(rf"\1:{MASK}", value)
        case _:
            return value

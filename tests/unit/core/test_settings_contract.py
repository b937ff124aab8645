"""Defaults and bounds of all settings, which files of users rely on; `GOLDEN=write` notes those of new settings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from tests.golden_files import FOLDER

from ragstone.settings.base import SettingsModel
from ragstone.settings.tree import Settings

BOUNDS = {Ge: "ge", Gt: "gt", Le: "le", Lt: "lt", MinLen: "min_length", MaxLen: "max_length"}
FILE = FOLDER / "settings.json"


def describe(settings: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name of each setting with its default and its bounds."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, SettingsModel):
            yield from describe(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", {"default": to_jsonable_python(value), **bounds_of(field)}


def bounds_of(field: FieldInfo) -> dict[str, Any]:
    found = ((bound, BOUNDS.get(type(bound), "")) for bound in field.metadata)
    return {name: getattr(bound, name) for bound, name in found if name}


def test_no_default_and_no_bound_changes_unnoticed() -> None:
    now = dict(describe(Settings()))
    if os.environ.get("GOLDEN") == "write":
        FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    noted = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(noted) > 100
    assert {name: json.loads(json.dumps(now.get(name))) for name in noted} == noted

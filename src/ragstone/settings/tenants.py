"""Settings of one tenant: retrieval, embedding model, profile and feature flags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError

from ragstone.core.errors import SettingsError
from ragstone.core.registry import nearest
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json, Metadata
from ragstone.settings.flags import read_flag
from ragstone.settings.retrieval import RetrievalSettings
from ragstone.settings.targets import Target
from ragstone.settings.tree import ProfileName, Settings

RETRIEVAL, MODEL, PROFILE, FLAGS = "retrieval.", "embedding.model", "profile", "flags."
OPERATORS_OWN = frozenset({"dictionary", "wordnet"})
"""Settings of retrieval that name files of this machine: not for a tenant to point elsewhere."""
KEYS = (PROFILE, MODEL, *(f"{RETRIEVAL}{name}" for name in RetrievalSettings.model_fields if name not in OPERATORS_OWN))
FLAG = re.compile(r"flags\.[a-z][a-z0-9_]{0,62}")
MOST = 100
LONGEST_MODEL = 255


def packed_settings(settings: Metadata) -> str:
    """Return the settings as they are stored: every key known, every value checked."""
    if len(settings) > MOST:
        raise SettingsError(f"a tenant cannot have more than {MOST} settings of its own")
    return json.dumps({key: _check_setting(key, value) for key, value in settings.items()}, sort_keys=True)


def apply_tenant_settings(settings: Settings, own: Metadata, profile: Mapping[str, Any]) -> Settings:
    """Return the engine's settings, with those of the tenant's profile over them and the tenant's own over both."""
    if not own:
        return settings
    retrieval = {
        **settings.retrieval.model_dump(),
        **profile.get("retrieval", {}),
        **{key.removeprefix(RETRIEVAL): value for key, value in own.items() if key.startswith(RETRIEVAL)},
    }
    changed: dict[str, Any] = {"retrieval": RetrievalSettings.model_validate(retrieval)}
    model = own.get(MODEL) or profile.get("embedding", {}).get("model") or settings.embedding.model
    if model != settings.embedding.model:
        # The folder, the dimension and the fallback are those of the other model.
        others = {"model": model, "path": None, "dimensions": None, "fallback": None, "price": None}
        changed["embedding"] = settings.embedding.model_copy(update=others)
    if targets := profile.get("targets"):
        changed["targets"] = {name: Target.model_validate(target) for name, target in targets.items()}
    return settings.model_copy(update=changed)


def _check_setting(key: str, value: Json) -> Json:
    if key.startswith(FLAGS) and FLAG.fullmatch(key):
        return _flag(key, value)
    if key not in KEYS:
        raise SettingsError(
            f"'{key!s:.80}' cannot be set for one tenant",
            hint=nearest(key, KEYS) or "retrieval.*, embedding.model, profile and flags.NAME can be",
        )
    if key == PROFILE:
        if value not in get_args(ProfileName):
            raise SettingsError(
                f"there is no profile '{value!s:.40}'", hint=f"choose one of: {', '.join(get_args(ProfileName))}"
            )
        return value
    if key == MODEL:
        if not (isinstance(value, str) and value.isprintable() and 0 < len(value) <= LONGEST_MODEL):
            raise SettingsError(f"embedding.model cannot be {value!r:.80}", remedy=Remedy(Action.LIST_MODELS))
        return value
    return _of_retrieval(key.removeprefix(RETRIEVAL), value)


def _of_retrieval(name: str, value: Json) -> Json:
    try:
        return RetrievalSettings.model_validate({name: value}).model_dump(mode="json")[name]
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise SettingsError(f"setting '{RETRIEVAL}{name}': {message}") from error


def _flag(key: str, value: Json) -> bool | float:
    try:
        return read_flag(value)
    except ValueError:
        raise SettingsError(f"{key} cannot be {value!r:.40}", hint="give true, false, or a share such as 25%") from None

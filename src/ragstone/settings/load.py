"""Reading settings: argument > environment > YAML file > profile > default.

A file that was named and is not there, a misspelt key, a misspelt `RAGSTONE_*` variable and an undefined
`${VARIABLE}` are errors that name the key.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ragstone.core.errors import SettingsError
from ragstone.core.registry import nearest
from ragstone.core.remedies import Action, Remedy
from ragstone.settings.designs import BLOCKS, read_variables, translate, translate_file
from ragstone.settings.tree import ProfileName, Settings

PREFIX = "RAGSTONE_"
CONFIG_FILE = "ragstone.yaml"
# Read by other parts, or before there are settings.
NOT_SETTINGS = {"RAGSTONE_CONFIG", "RAGSTONE_CACHE_DIR"}
REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
Tree = dict[str, Any]


def load_settings(
    *,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of this process. `overrides` maps dotted keys such as `retrieval.k` to values."""
    env = os.environ if environment is None else environment
    arguments = _nest_keys({key: value for key, value in (overrides or {}).items() if value is not None})
    from_env = _from_environment(env)
    from_file = _from_file(config, env)
    profile = next(
        (str(tree["profile"]) for tree in (arguments, from_env, from_file) if tree.get("profile")), "default"
    )
    variables = read_variables(env, profile, from_file)
    design = translate_file(from_file, variables, lambda key, value: _expand_text(key, value, env))
    from_file = _merge_trees(_nest_keys(design), from_file)
    from_variables = _nest_keys(translate(variables))
    merged: Tree = {}
    for tree in (_from_profile(profile), from_file, from_variables, from_env, arguments, {"profile": profile}):
        merged = _merge_trees(merged, tree)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise _explain_error(error) from error


def read_profile(name: str) -> Tree:
    """Return the settings of a profile."""
    return _from_profile(name)


def known_keys() -> list[str]:
    """Return all dotted keys."""
    return list(_keys(Settings))


def _from_profile(name: str) -> Tree:
    names = get_args(ProfileName)
    if name not in names:
        raise SettingsError(f"there is no profile '{name}'", hint=f"choose one of: {', '.join(names)}")
    text = resources.files("ragstone.settings.profiles").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text) or {}


def _from_file(config: Path | None, env: Mapping[str, str]) -> Tree:
    named = config or (Path(env["RAGSTONE_CONFIG"]) if env.get("RAGSTONE_CONFIG") else None)
    path = named or Path(CONFIG_FILE)
    if not path.is_file():
        if named:
            raise SettingsError(f"the settings file {path} does not exist", hint="check --config and RAGSTONE_CONFIG")
        return {}
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if not isinstance(tree, dict):
            raise SettingsError(f"{path} must hold keys and values, such as 'kb: handbook'")
        return {key: _expand_variables(str(key), value, env) for key, value in tree.items()}
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid YAML: {error}") from error


def _expand_variables(key: str, value: Any, env: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {inner: _expand_variables(f"{key}.{inner}", item, env) for inner, item in value.items()}
    if isinstance(value, list):
        return [_expand_variables(key, item, env) for item in value]
    # Which of the designs' vector stores counts is known later.
    return value if key.startswith(BLOCKS) else _expand_text(key, value, env)


def _expand_text(key: str, value: Any, env: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if name in env:
            return env[name]
        if default is None:
            raise SettingsError(
                f"{key} refers to ${{{name}}}, which is not set", hint=f"export {name}=… or write ${{{name}:-default}}"
            )
        return default

    return REFERENCE.sub(replacement, value)


def _from_environment(env: Mapping[str, str]) -> Tree:
    keys = known_keys()
    values: dict[str, Any] = {}
    for name, text in env.items():
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        key = name.removeprefix(PREFIX).lower().replace("__", ".")
        if not any(key == known or key.startswith(f"{known}.") for known in keys):
            hint = nearest(key, keys)
            raise SettingsError(f"the environment variable {name} sets no known key ({key})", hint=hint)
        values[key] = _parse_value(text)
    return _nest_keys(values)


def _parse_value(text: str) -> Any:
    """Lists and mappings are written as JSON; what only looks like it, such as `[{index}]`, is text."""
    if text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _nest_keys(values: Mapping[str, Any]) -> Tree:
    tree: Tree = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        branch = tree
        for parent in parents:
            below = branch.setdefault(parent, {})
            branch[parent] = branch = below if isinstance(below, dict) else {"kind": below}
        here = branch.get(last)
        branch[last] = {"kind": value, **here} if isinstance(here, dict) and not isinstance(value, dict) else value
    return tree


def _merge_trees(below: Tree, above: Tree) -> Tree:
    merged = dict(below)
    for key, value in above.items():
        here = merged.get(key)
        if isinstance(value, dict) and isinstance(here, str):
            # `vectors: chroma` below, `vectors.url` above: the short form stands for {kind: chroma}.
            here = {"kind": here}
        merged[key] = _merge_trees(here, value) if isinstance(here, dict) and isinstance(value, dict) else value
    return merged


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield f"{prefix}{name}"
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _keys(info.annotation, f"{prefix}{name}.")


def _explain_error(error: ValidationError) -> SettingsError:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return SettingsError(f"unknown setting '{key}'", hint=nearest(key, known_keys()))
    message = first["msg"].removeprefix("Value error, ")
    return SettingsError(f"setting '{key}': {message}", remedy=Remedy(Action.SHOW_SETTINGS))

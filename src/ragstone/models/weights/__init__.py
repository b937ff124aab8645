"""Finds a model's weights: an installed package, a local folder, or a pulled model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ragstone.core.errors import ModelUnavailable
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Role
from ragstone.models.runtime.encoder import Encoder
from ragstone.models.weights.catalogue import canonical_name
from ragstone.models.weights.folder import ModelFolder
from ragstone.models.weights.hub import pulled_folder
from ragstone.models.weights.packages import COMMANDS, find_installed


class Weights(Protocol):
    """A model's weights and what is needed to use them."""

    @property
    def revision(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def prompts(self) -> Mapping[Role, str]: ...
    def tokenizer_json(self) -> bytes: ...
    def encoder(self) -> Encoder: ...


def find_weights(name: str, *, path: Path | None, cache: Path) -> Weights:
    """Return the weights of a model. Nothing is downloaded: missing weights raise `ModelUnavailable`."""
    if path is not None:
        return _folder(path, cache)
    canonical = canonical_name(name)
    pulled = pulled_folder(canonical, cache)
    if canonical in COMMANDS:
        try:
            found = find_installed(canonical, cache)
        except ModelUnavailable:
            if not pulled.is_dir():
                raise
            found = None
        if found is not None:
            return found
    if pulled.is_dir():
        return ModelFolder(pulled, cache=cache)
    raise ModelUnavailable(
        f"the weights of '{name}' are not on this machine", remedy=Remedy(Action.PULL_MODEL, model=name)
    )


def _folder(path: Path, cache: Path) -> ModelFolder:
    if not path.is_dir():
        raise ModelUnavailable(
            f"the model folder {path} does not exist",
            hint="name a folder with config.json, model.safetensors and tokenizer.json",
        )
    return ModelFolder(path, cache=cache)

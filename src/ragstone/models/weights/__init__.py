"""Find a model's weights: an installed package, a local folder, or a model that was pulled from the hub on request."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ragstone.core.errors import InputError, ModelError, ModelUnavailable
from ragstone.core.registry import nearest
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Role
from ragstone.models.runtime.encoder import Encoder
from ragstone.models.weights.artefacts import cache_folder
from ragstone.models.weights.catalogue import HUB_NAMES, canonical_name
from ragstone.models.weights.folder import ModelFolder
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


HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")

FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "1_Pooling/config.json"]

SENTENCE_FILES = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"]


def pulled_folder(name: str, cache: Path) -> Path:
    """Return the folder of a pulled model. A name cannot point outside of the cache."""
    if not HUB_NAME.fullmatch(name) or ".." in name:
        raise InputError(f"'{name}' is not a model name", hint="use a name such as BAAI/bge-small-en-v1.5")
    hub_name = HUB_NAMES.get(canonical_name(name), name)
    return cache / "hub" / hub_name.replace("/", "--")


def pull(name: str, *, revision: str | None = None, cache_dir: Path | None = None) -> Path:
    """Download a model into the cache and return its folder."""
    folder = pulled_folder(name, cache_folder(cache_dir))
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise ModelUnavailable(
            f"'{name}' cannot be pulled: the hub client is not installed", hint='pip install "ragstone[hub]"'
        ) from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, suffix=".partial"))
    try:
        hub_name = HUB_NAMES.get(canonical_name(name), name)
        snapshot_download(hub_name, revision=revision, local_dir=work, allow_patterns=FILES + SENTENCE_FILES)
        ModelFolder(work).encoder()
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    except (OSError, HfHubHTTPError) as error:
        raise _not_pulled(name, error) from error
    except ModelError as error:
        raise type(error)(
            f"'{name}' was pulled but cannot be used: {error}", hint=error.hint, remedy=error.remedy
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _not_pulled(name: str, error: OSError) -> ModelUnavailable:
    """Return what happened in words; those of the client may hold a token."""
    like_others = nearest(name, (*COMMANDS, *HUB_NAMES))
    match type(error).__name__:
        case "RepositoryNotFoundError" | "GatedRepoError":
            return ModelUnavailable(
                f"there is no model '{name}' on the Hugging Face Hub, or it asks for a login",
                hint=like_others or "name it as the hub does",
                remedy=None if like_others else Remedy(Action.PULL_MODEL, model="BAAI/bge-small-en-v1.5"),
            )
        case "LocalEntryNotFoundError" | "OfflineModeIsEnabled" | "ConnectError" | "ConnectTimeout" | "ConnectionError":
            return ModelUnavailable(
                f"'{name}' could not be pulled: the Hugging Face Hub cannot be reached",
                hint="check the network and try again",
                remedy=Remedy(Action.PULL_MODEL, model=name),
            )
        case kind:
            return ModelUnavailable(
                f"'{name}' could not be pulled: {error.strerror or kind}",
                hint="check the network and the disk, then try again",
                remedy=Remedy(Action.PULL_MODEL, model=name),
            )

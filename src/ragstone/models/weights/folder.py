"""Reads a model from a folder as the hub lays it out: config.json, model.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Role
from ragstone.models.encoder import Activation, Encoder, Pooling
from ragstone.models.weights.fingerprint import file_sha256
from ragstone.models.weights.layouts import FAMILIES, encoder_tensors
from ragstone.models.weights.safetensor import read_tensors

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
        """The longest input, special tokens included."""
        longest = int(self._config["max_position_embeddings"]) - self._position_offset
        said = self._json("sentence_bert_config.json").get("max_seq_length")
        limit = self._json("tokenizer_config.json").get("model_max_length")
        return min(int(value) for value in (longest, said, limit) if value)

    @cached_property
    def prompts(self) -> Mapping[Role, str]:
        """What goes before a query and before a document."""
        said = self._json("config_sentence_transformers.json").get("prompts") or {}
        document = said.get("document") or said.get("passage") or ""
        return {"query": said.get("query") or "", "document": document}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What a classifier calls its classes, in the order of its outputs; none when it does not say."""
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
        """All weights, under this project's names."""
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
        """RoBERTa and its kin count positions from behind the padding id."""
        return 0 if self._config["model_type"] == "bert" else int(self._config.get("pad_token_id", 1)) + 1

    @property
    def _pooling(self) -> Pooling:
        said = self._json("1_Pooling/config.json")
        if said.get("pooling_mode_cls_token") or said.get("pooling_mode") == "cls":
            return "cls"
        if said and not said.get("pooling_mode_mean_tokens") and said.get("pooling_mode") != "mean":
            raise ModelError(
                f"the model in {self.path} pools in a way that cannot be run here", hint="use cls or mean"
            )
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
            raise ModelError(
                f"{self.path / name} cannot be read: {error}", hint="get the model again"
            ) from error
        return content if isinstance(content, dict) else {}

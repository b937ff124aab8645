"""The encoders once more, one text at a time in float64, written from the published descriptions.

Shares nothing with the code under test but the names in the weight files.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tests.unit.models.tiny import head_names, layer_names

ERF = np.vectorize(math.erf)
Array = Any


def reference_states(folder: Path, ids: list[int], types: list[int] | None = None) -> Array:
    """The last layer's states of one unpadded input."""
    config = json.loads((folder / "config.json").read_text())
    family = config["model_type"]
    tensors = _tensors(folder)
    skip = 0 if family == "bert" else config["pad_token_id"] + 1
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][np.arange(len(ids)) + skip]
    if "embeddings.token_type_embeddings.weight" in tensors:
        x = x + tensors["embeddings.token_type_embeddings.weight"][types or [0] * len(ids)]
    x = _norm(x, tensors, "embeddings.LayerNorm", config["layer_norm_eps"])
    bias = _relative_bias(tensors, len(ids)) if family == "mpnet" else 0.0
    for index in range(config["num_hidden_layers"]):
        names = layer_names(family, index)
        query, key, value = (_linear(x, tensors, name) for name in names["qkv"])
        mixed = _attention(query, key, value, config["num_attention_heads"], bias)
        x = _norm(x + _linear(mixed, tensors, names["ao"]), tensors, names["aln"], config["layer_norm_eps"])
        wide = _linear(x, tensors, names["f1"])
        wide = 0.5 * wide * (1.0 + ERF(wide / math.sqrt(2.0)))
        x = _norm(x + _linear(wide, tensors, names["f2"]), tensors, names["fln"], config["layer_norm_eps"])
    return x


def reference_logits(folder: Path, ids: list[int], types: list[int]) -> Array:
    """What the classification head says."""
    family = json.loads((folder / "config.json").read_text())["model_type"]
    states = reference_states(folder, ids, types if family == "bert" else None)
    dense, out = (name.removeprefix("bert.") for name in head_names(family))
    tensors = _tensors(folder)
    return _linear(np.tanh(_linear(states[0], tensors, dense)), tensors, out)


def granite_vector(pack: Path, ids: list[int]) -> Array:
    """Granite's vector of one text, straight from the pack."""
    content = pack.read_bytes()
    (length,) = struct.unpack_from("<Q", content, 8)
    header = json.loads(content[16 : 16 + length])
    place = 16 + length + header["tokenizer_len"]
    tensors: dict[str, Array] = {}
    for entry in header["tensors"]:
        raw = content[place : place + entry["len"]]
        place += entry["len"]
        count = math.prod(entry["shape"])
        if entry["dtype"] == "f32":
            values = np.frombuffer(raw, "<f4").astype(np.float64)
        else:
            scales = np.frombuffer(raw[count:], "<f4").astype(np.float64)
            values = np.frombuffer(raw[:count], np.int8) * np.repeat(scales, 64)
        tensors[entry["name"].replace(".w", ".weight").replace(".b", ".bias")] = values.reshape(entry["shape"])
    x = tensors["word_emb"][ids] + tensors["pos_emb"][np.arange(len(ids)) + 2] + tensors["type_emb"][0]
    x = _norm(x, tensors, "emb_ln", 1e-12)
    for index in range(6):
        query, key, value = np.split(_linear(x, tensors, f"l{index}.qkv"), 3, axis=1)
        mixed = _attention(query, key, value, 12, 0.0)
        x = _norm(x + _linear(mixed, tensors, f"l{index}.ao"), tensors, f"l{index}.aln", 1e-12)
        wide = _linear(x, tensors, f"l{index}.f1")
        wide = 0.5 * wide * (1.0 + ERF(wide / math.sqrt(2.0)))
        x = _norm(x + _linear(wide, tensors, f"l{index}.f2"), tensors, f"l{index}.fln", 1e-12)
    return x[0] / np.linalg.norm(x[0])


def _tensors(folder: Path) -> dict[str, Array]:
    named = load_file(folder / "model.safetensors")
    bare = {
        name.split(".", 1)[1] if name.split(".")[0] in ("bert", "roberta", "mpnet") else name: name for name in named
    }
    return {name: named[full].astype(np.float64) for name, full in bare.items()}


def _linear(x: Array, tensors: dict[str, Array], name: str) -> Array:
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def _norm(x: Array, tensors: dict[str, Array], name: str, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def _attention(query: Array, key: Array, value: Array, heads: int, bias: Array) -> Array:
    width = query.shape[1] // heads
    mixed = np.zeros_like(query)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = query[:, part] @ key[:, part].T / math.sqrt(width)
        scores = scores + (bias[head] if isinstance(bias, np.ndarray) else 0.0)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed[:, part] = weights / weights.sum(-1, keepdims=True) @ value[:, part]
    return mixed


def _relative_bias(tensors: dict[str, Array], length: int) -> Array:
    table = tensors["encoder.relative_attention_bias.weight"]
    bias = np.zeros((table.shape[1], length, length))
    for query in range(length):
        for key in range(length):
            bias[:, query, key] = table[_bucket(query - key, len(table))]
    return bias


def _bucket(behind: int, buckets: int) -> int:
    """T5's bucketing: half the buckets for keys before the query, half for keys after it."""
    half = buckets // 2
    start = half if behind < 0 else 0
    distance = abs(behind)
    if distance < half // 2:
        return start + distance
    far = half // 2 + int(math.log(distance / (half // 2)) / math.log(128 / (half // 2)) * (half - half // 2))
    return start + min(far, half - 1)

"""Encoder architectures, and their networks layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Matrix

Pooling = Literal["cls", "mean"]
Activation = Literal["gelu", "gelu_tanh", "relu"]
Ids = NDArray[np.int64]
BUILD = "1"
"""Part of every cached file's name: change it when the drawn graph changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A matrix kept as int8 with one scale per group of values along each row."""

    values: NDArray[np.int8]
    """Rows × groups × group size."""
    scales: NDArray[np.float32]
    """Rows × groups × 1."""

    @property
    def shape(self) -> tuple[int, int]:
        rows, groups, size = self.values.shape
        return rows, groups * size

    def dense(self) -> NDArray[np.float32]:
        """Return the float32 matrix it stands for."""
        return (self.values * self.scales).reshape(self.shape)


Tensor = NDArray[np.float32] | Grouped


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A post-norm encoder of the BERT family, with pooling or with a classification head.

    Tensor names: `word_emb`, `pos_emb` (its first row is position 0), `type_emb`, `emb_ln.{w,b}`, `rel_bias`
    (buckets × heads), per layer `l{i}.` with `qkv` (query, key and value stacked), `ao`, `aln`, `f1`, `f2`,
    `fln`, and for a head `head.dense` and `head.out`. Only the words and the layers are required.
    """

    layers: int
    heads: int
    epsilon: float
    activation: Activation
    pooling: Pooling
    tensors: Mapping[str, Tensor]

    @property
    def hidden_size(self) -> int:
        return int(self.tensors["word_emb"].shape[1])

    @property
    def has_head(self) -> bool:
        return "head.out.w" in self.tensors

    @property
    def uses_types(self) -> bool:
        """Return whether type ids tell the two texts of a pair apart."""
        return self.has_head and "type_emb" in self.tensors and self.tensors["type_emb"].shape[0] > 1

    def without_head(self) -> Encoder:
        """Return the same encoder for embedding: pooled instead of classified."""
        kept = {name: tensor for name, tensor in self.tensors.items() if not name.startswith("head.")}
        return replace(self, tensors=kept)

    def dense(self, name: str) -> NDArray[np.float32]:
        """Return a tensor as float32."""
        tensor = self.tensors[name]
        return tensor.dense() if isinstance(tensor, Grouped) else tensor


def relative_buckets(distances: NDArray[np.int64], buckets: int, farthest: int = 128) -> NDArray[np.int64]:
    """Return the bias bucket of each key-minus-query distance: exact when near, logarithmic when far."""
    half = buckets // 2
    exact = half // 2
    away = np.abs(distances)
    scaled = np.log(np.maximum(away, 1) / exact) / np.log(farthest / exact) * (half - exact)
    far = np.minimum(exact + scaled.astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(away < exact, away, far)


Node = Any
"""A node of the runtime's own graph."""


class Runtime(Protocol):
    """A loaded encoder. `run` is safe from several threads."""

    @property
    def workers(self) -> int:
        """Return the number of parallel calls of `run` that keep the machine busy."""
        ...

    def run(self, ids: Ids, mask: Ids, types: Ids | None = None) -> Matrix:
        """Return one row per row of ids."""
        ...


class Operators(Protocol):
    """Operators that a runtime must provide."""

    def constant(self, array: NDArray[Any]) -> Node: ...
    def input(self, name: str) -> Node: ...
    def rows(self, table: Tensor, ids: Node) -> Node: ...
    def first_rows(self, table: NDArray[np.float32], ids: Node) -> Node:
        """Return as many rows of the table as `ids` has columns."""
        ...

    def linear(self, x: Node, weight: Tensor, bias: NDArray[np.float32]) -> Node: ...
    def add(self, a: Node, b: Node) -> Node: ...
    def layer_norm(self, x: Node, scale: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float) -> Node: ...
    def activate(self, x: Node, kind: Activation) -> Node: ...
    def tanh(self, x: Node) -> Node: ...
    def attend(self, qkv: Node, heads: int, width: int, bias: Node) -> Node:
        """Multi-head attention over stacked query, key and value; `width` is one head's."""
        ...

    def padding_bias(self, mask: Node) -> Node:
        """Return 0 for tokens and a very negative number for padding, shaped to fit the scores."""
        ...

    def distance_bias(self, by_distance: NDArray[np.float32], ids: Node) -> Node:
        """Scores' bias from a table whose middle row is distance 0; columns are heads."""
        ...

    def first_token(self, x: Node) -> Node: ...
    def masked_mean(self, x: Node, mask: Node) -> Node: ...


def draw(encoder: Encoder, ops: Operators) -> tuple[list[Node], Node]:
    """Draw the encoder: its inputs in order (ids, mask and, for pairs, types) and its output."""
    ids, mask = ops.input("ids"), ops.input("mask")
    inputs = [ids, mask]
    if encoder.uses_types:
        inputs.append(ops.input("types"))
    x = _embed(encoder, ops, inputs)
    bias = _attention_bias(encoder, ops, ids, mask)
    for index in range(encoder.layers):
        x = _layer(encoder, ops, f"l{index}", x, bias)
    if encoder.has_head:
        x = ops.tanh(_linear(encoder, ops, "head.dense", ops.first_token(x)))
        return inputs, _linear(encoder, ops, "head.out", x)
    return inputs, ops.first_token(x) if encoder.pooling == "cls" else ops.masked_mean(x, mask)


def _embed(encoder: Encoder, ops: Operators, inputs: list[Node]) -> Node:
    positions = encoder.dense("pos_emb")
    if "type_emb" in encoder.tensors and not encoder.uses_types:
        # A single text is all of type 0: adding that row to every position saves a lookup.
        positions = positions + encoder.dense("type_emb")[0]
    x = ops.add(ops.rows(encoder.tensors["word_emb"], inputs[0]), ops.first_rows(positions, inputs[0]))
    if encoder.uses_types:
        x = ops.add(x, ops.rows(encoder.tensors["type_emb"], inputs[2]))
    return _norm(encoder, ops, "emb_ln", x)


def _attention_bias(encoder: Encoder, ops: Operators, ids: Node, mask: Node) -> Node:
    padding = ops.padding_bias(mask)
    if "rel_bias" not in encoder.tensors:
        return padding
    table = encoder.dense("rel_bias")
    longest = encoder.tensors["pos_emb"].shape[0]
    distances = np.arange(-longest + 1, longest)
    return ops.add(ops.distance_bias(table[relative_buckets(distances, len(table))], ids), padding)


def _layer(encoder: Encoder, ops: Operators, name: str, x: Node, bias: Node) -> Node:
    qkv = _linear(encoder, ops, f"{name}.qkv", x)
    attended = ops.attend(qkv, encoder.heads, encoder.hidden_size // encoder.heads, bias)
    x = _norm(encoder, ops, f"{name}.aln", ops.add(x, _linear(encoder, ops, f"{name}.ao", attended)))
    wide = ops.activate(_linear(encoder, ops, f"{name}.f1", x), encoder.activation)
    return _norm(encoder, ops, f"{name}.fln", ops.add(x, _linear(encoder, ops, f"{name}.f2", wide)))


def _linear(encoder: Encoder, ops: Operators, name: str, x: Node) -> Node:
    return ops.linear(x, encoder.tensors[f"{name}.w"], encoder.dense(f"{name}.b"))


def _norm(encoder: Encoder, ops: Operators, name: str, x: Node) -> Node:
    return ops.layer_norm(x, encoder.dense(f"{name}.w"), encoder.dense(f"{name}.b"), encoder.epsilon)

"""The forward pass, written once and drawn by each runtime with its own operators."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragstone.models.encoder import Activation, Encoder, Tensor, relative_buckets

Node = Any
"""A node of the runtime's own graph."""


class Operators(Protocol):
    """What a runtime must be able to draw."""

    def constant(self, array: NDArray[Any]) -> Node: ...
    def input(self, name: str) -> Node: ...
    def rows(self, table: Tensor, ids: Node) -> Node: ...
    def first_rows(self, table: NDArray[np.float32], ids: Node) -> Node:
        """As many rows of the table as `ids` has columns."""
        ...

    def linear(self, x: Node, weight: Tensor, bias: NDArray[np.float32]) -> Node: ...
    def add(self, a: Node, b: Node) -> Node: ...
    def layer_norm(
        self, x: Node, scale: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float
    ) -> Node: ...
    def activate(self, x: Node, kind: Activation) -> Node: ...
    def tanh(self, x: Node) -> Node: ...
    def attend(self, qkv: Node, heads: int, width: int, bias: Node) -> Node:
        """Multi-head attention over stacked query, key and value; `width` is one head's."""
        ...

    def padding_bias(self, mask: Node) -> Node:
        """0 where there is a token, a very negative number where there is none, shaped to fit the scores."""
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
    attended = ops.attend(qkv, encoder.heads, encoder.hidden // encoder.heads, bias)
    x = _norm(encoder, ops, f"{name}.aln", ops.add(x, _linear(encoder, ops, f"{name}.ao", attended)))
    wide = ops.activate(_linear(encoder, ops, f"{name}.f1", x), encoder.activation)
    return _norm(encoder, ops, f"{name}.fln", ops.add(x, _linear(encoder, ops, f"{name}.f2", wide)))


def _linear(encoder: Encoder, ops: Operators, name: str, x: Node) -> Node:
    return ops.linear(x, encoder.tensors[f"{name}.w"], encoder.dense(f"{name}.b"))


def _norm(encoder: Encoder, ops: Operators, name: str, x: Node) -> Node:
    return ops.layer_norm(x, encoder.dense(f"{name}.w"), encoder.dense(f"{name}.b"), encoder.epsilon)

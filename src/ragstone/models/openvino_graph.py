"""Draws an encoder with OpenVINO's operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.models.encoder import Activation, Encoder, Grouped, Tensor
from ragstone.models.network import Node, draw


def openvino_model(encoder: Encoder, openvino: Any, *, grouped_layers: bool) -> Any:
    """The encoder as an `openvino.Model`.

    `grouped_layers` keeps int8 layer weights as they are and widens them on the fly: the same numbers from a
    quarter of the memory. The word table always stays as it is.
    """
    inputs, output = draw(encoder, OpenVinoOperators(openvino.opset13, grouped_layers))
    return openvino.Model([output], inputs, "encoder")


class OpenVinoOperators:
    """`Operators` over an OpenVINO operator set."""

    def __init__(self, opset: Any, grouped_layers: bool) -> None:
        self._op = opset
        self._grouped_layers = grouped_layers

    def constant(self, array: NDArray[Any]) -> Node:
        return self._op.constant(np.ascontiguousarray(array))

    def input(self, name: str) -> Node:
        return self._op.parameter([-1, -1], np.int64, name=name)

    def rows(self, table: Tensor, ids: Node) -> Node:
        return self._op.gather(self._matrix(table, keep_grouped=True), ids, self._int(0))

    def first_rows(self, table: NDArray[np.float32], ids: Node) -> Node:
        return self._op.gather(self.constant(table), self._columns(ids), self._int(0))

    def linear(self, x: Node, weight: Tensor, bias: NDArray[np.float32]) -> Node:
        matrix = self._matrix(weight, keep_grouped=self._grouped_layers)
        return self.add(self._op.matmul(x, matrix, False, True), self.constant(bias))

    def add(self, a: Node, b: Node) -> Node:
        return self._op.add(a, b)

    def layer_norm(
        self, x: Node, scale: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float
    ) -> Node:
        centred = self._op.mvn(x, self._ints(-1), True, epsilon, "inside_sqrt")
        return self.add(self._op.multiply(centred, self.constant(scale)), self.constant(shift))

    def activate(self, x: Node, kind: Activation) -> Node:
        if kind == "relu":
            return self._op.relu(x)
        return self._op.gelu(x, "erf" if kind == "gelu" else "tanh")

    def tanh(self, x: Node) -> Node:
        return self._op.tanh(x)

    def attend(self, qkv: Node, heads: int, width: int, bias: Node) -> Node:
        op = self._op
        apart = op.reshape(qkv, self._ints(0, 0, 3, heads, width), True)
        parts = op.split(op.transpose(apart, self._ints(2, 0, 3, 1, 4)), self._int(0), 3).outputs()
        query, key, value = (op.squeeze(part, self._ints(0)) for part in parts)
        mixed = op.scaled_dot_product_attention(query, key, value, bias)
        return op.reshape(op.transpose(mixed, self._ints(0, 2, 1, 3)), self._ints(0, 0, heads * width), True)

    def padding_bias(self, mask: Node) -> Node:
        missing = self._op.subtract(self._float(1), self._op.convert(mask, np.float32))
        return self._op.unsqueeze(self._op.multiply(missing, self._float(-1e9)), self._ints(1, 2))

    def distance_bias(self, by_distance: NDArray[np.float32], ids: Node) -> Node:
        op, columns = self._op, self._columns(ids)
        away = op.subtract(op.unsqueeze(columns, self._ints(0)), op.unsqueeze(columns, self._ints(1)))
        picked = op.gather(
            self.constant(by_distance), op.add(away, self._int(len(by_distance) // 2)), self._int(0)
        )
        return op.unsqueeze(op.transpose(picked, self._ints(2, 0, 1)), self._ints(0))

    def first_token(self, x: Node) -> Node:
        return self._op.gather(x, self._int(0), self._int(1))

    def masked_mean(self, x: Node, mask: Node) -> Node:
        op = self._op
        weights = op.unsqueeze(op.convert(mask, np.float32), self._ints(2))
        total = op.reduce_sum(op.multiply(x, weights), self._ints(1), False)
        return op.divide(total, op.reduce_sum(weights, self._ints(1), False))

    def _matrix(self, tensor: Tensor, *, keep_grouped: bool) -> Node:
        if not isinstance(tensor, Grouped):
            return self.constant(tensor)
        if not keep_grouped:
            return self.constant(tensor.dense())
        wide = self._op.convert(self.constant(tensor.values), np.float32)
        scaled = self._op.multiply(wide, self.constant(tensor.scales))
        return self._op.reshape(scaled, self._ints(*tensor.shape), False)

    def _columns(self, ids: Node) -> Node:
        length = self._op.gather(self._op.shape_of(ids), self._int(1), self._int(0))
        return self._op.range(self._int(0), length, self._int(1), output_type="i64")

    def _int(self, value: int) -> Node:
        return self._op.constant(np.int64(value))

    def _ints(self, *values: int) -> Node:
        return self._op.constant(np.array(values, np.int64))

    def _float(self, value: float) -> Node:
        return self._op.constant(np.float32(value))

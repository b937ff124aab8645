"""Draws an encoder with ONNX operators."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelError
from ragstone.core.types import Matrix
from ragstone.models.runtime.encoder import BUILD, Activation, Encoder, Grouped, Ids, Node, Tensor, draw
from ragstone.models.weights import artefacts

OPSET = 20
IR_VERSION = 10
LARGEST = 2**31 - 2**20
"""A protocol buffer cannot be larger than 2 GiB."""


def onnx_model(encoder: Encoder) -> bytes:
    """Return the encoder as a serialised ONNX model."""
    import onnx
    from onnx import TensorProto, helper

    size = sum(encoder.dense(name).nbytes for name in encoder.tensors)
    if size > LARGEST:
        raise ModelError(
            f"the model has {size >> 20} MiB of weights, more than one ONNX file can hold",
            hint="pip install openvino, and set embedding.runtime to openvino",
        )
    ops = OnnxOperators()
    inputs, output = draw(encoder, ops)
    graph = helper.make_graph(
        ops.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", None])],
        ops.initializers,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="ragstone"
    )
    onnx.checker.check_model(model)
    serialised: bytes = model.SerializeToString()
    return serialised


class OnnxOperators:
    """`Operators` that collects ONNX nodes; a node is known by the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, array: NDArray[Any]) -> Node:
        from onnx import numpy_helper

        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def input(self, name: str) -> Node:
        return name

    def rows(self, table: Tensor, ids: Node) -> Node:
        dense = table.dense() if isinstance(table, Grouped) else table
        return self._node("Gather", self.constant(dense), ids, axis=0)

    def first_rows(self, table: NDArray[np.float32], ids: Node) -> Node:
        return self._node("Gather", self.constant(table), self._columns(ids), axis=0)

    def linear(self, x: Node, weight: Tensor, bias: NDArray[np.float32]) -> Node:
        dense = weight.dense() if isinstance(weight, Grouped) else weight
        return self.add(self._node("MatMul", x, self.constant(dense.T)), self.constant(bias))

    def add(self, a: Node, b: Node) -> Node:
        return self._node("Add", a, b)

    def layer_norm(self, x: Node, scale: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float) -> Node:
        return self._node("LayerNormalization", x, self.constant(scale), self.constant(shift), axis=-1, epsilon=epsilon)

    def activate(self, x: Node, kind: Activation) -> Node:
        if kind == "relu":
            return self._node("Relu", x)
        return self._node("Gelu", x, approximate="none" if kind == "gelu" else "tanh")

    def tanh(self, x: Node) -> Node:
        return self._node("Tanh", x)

    def attend(self, qkv: Node, heads: int, width: int, bias: Node) -> Node:
        stacked = self._node("Reshape", qkv, self._ints(0, 0, 3, heads, width))
        query, key, value = self._split(self._node("Transpose", stacked, perm=[2, 0, 3, 1, 4]))
        key = self._node("Transpose", key, perm=[0, 1, 3, 2])
        scale = self._scalar(np.float32(width**-0.5))
        scores = self._node("MatMul", self._node("Mul", query, scale), key)
        mixed = self._node("MatMul", self._node("Softmax", self.add(scores, bias), axis=-1), value)
        together = self._node("Transpose", mixed, perm=[0, 2, 1, 3])
        return self._node("Reshape", together, self._ints(0, 0, heads * width))

    def padding_bias(self, mask: Node) -> Node:
        missing = self._node("Sub", self._scalar(np.float32(1)), self._float(mask))
        scaled = self._node("Mul", missing, self._scalar(np.float32(-1e9)))
        return self._node("Unsqueeze", scaled, self._ints(1, 2))

    def distance_bias(self, by_distance: NDArray[np.float32], ids: Node) -> Node:
        columns = self._columns(ids)
        across = self._node("Unsqueeze", columns, self._ints(0))
        down = self._node("Unsqueeze", columns, self._ints(1))
        away = self._node("Add", self._node("Sub", across, down), self._ints(len(by_distance) // 2))
        picked = self._node("Gather", self.constant(by_distance), away, axis=0)
        return self._node("Unsqueeze", self._node("Transpose", picked, perm=[2, 0, 1]), self._ints(0))

    def first_token(self, x: Node) -> Node:
        return self._node("Gather", x, self._scalar(np.int64(0)), axis=1)

    def masked_mean(self, x: Node, mask: Node) -> Node:
        weights = self._node("Unsqueeze", self._float(mask), self._ints(2))
        total = self._node("ReduceSum", self._node("Mul", x, weights), self._ints(1), keepdims=0)
        return self._node("Div", total, self._node("ReduceSum", weights, self._ints(1), keepdims=0))

    def _split(self, stacked: Node) -> list[Node]:
        """Return the three parts of the first axis."""
        from onnx import helper

        names = [f"n{len(self.nodes)}.{part}" for part in range(3)]
        self.nodes.append(helper.make_node("Split", [stacked], names, axis=0, num_outputs=3))
        return [self._node("Squeeze", name, self._ints(0)) for name in names]

    def _columns(self, ids: Node) -> Node:
        length = self._node("Gather", self._node("Shape", ids), self._scalar(np.int64(1)), axis=0)
        return self._node("Range", self._scalar(np.int64(0)), length, self._scalar(np.int64(1)))

    def _float(self, x: Node) -> Node:
        from onnx import TensorProto

        return self._node("Cast", x, to=TensorProto.FLOAT)

    def _scalar(self, value: np.float32 | np.int64) -> Node:
        return self.constant(np.asarray(value))

    def _ints(self, *values: int) -> Node:
        return self.constant(np.array(values, np.int64))

    def _node(self, kind: str, *inputs: Node, **attributes: Any) -> Node:
        from onnx import helper

        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name


logger = logging.getLogger(__name__)


class OnnxRuntime:
    """One session, which spreads each call over the cores by itself."""

    workers = 1

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = [entry.name for entry in session.get_inputs()]

    @classmethod
    def open(cls, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path) -> OnnxRuntime:
        """Load from the cache, or build from the weights and cache the result."""
        path = cache / artefacts.file_name(model_id, f"onnx{BUILD}")
        content = artefacts.load(path)
        if content is not None:
            try:
                return cls(_session(content.tobytes(), threads))
            except RuntimeError as error:
                logger.warning("%s cannot be used (%s); it is made again", path, type(error).__name__)
        built = onnx_model(encoder())
        artefacts.store(path, built)
        try:
            return cls(_session(built, threads))
        except RuntimeError as error:
            raise ModelError(f"onnxruntime cannot load {model_id}: {error}") from error

    def run(self, ids: Ids, mask: Ids, types: Ids | None = None) -> Matrix:
        given = dict(zip(self._inputs, (ids, mask, types), strict=False))  # Not every model takes types.
        try:
            return np.asarray(self._session.run(None, given)[0], np.float32)
        except Exception as error:  # The library's errors share no root.
            raise ModelError(f"onnxruntime could not run the model: {type(error).__name__}") from error


def _session(content: bytes, threads: int) -> Any:
    """Open a session; whatever the library raises becomes a `RuntimeError`."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else its import tells its maker of this machine
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RuntimeError(str(error)) from error

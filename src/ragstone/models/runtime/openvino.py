"""Draws an encoder with OpenVINO's operators."""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Matrix
from ragstone.models.runtime.encoder import BUILD, Activation, Encoder, Grouped, Ids, Node, Tensor, draw
from ragstone.models.weights import artefacts


def openvino_model(encoder: Encoder, openvino: Any, *, grouped_layers: bool) -> Any:
    """Return the encoder as an `openvino.Model`.

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

    def layer_norm(self, x: Node, scale: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float) -> Node:
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
        picked = op.gather(self.constant(by_distance), op.add(away, self._int(len(by_distance) // 2)), self._int(0))
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


logger = logging.getLogger(__name__)

CONVERTER = "openvino.tools.ovc"
ACTIVATION_GROUP = 64
"""Values that share a scale when activations are rounded to int8; larger than the weights' groups has no effect."""
_IMPORTING = threading.Lock()


class OpenVinoRuntime:
    """One compiled model and as many inference requests as it runs at once."""

    def __init__(self, compiled: Any, mapped: Any = None) -> None:
        self._compiled = compiled
        self._mapped = mapped  # The compiled model reads its weights from this memory.
        self.workers: int = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(self.workers + 1):  # One more for a query that comes while batches run.
            self._idle.put(compiled.create_infer_request())

    @classmethod
    def open(cls, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path) -> OpenVinoRuntime:
        """Load from the cache, or build from the weights and cache the result."""
        openvino = import_openvino()
        core = openvino.Core()
        capabilities = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        precision = next((half for half in ("BF16", "FP16") if half in capabilities), "FP32")
        options = _options(precision)
        machine = core.get_property("CPU", "FULL_DEVICE_NAME"), sorted(capabilities)
        made_for = repr((openvino.__version__, machine, sorted(options.items())))
        digest = hashlib.sha256(made_for.encode()).hexdigest()[:12]
        path = cache / artefacts.file_name(model_id, f"openvino{BUILD}", digest)
        if threads:
            options["INFERENCE_NUM_THREADS"] = threads
        loaded = _load(openvino, core, path, options)
        if loaded is not None:
            return loaded
        # With hardware for half the digits plain weights are the fast ones; without it int8 times int8 is.
        model = openvino_model(encoder(), openvino, grouped_layers=precision == "FP32")
        try:
            compiled = core.compile_model(model, "CPU", options)
            artefacts.store(path, compiled.export_model().getbuffer())
        except RuntimeError as error:
            raise ModelError(f"OpenVINO cannot compile {model_id}: {_first_line(error)}") from error
        return cls(compiled)

    def run(self, ids: Ids, mask: Ids, types: Ids | None = None) -> Matrix:
        inputs = [ids, mask, types][: len(self._compiled.inputs)]
        request = self._idle.get()
        try:
            request.infer(inputs)
            return np.array(request.get_output_tensor(0).data, np.float32)
        except RuntimeError as error:
            raise ModelError(f"OpenVINO could not run the model: {_first_line(error)}") from error
        finally:
            self._idle.put(request)


def import_openvino() -> Any:
    """Import OpenVINO without its model converter, which reports every import to its maker."""
    with _IMPORTING:  # two models may be loaded at once, and half an OpenVINO is in `sys.modules` already
        return sys.modules.get("openvino") or _import_without_converter()


def _import_without_converter() -> Any:
    os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")  # on ARM it would leave a map in /tmp for each process
    blocked = CONVERTER not in sys.modules
    if blocked:
        sys.modules[CONVERTER] = None  # type: ignore[assignment]  # how Python spells "do not import"
    try:
        import openvino
    except (ImportError, OSError) as error:
        raise ModelUnavailable(
            f"OpenVINO is installed but cannot be loaded here: {error}", hint='pip install "ragstone[onnx]"'
        ) from error
    finally:
        if blocked:
            del sys.modules[CONVERTER]
    return openvino


def _options(precision: str) -> dict[str, Any]:
    """Return the options that a compiled model depends on; the number of threads is not one of them."""
    return {
        "PERFORMANCE_HINT": "THROUGHPUT",
        "INFERENCE_PRECISION_HINT": {"BF16": "bf16", "FP16": "f16", "FP32": "f32"}[precision],
        # Touches only layers whose weights are int8 already (docs/decisions/018): plain weights stay plain.
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": ACTIVATION_GROUP if precision == "FP32" else 0,
    }


def _load(openvino: Any, core: Any, path: Path, options: dict[str, Any]) -> OpenVinoRuntime | None:
    content = artefacts.load(path)
    if content is None:
        return None
    try:
        compiled = core.import_model(openvino.Tensor(content, shared_memory=True), "CPU", options)
    except RuntimeError as error:
        logger.warning("%s cannot be used (%s); it is made again", path, _first_line(error))
        return None
    return OpenVinoRuntime(compiled, content)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__

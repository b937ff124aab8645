"""Runs an encoder on OpenVINO. The compiled model is cached, mapped from disk and shared by all threads."""

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

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Matrix
from ragstone.models import artefacts
from ragstone.models.encoder import Encoder
from ragstone.models.openvino_graph import openvino_model
from ragstone.models.runtime import BUILD, Ids

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
    def open(
        cls, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path
    ) -> OpenVinoRuntime:
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
    """What a compiled model depends on beside its graph; the number of threads is not of these."""
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

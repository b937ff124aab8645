"""Runs an encoder on onnxruntime: the portable way, where OpenVINO is not available."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ragstone.core.errors import ModelError
from ragstone.core.types import Matrix
from ragstone.models import artefacts
from ragstone.models.encoder import Encoder
from ragstone.models.onnx_graph import onnx_model
from ragstone.models.runtime import BUILD, Ids

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

"""Picks what runs a local model: OpenVINO where it is installed, onnxruntime as the portable way."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelUnavailable
from ragstone.core.types import Matrix
from ragstone.models.encoder import Encoder

RuntimeName = Literal["auto", "openvino", "onnxruntime"]
Ids = NDArray[np.int64]

BUILD = "1"
"""Part of every cached file's name: change it when the drawn graph changes."""


class Runtime(Protocol):
    """A loaded encoder. `run` is safe from several threads."""

    @property
    def workers(self) -> int:
        """How many calls of `run` at once keep the machine busy."""
        ...

    def run(self, ids: Ids, mask: Ids, types: Ids | None = None) -> Matrix:
        """One row per row of ids."""
        ...


def open_runtime(
    name: RuntimeName, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path
) -> Runtime:
    """Load a model; `encoder` is called only when nothing usable is cached under its id."""
    chosen = _choose(name)
    if chosen == "openvino":
        from ragstone.models.openvino_runtime import OpenVinoRuntime

        return OpenVinoRuntime.open(model_id, encoder, threads=threads, cache=cache)
    from ragstone.models.onnx_runtime import OnnxRuntime

    return OnnxRuntime.open(model_id, encoder, threads=threads, cache=cache)


def _choose(name: RuntimeName) -> Literal["openvino", "onnxruntime"]:
    if name in ("auto", "openvino") and find_spec("openvino"):
        return "openvino"
    if name in ("auto", "onnxruntime") and find_spec("onnxruntime") and find_spec("onnx"):
        return "onnxruntime"
    wanted = "openvino or onnxruntime" if name == "auto" else name
    raise ModelUnavailable(
        f"{wanted} is not installed, so local models cannot run",
        hint='pip install "ragstone[onnx]"' if name == "onnxruntime" else "pip install openvino",
    )

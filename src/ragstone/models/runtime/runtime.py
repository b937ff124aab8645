"""Picks what runs a local model: OpenVINO where it is installed, onnxruntime as the portable way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelUnavailable
from ragstone.core.types import Matrix
from ragstone.models.runtime.encoder import Encoder

logger = logging.getLogger(__name__)

Installable = Literal["openvino", "onnxruntime"]
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
    first, *others = _installed(name)
    try:
        return _open(first, model_id, encoder, threads, cache)
    except ModelUnavailable as error:
        if not others:
            raise
        logger.warning("%s; %s is used instead", error, others[0])
    return _open(others[0], model_id, encoder, threads, cache)


def _open(
    name: Installable, model_id: str, encoder: Callable[[], Encoder], threads: int, cache: Path
) -> Runtime:
    if name == "openvino":
        from ragstone.models.runtime.openvino import OpenVinoRuntime

        return OpenVinoRuntime.open(model_id, encoder, threads=threads, cache=cache)
    from ragstone.models.runtime.onnx import OnnxRuntime

    return OnnxRuntime.open(model_id, encoder, threads=threads, cache=cache)


def _installed(name: RuntimeName) -> list[Installable]:
    """The runtimes that may be used, best first."""
    found: list[Installable] = []
    if name in ("auto", "openvino") and find_spec("openvino"):
        found.append("openvino")
    if name in ("auto", "onnxruntime") and find_spec("onnxruntime") and find_spec("onnx"):
        found.append("onnxruntime")
    if not found:
        wanted = "openvino or onnxruntime" if name == "auto" else name
        raise ModelUnavailable(
            f"{wanted} is not installed, so local models cannot run",
            hint='pip install "ragstone[onnx]"' if name == "onnxruntime" else "pip install openvino",
        )
    return found

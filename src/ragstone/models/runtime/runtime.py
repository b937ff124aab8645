"""Picks the runtime of a local model: OpenVINO where it is installed, otherwise onnxruntime."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ragstone.core.errors import ModelUnavailable
from ragstone.models.runtime.encoder import Encoder, Runtime

logger = logging.getLogger(__name__)

Installable = Literal["openvino", "onnxruntime"]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]


def open_runtime(
    name: RuntimeName, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path
) -> Runtime:
    """Load a model. `encoder` is called only when no usable graph is cached under its id."""
    first, *others = _list_installed(name)
    try:
        return _open(first, model_id, encoder, threads, cache)
    except ModelUnavailable as error:
        if not others:
            raise
        logger.warning("%s; %s is used instead", error, others[0])
    return _open(others[0], model_id, encoder, threads, cache)


def _open(name: Installable, model_id: str, encoder: Callable[[], Encoder], threads: int, cache: Path) -> Runtime:
    if name == "openvino":
        from ragstone.models.runtime.openvino import OpenVinoRuntime

        return OpenVinoRuntime.open(model_id, encoder, threads=threads, cache=cache)
    from ragstone.models.runtime.onnx import OnnxRuntime

    return OnnxRuntime.open(model_id, encoder, threads=threads, cache=cache)


def _list_installed(name: RuntimeName) -> list[Installable]:
    """Return the installed runtimes that the name allows, best first."""
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

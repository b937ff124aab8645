"""Reads tensors from a safetensors file as float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelError

KINDS: dict[str, Any] = {"F32": np.float32, "F16": np.float16, "F64": np.float64}


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Every floating-point tensor of the file, widened to float32."""
    import safetensors

    read: Any = safetensors.deserialize  # The library ships no types for it.

    try:
        entries: list[tuple[str, dict[str, Any]]] = read(path.read_bytes())
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path} cannot be read: {error}", hint="get the model again") from error
    return {
        name: _array(entry["dtype"], entry["data"]).reshape(entry["shape"])
        for name, entry in entries
        if entry["dtype"] in KINDS or entry["dtype"] == "BF16"
    }


def _array(kind: str, raw: bytes) -> NDArray[np.float32]:
    if kind == "BF16":
        # bfloat16 is the upper half of a float32.
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(raw, KINDS[kind]).astype(np.float32, copy=False)

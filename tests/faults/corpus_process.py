"""Builds a collection over the one that there is, and dies by SIGKILL at the point that it is told."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import ragstone.engine.components
from ragstone import Ragstone
from ragstone.core.collections import BuildRequest
from ragstone.testing.fakes import FakeEmbedder


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lay(point: str) -> None:
    """`module:name` dies instead of running, `module:name:2` instead of its second run, a `+` after it has run."""
    where, name, *nth = point.rstrip("+").split(":")
    module = importlib.import_module(where)
    owner, _, attribute = name.rpartition(".")
    holder = getattr(module, owner) if owner else module
    original: Callable[..., Any] = getattr(holder, attribute)
    left = int(nth[0]) if nth else 1

    def fatal(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left:
            return original(*args, **kwargs)
        if point.endswith("+"):
            original(*args, **kwargs)
        die()
        return None

    setattr(holder, attribute, fatal)


def engine(vectors: str) -> Ragstone:
    """An engine in `data`, whose model is a fake and whose chunks are short."""
    ragstone.engine.components.build_embedder = lambda _: FakeEmbedder()  # type: ignore[assignment]
    chunking = {"strategy": "sentence", "size": 8, "overlap": 0}
    return Ragstone(data_dir="data", store={"vectors": vectors}, chunking=chunking)


if __name__ == "__main__":
    with engine(sys.argv[2]) as stone:
        lay(sys.argv[1])
        stone.corpora.build(BuildRequest("corpus.txt", overwrite=True))

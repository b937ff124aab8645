"""Work on a collection that dies by SIGKILL at the point that it is told, in a process of its own."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.long_runs import take_rounds
from tests.warm import warm_python

import ragstone.engine.components
from ragstone import Ragstone
from ragstone.core.collections import BuildRequest
from ragstone.testing.fakes import FakeEmbedder

TIMES = range(take_rounds("RAGSTONE_CRASHES", 1))
"""A crash at a named point is repeated so often."""


def kill(work: Callable[..., None], *arguments: str) -> None:
    """Let a process do `work` in this folder until it dies, which must be by SIGKILL."""
    command = [*warm_python(), "-m", "tests.faults.corpus_process", work.__name__, *arguments]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


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


def build(point: str, vectors: str) -> None:
    """Build a collection over the one that there is."""
    with engine(vectors) as stone:
        lay(point)
        stone.corpora.build(BuildRequest("corpus.txt", overwrite=True))


def build_over_http(point: str, token: str) -> None:
    """The same, asked of a service."""
    from starlette.testclient import TestClient

    from ragstone import Settings, open_engine
    from ragstone.serve.http.app import build_app

    ragstone.engine.components.build_embedder = lambda _: FakeEmbedder()  # type: ignore[assignment]
    with TestClient(build_app(open_engine(Settings(data_dir=Path("data"))), worker=False)) as client:
        lay(point)
        client.post("/ingest", json={"overwrite": True}, headers={"Authorization": f"Bearer {token}"})


def rename(point: str) -> None:
    """Give the collection another name."""
    with engine("sqlite") as stone:
        lay(point)
        stone.rename_kb("corpus_embeddings", "game")


if __name__ == "__main__":
    {"build": build, "build_over_http": build_over_http, "rename": rename}[sys.argv[1]](*sys.argv[2:])

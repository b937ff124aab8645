"""Work on a collection that dies by SIGKILL at the point that it is told.

It runs in a process of its own, forked from one that has Ragstone imported: a fresh one takes three times as long.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.long_runs import take_rounds

import ragstone.engine.components
from ragstone import Ragstone
from ragstone.core.collections import BuildRequest
from ragstone.testing.fakes import FakeEmbedder

TIMES = range(take_rounds("RAGSTONE_CRASHES", 1))
"""A crash at a named point is repeated so often."""
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["ragstone.blocking", "ragstone.engine.engine", "ragstone.testing.fakes"])


def kill(work: Callable[..., None], *arguments: str) -> None:
    """Let a process do `work` in this folder until it dies, which must be by SIGKILL."""
    process = _forking.Process(target=_work_in, args=(Path.cwd(), work, arguments))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, Path("said").read_text()


def _work_in(folder: Path, work: Callable[..., None], arguments: tuple[str, ...]) -> None:
    os.chdir(folder)
    with Path("said").open("w") as said:
        os.dup2(said.fileno(), 2)
    work(*arguments)


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


def rename(point: str) -> None:
    """Give the collection another name."""
    with engine("sqlite") as stone:
        lay(point)
        stone.rename_kb("corpus_embeddings", "game")

"""What tests may share because it is not their subject: models in memory, and parser children that are idle.

A folder whose tests open engines asks for both in its conftest; a module about the children themselves takes
`shared_parsers` back with a fixture of its own of that name.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragstone.ingest.parsers.sandbox import pool
from ragstone.ingest.parsers.sandbox.pool import ParserProcess
from ragstone.models.runtime import inference
from ragstone.models.runtime.encoder import Encoder, Runtime
from ragstone.models.runtime.inference import ModelTokenizer, RuntimeName, open_runtime

MOST_CHILDREN = 4
_lock = threading.Lock()
_runtimes: dict[tuple[RuntimeName, str, int, Path], Runtime] = {}
_tokenizers: dict[tuple[str, bytes], ModelTokenizer] = {}
_children: list[tuple[int, ParserProcess]] = []
_close_pool = pool.ParserPool.close
_starter = ThreadPoolExecutor(1, thread_name_prefix="shared-parsers")
"""A child ends with the thread that started it, and those of a pool end with the pool."""
_owner = os.getpid()


@atexit.register
def end_children() -> None:
    """End the children that are left; not from a process that was forked."""
    while _children and os.getpid() == _owner:
        _children.pop()[1].end()


@pytest.fixture(autouse=True)
def shared_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load each model once in this process."""
    monkeypatch.setattr(inference, "open_runtime", _shared_runtime)
    monkeypatch.setattr(inference, "ModelTokenizer", _shared_tokenizer)


@pytest.fixture(autouse=True)
def shared_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand the idle children of a pool that closes to the next pool with the same limit on memory."""
    monkeypatch.setattr(pool, "ParserProcess", _shared_child)
    monkeypatch.setattr(pool.ParserPool, "close", _keep_idle_children)


def _shared_runtime(
    name: RuntimeName, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path
) -> Runtime:
    key = (name, model_id, threads, cache)
    with _lock:
        if key not in _runtimes:
            _runtimes[key] = open_runtime(name, model_id, encoder, threads=threads, cache=cache)
        return _runtimes[key]


def _shared_tokenizer(name: str, definition: bytes) -> ModelTokenizer:
    with _lock:
        if (name, definition) not in _tokenizers:
            _tokenizers[name, definition] = ModelTokenizer(name, definition)
        return _tokenizers[name, definition]


def _shared_child(memory_mb: int) -> ParserProcess:
    with _lock:
        for kept in _children:
            if kept[0] == memory_mb and kept[1].is_fit():
                _children.remove(kept)
                return kept[1]
    return _starter.submit(ParserProcess, memory_mb).result()


async def _keep_idle_children(closing: pool.ParserPool) -> None:
    with closing._lock, _lock:
        while closing._idle and len(_children) < MOST_CHILDREN:
            child = closing._idle.pop()
            closing._children.discard(child)
            _children.append((closing.limits.memory_mb, child))
    await _close_pool(closing)

"""Search as far as it is rolled out to a tenant: a phase that is off falls back to pure vector search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Literal

from ragstone.query.context import SearchRequest

EVERY_SEARCH = frozenset({"data_layer", "hybrid"})
_uses: ContextVar[frozenset[str]] = ContextVar("ragstone_phases", default=EVERY_SEARCH)


@contextmanager
def use_phase(phase: Literal["tools", "agentic"]) -> Iterator[None]:
    """Have the searches of the block belong to a phase: those of agents' tools, or of research."""
    before = _uses.set(_uses.get() | {phase})
    try:
        yield
    finally:
        _uses.reset(before)


def fall_back(request: SearchRequest, off: frozenset[str]) -> SearchRequest:
    """Return the request without what the phases that are off would add."""
    if off & _uses.get():
        mode = "balanced" if request.mode == "thorough" else request.mode
        return replace(request, arms="dense", mode=mode, strategy="none", reranking=False)
    if "reranking" in off:
        return replace(request, reranking=False)
    return request

"""One search while it runs, and what its stages hand on."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.types import KnowledgeBase, LiveChunk
from ragstone.query.fusion import Fused
from ragstone.query.request import SearchRequest
from ragstone.query.trace import Recorder


@dataclass(frozen=True, slots=True)
class Search:
    """Whose search it is, where it looks, what was asked for, and its clock."""

    tenant: str
    kb: KnowledgeBase
    request: SearchRequest
    record: Recorder


@dataclass(frozen=True, slots=True)
class Found:
    """A fused candidate together with the chunk it names."""

    fused: Fused
    chunk: LiveChunk

    @property
    def score(self) -> float:
        return self.fused.score

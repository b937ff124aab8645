"""Chunks that are smaller or larger than a profile wants them: reported, never refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragstone.core.types import Chunk
from ragstone.settings.tree import LimitSettings


@dataclass
class ChunkSizes:
    """Notes the chunks of a run that are out of bounds; a bound of 0 is none."""

    least: int = 0
    most: int = 0
    small: int = 0
    alone: int = 0
    """Those of the small ones that are all of their document."""
    large: list[str] = field(default_factory=list)
    """Documents that have chunks which are too large, and how many."""

    @classmethod
    def asked_by(cls, limits: LimitSettings) -> ChunkSizes:
        return cls(limits.chunk_tokens_least, limits.chunk_tokens_most)

    def add(self, uri: str, chunks: Sequence[Chunk]) -> list[str]:
        """Note the chunks of a document; what is to be said of it. That it is short is no news."""
        small = sum(chunk.tokens < self.least for chunk in chunks)
        large = sum(chunk.tokens > self.most for chunk in chunks) if self.most else 0
        told = []
        if large:
            told.append(f"{_chunks(large)} over {self.most:,} tokens")
            self.large.append(f"{uri}: {told[0]}")
        if small and len(chunks) > 1:
            told.append(f"{_chunks(small)} under {self.least:,} tokens")
        self.small += small
        self.alone += small if len(chunks) == 1 else 0
        return told

    def warnings(self) -> list[str]:
        """What is to be said of the run. Small chunks are counted: most documents end with one."""
        if not self.small:
            return self.large
        whole = f", {self.alone:,} of them whole documents" if self.alone else ""
        return [*self.large, f"{_chunks(self.small)} under {self.least:,} tokens{whole}"]


def _chunks(count: int) -> str:
    return "1 chunk is" if count == 1 else f"{count:,} chunks are"

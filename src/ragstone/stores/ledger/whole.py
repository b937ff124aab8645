"""Documents with all that is theirs, as they travel from ledger to ledger and into archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Chunk, Json, Metadata, SpaceState

Halves = NDArray[np.float16]
"""One row per chunk; a row of zeros stands for a chunk without a vector."""
START = ("", "")
LIVE = (
    "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version "
    "WHERE c.tenant_id = ? AND c.document_id IN "
)

WITH_VECTOR = "JOIN vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = ?"


class Key(NamedTuple):
    """What a document is called in its kb."""

    source: str
    external_id: str


class WholeChunk(NamedTuple):
    """A chunk under its id."""

    id: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The original of an upload: what its job knew of it, without the content."""

    name: str
    uri: str
    content_hash: str
    size: int
    facts: Metadata
    created_at: str
    finished_at: str | None


@dataclass(frozen=True, slots=True, eq=False)
class WholeDocument:
    """A live document with its text, its chunks and their vectors. Times are in canonical form."""

    id: str
    source: str
    external_id: str
    uri: str
    title: str
    content_hash: str
    version: int
    media_type: str
    metadata: Metadata
    recipe: str
    embedded: bool
    modified_at: str | None
    created_at: str
    updated_at: str
    parent_id: str
    signature: bytes
    bands: tuple[int, ...]
    text: str
    chunks: tuple[WholeChunk, ...]
    vectors: Mapping[int, Halves]
    """By the place of the Space among those of the kb; a Space that has none of them is left out."""
    file: KeptFile | None = None

    @property
    def key(self) -> Key:
        return Key(self.source, self.external_id)


@dataclass(frozen=True, slots=True)
class SpaceFacts:
    """A Space as it is known outside its ledger."""

    model: str
    dimension: int
    generation: int
    state: SpaceState
    created_at: str
    retired_at: str | None = None
    keep_until: str | None = None


@dataclass(frozen=True, slots=True)
class KbFacts:
    """A kb as it is known outside its ledger."""

    name: str
    created_at: str
    spaces: tuple[SpaceFacts, ...]
    """Oldest generation first."""


class Head(NamedTuple):
    """Enough of a document to see whether another ledger has the same."""

    key: Key
    id: str
    chunks: int
    facts: tuple[Json, ...]

"""Small documents for tests: made in one line, with offsets, terms and vectors that fit together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from ragstone.core.documents import clean_metadata
from ragstone.core.ids import content_hash, document_id
from ragstone.core.ledger import Ledger
from ragstone.core.types import Chunk, KnowledgeBase, Matrix, Metadata, NewVersion
from ragstone.language.terms import analyze_chunks

MODEL = "test-model@1"
DIMENSION = 32
BETWEEN = "\n\n"


def unit_vectors(count: int, dimension: int = DIMENSION, seed: int = 0) -> Matrix:
    """Random rows of length one, the same for the same seed."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def make_chunks(texts: Sequence[str], *, context: str = "") -> tuple[Chunk, ...]:
    """Chunks that stand one after the other in `BETWEEN.join(texts)`."""
    chunks = []
    start = 0
    for index, text in enumerate(texts):
        end = start + len(text)
        chunks.append(Chunk(index, text, start, end, context=context, page=index + 1, tokens=len(text.split())))
        start = end + len(BETWEEN)
    return tuple(chunks)


def make_version(
    external_id: str = "a",
    texts: Sequence[str] = ("some words",),
    *,
    vectors: Matrix | None = None,
    tenant: str = "default",
    kb: str = "default",
    source: str = "test",
    context: str = "",
    metadata: Metadata | None = None,
    modified_at: datetime | None = None,
) -> NewVersion:
    """Return a version of the document `external_id`, one chunk per text."""
    text = BETWEEN.join(texts)
    chunks = make_chunks(texts, context=context)
    return NewVersion(
        document_id=document_id(tenant, kb, source, external_id),
        source=source,
        external_id=external_id,
        uri=f"test:{external_id}",
        title=f"Title of {external_id}",
        content_hash=content_hash(text),
        text=text,
        media_type="text/plain",
        metadata=clean_metadata(metadata or {}),
        recipe="test",
        modified_at=modified_at,
        chunks=chunks,
        terms=analyze_chunks([chunk.contextual for chunk in chunks], str((metadata or {}).get("language") or "")),
        vectors=vectors,
    )


async def put(ledger: Ledger, *versions: NewVersion, tenant: str = "default", kb: str = "default") -> KnowledgeBase:
    """Make versions live, all in one transaction; the kb as it is afterwards."""
    async with ledger.transaction(tenant) as transaction:
        opened = await transaction.open_kb(kb)
        for version in versions:
            if version.vectors is not None:
                opened = await transaction.open_space(opened, MODEL, version.vectors.shape[1])
            number = await transaction.stage(opened, version)
            await transaction.activate(opened, version.document_id, number)
    return await ledger.of(tenant).kb(kb) or opened


async def delete(ledger: Ledger, document: str, *, tenant: str = "default") -> bool:
    """Delete a document in a transaction of its own."""
    async with ledger.transaction(tenant) as transaction:
        return await transaction.delete(document)

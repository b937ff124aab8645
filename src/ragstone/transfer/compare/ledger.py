"""Compare the content of two ledgers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ragstone.core.types import Json, KnowledgeBase, Vector
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.snapshots import START, DocumentSnapshot, Head, read_heads, read_kb_facts, read_snapshots
from ragstone.stores.sql.database import Connection
from ragstone.transfer.compare.searches import Samples
from ragstone.transfer.reports import NONE, Differences, OnMove

DOCUMENTS = 200
CHUNKS = 2000
"""A part ends with the document that reaches either."""


def parts_of(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, spaces: Sequence[int]
) -> Iterator[list[DocumentSnapshot]]:
    """Yield all documents of a kb in order of their keys."""
    after = START
    while heads := read_heads(connection, tenant_id, kb, (), after, DOCUMENTS):
        for group in group_heads(heads):
            yield read_snapshots(connection, tenant_id, spaces, [head.id for head in group])
        after = heads[-1].key


def group_heads(heads: Iterable[Head]) -> Iterator[list[Head]]:
    """Yield heads in groups that are small enough to be read at once."""
    group: list[Head] = []
    chunks = 0
    for head in heads:
        group.append(head)
        chunks += head.chunks
        if len(group) >= DOCUMENTS or chunks >= CHUNKS:
            yield group
            group, chunks = [], 0
    if group:
        yield group


APART = ("version", "chunks", "vectors", "file")
"""Fields that are looked at in their own way, or that may differ."""


@dataclass(slots=True)
class Compared:
    """The records that were compared, and the differences."""

    documents: int = 0
    chunks: int = 0
    vectors: int = 0
    differences: Differences = NONE


def plain(value: Json) -> Json:
    """Return a value as every ledger can keep it: PostgreSQL has no NUL, and JSON has no tuples."""
    match value:
        case str():
            return value.replace("\0", "\ufffd")
        case dict():
            return {plain(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return value


async def compare_kb(
    here: SqlLedger, there: SqlLedger, tenant: str, kb: KnowledgeBase, samples: Samples, tell: OnMove
) -> Compared:
    """Compare a kb document by document; some vectors are put aside to search with."""
    done = Compared()
    other = await there.of(tenant).kb(kb.name)
    if other is None:
        done.differences = Differences.of(f"knowledge base '{kb.name}' is missing")
        return done
    facts, spaces = await here.read(tenant, read_kb_facts, kb)
    their_facts, their_spaces = await there.read(tenant, read_kb_facts, other)
    if facts != their_facts:
        done.differences += Differences.of(f"the Spaces of knowledge base '{kb.name}' differ")
        return done
    total = (await here.of(tenant).stats(kb)).documents
    live = next((at for at, space in enumerate(facts.spaces) if space.state == "live"), None)
    async for ids in _pages(here, tenant, kb):
        ours = await here.read(tenant, read_snapshots, spaces, ids)
        theirs = await there.read(tenant, read_snapshots, their_spaces, ids)
        done.differences += compare_documents(ours, theirs)
        for document in ours:
            done.documents += 1
            done.chunks += len(document.chunks)
            done.vectors += sum(int(np.count_nonzero(matrix.any(axis=1))) for matrix in document.vectors.values())
            _offer(samples, document, live)
        tell(f"compare {tenant}/{kb.name}", done.documents, total)
    count = (await there.of(tenant).stats(other)).documents
    if count != done.documents:
        said = f"knowledge base '{kb.name}' has {count} documents there and {done.documents} here"
        done.differences += Differences.of(said)
    return done


def compare_documents(ours: Sequence[DocumentSnapshot], theirs: Sequence[DocumentSnapshot]) -> Differences:
    """Return the differences of documents that should be equal."""
    others = {document.id: document for document in theirs}
    said = []
    for document in ours:
        other = others.get(document.id)
        found = ["everything"] if other is None else _differing(document, other)
        said += [f"{document.uri} ({document.id}) differs in {what}" for what in found]
    return Differences.of(*said)


def _differing(document: DocumentSnapshot, other: DocumentSnapshot) -> list[str]:
    names = [field.name for field in fields(document) if field.name not in APART]
    found = [name for name in names if plain(getattr(document, name)) != plain(getattr(other, name))]
    if [chunk.id for chunk in document.chunks] != [chunk.id for chunk in other.chunks]:
        found.append("ids of chunks")
    else:
        for mine, their in zip(document.chunks, other.chunks, strict=True):
            found += [
                f"{field.name} of chunk {mine.id}"
                for field in fields(mine.chunk)
                if plain(getattr(mine.chunk, field.name)) != plain(getattr(their.chunk, field.name))
            ]
    if document.vectors.keys() != other.vectors.keys() or any(
        not np.array_equal(matrix, other.vectors[place]) for place, matrix in document.vectors.items()
    ):
        found.append("vectors")
    if (document.file and document.file.content_hash) != (other.file and other.file.content_hash):
        found.append("its original")
    return found


def _offer(samples: Samples, document: DocumentSnapshot, live: int | None) -> None:
    if live is not None and live in document.vectors:
        for whole, row in zip(document.chunks, document.vectors[live], strict=True):
            if row.any():
                vector: Vector = row.astype(np.float32)
                samples.offer(whole.chunk.text, vector)


async def _pages(ledger: SqlLedger, tenant: str, kb: KnowledgeBase) -> AsyncIterator[list[str]]:
    after = START
    while heads := await ledger.read(tenant, read_heads, kb, (), after, DOCUMENTS):
        for group in group_heads(heads):
            yield [head.id for head in group]
        after = heads[-1].key

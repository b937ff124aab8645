"""Whole documents of a kb, as many at a time as fit into a bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ragstone.core.types import KnowledgeBase
from ragstone.stores.database import Connection
from ragstone.stores.ledger.whole import Head, WholeDocument
from ragstone.stores.ledger.whole_reads import START, read_heads, read_whole

DOCUMENTS = 200
CHUNKS = 2000
"""A part ends with the document that reaches either."""


def parts_of(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, spaces: Sequence[int]
) -> Iterator[list[WholeDocument]]:
    """All documents of a kb in order of their keys."""
    after = START
    while heads := read_heads(connection, tenant_id, kb, (), after, DOCUMENTS):
        for group in grouped(heads):
            yield read_whole(connection, tenant_id, spaces, [head.id for head in group])
        after = heads[-1].key


def grouped(heads: Iterable[Head]) -> Iterator[list[Head]]:
    """The same in groups that are small enough to be read at once."""
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

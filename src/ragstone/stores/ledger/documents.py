"""What a transaction does to a document besides writing and removing versions of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ragstone.core.clock import ReadTime
from ragstone.core.documents import ChunkRecord, chunk_records
from ragstone.core.model_types import model_name
from ragstone.core.types import KnowledgeBase, LiveContent
from ragstone.stores.ledger.reads import read_document_chunks
from ragstone.stores.ledger.versions import publish
from ragstone.stores.sql.database import Connection, in_parts, marks


def set_recipe(connection: Connection, tenant_id: str, document_id: str, content_hash: str, recipe: str) -> None:
    """Say what made the live version, once all of it is there; one of other content is another's to finish."""
    connection.execute(
        "UPDATE documents SET recipe = ? WHERE id = ? AND tenant_id = ? AND content_hash = ?",
        (recipe, document_id, tenant_id, content_hash),
    )


def has_document(connection: Connection, tenant_id: str, document_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM documents WHERE id = ? AND tenant_id = ?", (document_id, tenant_id)
    ).fetchone()
    return row is not None


def existing(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> set[str]:
    """Those of the documents that there are, live or not yet."""
    found: set[str] = set()
    for part in in_parts(list(dict.fromkeys(document_ids))):
        rows = connection.execute(
            f"SELECT id FROM documents WHERE tenant_id = ? AND id IN ({marks(part)})", (tenant_id, *part)
        )
        found.update(identity for (identity,) in rows)
    return found


def live_contents(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, LiveContent]:
    """Return the content that the live versions of documents were made from."""
    found: dict[str, LiveContent] = {}
    for part in in_parts(list(dict.fromkeys(document_ids))):
        rows = connection.execute(
            f"SELECT d.id, d.content_hash, {connection.dialect.json_text('v.facts', 'read')} "
            "FROM documents d JOIN versions v "
            "ON v.tenant_id = d.tenant_id AND v.document_id = d.id AND v.version = d.version "
            f"WHERE d.tenant_id = ? AND d.id IN ({marks(part)})",
            (tenant_id, *part),
        )
        for identity, hashed, read in rows:
            found[identity] = LiveContent(hashed, ReadTime(*json.loads(read or "[]")))
    return found


def live_chunks(connection: Connection, tenant_id: str, chunk_ids: Sequence[str]) -> set[str]:
    """Those of the chunks that are of a live version."""
    found: set[str] = set()
    for part in in_parts(list(dict.fromkeys(chunk_ids))):
        rows = connection.execute(
            "SELECT c.id FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id "
            f"AND d.version = c.version WHERE c.tenant_id = ? AND c.id IN ({marks(part)})",
            (tenant_id, *part),
        )
        found.update(identity for (identity,) in rows)
    return found


def identities(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
) -> dict[str, str]:
    """Ids of documents by what their source calls them, live or not yet."""
    found: dict[str, str] = {}
    for part in in_parts(external_ids):
        rows = connection.execute(
            "SELECT external_id, id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? "
            f"AND external_id IN ({marks(part)})",
            (tenant_id, kb.id, source, *part),
        )
        found.update(rows.fetchall())
    return found


def family(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """A document and all that came in with it: an attachment may have some of its own."""
    found = {document_id: None}
    waiting = [document_id]
    while waiting:
        children = connection.execute(
            "SELECT id FROM documents WHERE parent_id = ? AND tenant_id = ?", (waiting.pop(), tenant_id)
        )
        fresh = [child for (child,) in children if child not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return list(found)


def in_the_way(connection: Connection, tenant_id: str, document_id: str, external_id: str) -> list[str]:
    """What never went live at the place that a document moves to, and has to go before it does."""
    rows = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND external_id = ? AND id <> ? AND version = 0 "
        "AND (kb_id, source) = (SELECT kb_id, source FROM documents WHERE tenant_id = ? AND id = ?)",
        (tenant_id, external_id, document_id, tenant_id, document_id),
    )
    return [identity for (identity,) in rows]


def is_taken(connection: Connection, tenant_id: str, document_id: str, external_id: str) -> bool:
    """Return whether another document has the key that a document is to move to."""
    row = connection.execute(
        "SELECT 1 FROM documents WHERE tenant_id = ? AND external_id = ? AND id <> ? "
        "AND (kb_id, source) = (SELECT kb_id, source FROM documents WHERE tenant_id = ? AND id = ?)",
        (tenant_id, external_id, document_id, tenant_id, document_id),
    ).fetchone()
    return row is not None


def is_live(connection: Connection, tenant_id: str, document_id: str) -> bool:
    """Return whether a version of the document was ever live."""
    row = connection.execute(
        "SELECT 1 FROM documents WHERE tenant_id = ? AND id = ? AND version > 0", (tenant_id, document_id)
    ).fetchone()
    return row is not None


def move_document(connection: Connection, tenant_id: str, document_id: str, external_id: str, uri: str) -> None:
    """The same document is found under another external id from now on."""
    connection.execute(
        "UPDATE documents SET external_id = ?, uri = ? WHERE id = ? AND tenant_id = ?",
        (external_id, uri, document_id, tenant_id),
    )
    live = connection.execute(
        "SELECT c.kb_id, c.seq, c.id FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id "
        "AND d.id = c.document_id AND d.version = c.version WHERE c.tenant_id = ? AND c.document_id = ? ORDER BY c.seq",
        (tenant_id, document_id),
    ).fetchall()
    if live:
        # An index elsewhere keeps these two with each chunk, for its filters.
        publish(connection, tenant_id, live[0][0], "vector", [(seq, chunk_id) for _, seq, chunk_id in live])


def count_by_source_type(connection: Connection, tenant_id: str) -> list[tuple[str, int, int]]:
    """Source type, documents and chunks, in order of source type; live documents of all kbs."""
    kind = connection.dialect.json_text("d.metadata", "source_type")
    rows = connection.execute(
        f"SELECT {kind}, count(*), sum(d.chunk_count) FROM documents d "
        f"WHERE d.tenant_id = ? AND d.version > 0 AND {kind} IS NOT NULL GROUP BY {kind} ORDER BY {kind}",
        (tenant_id,),
    )
    return [(str(source_type), int(documents), int(chunks)) for source_type, documents, chunks in rows]


MODELS = """
SELECT c.id, s.model FROM chunks c
JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version
JOIN knowledge_bases k ON k.tenant_id = c.tenant_id AND k.id = c.kb_id
JOIN spaces s ON s.tenant_id = k.tenant_id AND s.id = k.live_space
JOIN vectors v ON v.tenant_id = c.tenant_id AND v.chunk_seq = c.seq AND v.space_id = s.id
WHERE c.tenant_id = ? AND c.document_id = ?
"""


def read_chunk_records(connection: Connection, tenant_id: str, document_id: str) -> list[ChunkRecord]:
    """All live chunks of a document in order, as records."""
    models = connection.execute(MODELS, (tenant_id, document_id)).fetchall()
    named = {chunk_id: model_name(model) for chunk_id, model in models}
    return chunk_records(read_document_chunks(connection, tenant_id, document_id), named)

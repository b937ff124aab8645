"""The chunks of a document with the models of their vectors."""

from __future__ import annotations

from ragstone.core.documents import ChunkRecord, chunk_records
from ragstone.core.model_types import model_name
from ragstone.stores.database import Connection
from ragstone.stores.ledger.reads import read_document_chunks

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

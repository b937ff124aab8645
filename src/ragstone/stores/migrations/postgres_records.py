"""Views of PostgreSQL that a later migration than the first one makes: embeddings as `vector`, and the records of
uploaded documents and their chunks.

These texts belong to migration 0006. What changes later is changed by a later one.
"""

from __future__ import annotations

AS_VECTOR = """
DO $$
DECLARE
    granted record;
    rights aclitem[] := (SELECT relacl FROM pg_class WHERE oid = 'ragstone_views.{name}'::regclass);
BEGIN
    DROP VIEW ragstone_views.{name};
    CREATE VIEW ragstone_views.{name} WITH (security_invoker = true) AS {select};
    FOR granted IN SELECT grantee FROM aclexplode(rights) WHERE privilege_type = 'SELECT' AND grantee NOT IN
        (SELECT relowner FROM pg_class WHERE oid = 'ragstone_views.{name}'::regclass)
    LOOP
        EXECUTE format('GRANT SELECT ON ragstone_views.{name} TO %s',
            CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(granted.grantee)) END);
    END LOOP;
EXCEPTION WHEN dependent_objects_still_exist THEN
    -- Somebody's own view stands on this one: both stay as they are, with embeddings as halfvec.
    NULL;
END $$
"""
"""A view's columns cannot change their type: it is made anew, for the same people. It holds nothing of its own."""

LIVE_CHUNKS = """
FROM chunks c
JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version
JOIN knowledge_bases k ON k.tenant_id = c.tenant_id AND k.id = c.kb_id
LEFT JOIN vectors e ON e.tenant_id = c.tenant_id AND e.chunk_seq = c.seq AND e.space_id = k.live_space
"""
CHUNKS = f"""
SELECT c.id::uuid AS id, c.document_id::uuid AS document_id, c.tenant_id::uuid AS tenant_id, c.content,
    e.vector::vector AS embedding, c.chunk_index, c.metadata, c.content_tsv,
    (SELECT v.created_at FROM versions v WHERE v.tenant_id = c.tenant_id AND v.document_id = c.document_id
        AND v.version = c.version)::timestamptz AS created_at
{LIVE_CHUNKS}
"""
KNOWLEDGE_EMBEDDINGS = f"""
SELECT c.id::uuid AS id, c.tenant_id::uuid AS tenant_id, k.name AS kb, c.content,
    c.context || c.content AS content_with_context, e.vector::vector AS embedding,
    c.content_tsv AS content_tsvector, left(d.title, 255)::varchar(255) AS document_title,
    ARRAY(SELECT jsonb_array_elements_text(c.section)) AS section_path
{LIVE_CHUNKS}
"""

DOCUMENT_RECORDS = """
CREATE VIEW ragstone_views.document_records WITH (security_invoker = true) AS
SELECT d.id::uuid AS id, d.tenant_id::uuid AS tenant_id, n.filename::varchar(255) AS filename,
    left(CASE
        WHEN n.filename ~ '[.][^.]+$' THEN lower(substring(n.filename from '[^.]+$'))
        WHEN d.media_type = 'application/pdf' THEN 'pdf'
        WHEN d.media_type = 'text/plain' THEN 'txt'
        ELSE substring(d.media_type from '[^/]+$')
    END, 20)::varchar(20) AS file_type,
    f.size AS file_size,
    CASE WHEN f.stored > 0
        THEN 'documents/' || d.tenant_id || '/' || d.id || '/' || (f.facts ->> 'original') ELSE '' END
        ::varchar(500) AS file_path,
    CASE WHEN d.version > 0 OR j.state IS NULL THEN 'completed' WHEN j.state = 'running' THEN 'processing'
        WHEN j.state = 'cancelled' THEN 'failed' ELSE j.state END::varchar(20) AS status,
    CASE WHEN j.state IN ('failed', 'cancelled') THEN j.error ELSE '' END AS processing_error,
    left(d.title, 255)::varchar(255) AS title,
    CASE jsonb_typeof(n.metadata -> 'description') WHEN 'string' THEN n.metadata ->> 'description' ELSE '' END
        AS description,
    CASE jsonb_typeof(n.metadata -> 'category') WHEN 'string' THEN left(n.metadata ->> 'category', 100) ELSE '' END
        ::varchar(100) AS category,
    CASE jsonb_typeof(n.metadata -> 'tags') WHEN 'array' THEN n.metadata -> 'tags'
        WHEN 'string' THEN jsonb_build_array(n.metadata -> 'tags') ELSE '[]' END AS tags,
    d.chunk_count, d.token_count AS total_tokens, d.created_at::timestamptz AS uploaded_at,
    CASE WHEN d.version > 0 THEN d.updated_at END::timestamptz AS processed_at,
    d.created_at::timestamptz AS created_at
FROM documents d
LEFT JOIN LATERAL (SELECT state, error FROM jobs WHERE tenant_id = d.tenant_id AND document_id = d.id
    ORDER BY seq DESC LIMIT 1) j ON true
LEFT JOIN LATERAL (SELECT size, stored, facts FROM jobs WHERE tenant_id = d.tenant_id AND document_id = d.id
    ORDER BY (state = 'completed') DESC, seq DESC LIMIT 1) f ON true
CROSS JOIN LATERAL (SELECT CASE WHEN d.version > 0 THEN d.metadata ELSE coalesce(f.facts -> 'metadata', '{}') END
    AS metadata) m
CROSS JOIN LATERAL (SELECT m.metadata,
    left(coalesce(m.metadata ->> 'filename', substring(d.uri from '[^/]*$')), 255) AS filename) n
WHERE d.parent_id IS NULL
"""
DOCUMENT_CHUNKS = f"""
CREATE VIEW ragstone_views.document_chunks WITH (security_invoker = true) AS
SELECT c.id::uuid AS id, c.document_id::uuid AS document_id, c.tenant_id::uuid AS tenant_id, c.content,
    c.chunk_index, c.token_count,
    CASE WHEN e.vector IS NULL THEN '' ELSE left(split_part(s.model, '@', 1), 50) END::varchar(50)
        AS embedding_model,
    CASE WHEN e.vector IS NULL THEN '' ELSE c.id END::varchar(100) AS embedding_id,
    c.page AS page_number, left(coalesce(c.section ->> -1, ''), 255)::varchar(255) AS section_title, c.metadata,
    d.updated_at::timestamptz AS created_at
{LIVE_CHUNKS}
LEFT JOIN spaces s ON s.tenant_id = k.tenant_id AND s.id = k.live_space
"""
RECORDS = (
    AS_VECTOR.format(name="chunks", select=CHUNKS),
    AS_VECTOR.format(name="knowledge_embeddings", select=KNOWLEDGE_EMBEDDINGS),
    DOCUMENT_RECORDS,
    DOCUMENT_CHUNKS,
)

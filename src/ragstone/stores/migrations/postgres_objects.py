"""Objects that only PostgreSQL has: partitions that come with their tenant, and views under other names.

These texts belong to the first migration. What changes later is changed by a later one.
"""

from __future__ import annotations

PARTITIONS = (
    # Told apart from the policy on the whole table, whose condition has a column in it: this one is answered while
    # the query is planned, so that conditions which may not run before a policy (such as @@) can use their index.
    # IMMUTABLE is said for that alone. It holds as long as plans are not kept from one tenant to the next, which
    # `plan_cache_mode = force_custom_plan` sees to for every statement with a value.
    """
    CREATE FUNCTION acts_for(tenant text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
        RETURN coalesce(current_setting('ragstone.tenant', true), '') = tenant;
    END $$
    """,
    # Whoever makes or drops tables is alone among the writers: it locks more than one table, and so do they. It asks
    # for one second, since those who come after it wait behind it.
    """
    CREATE FUNCTION close_gate() RETURNS void LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended('ragstone gate', 0));
    END $$
    """,
    # A partition is made apart and attached, since that lets readers go on.
    """
    CREATE FUNCTION add_partitions(tenant text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        whole text;
        part text;
    BEGIN
        PERFORM ragstone.close_gate();
        FOR whole IN
            SELECT c.relname FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
            WHERE c.relnamespace = 'ragstone'::regnamespace ORDER BY c.relname
        LOOP
            part := whole || '_' || tenant;
            CONTINUE WHEN to_regclass('ragstone.' || quote_ident(part)) IS NOT NULL;
            EXECUTE format('CREATE TABLE ragstone.%I (LIKE ragstone.%I INCLUDING DEFAULTS INCLUDING GENERATED)',
                part, whole);
            IF whole = 'vectors' THEN
                -- A vector lies in its row as long as it fits into a page: a scan that had to look elsewhere
                -- for each would take several times as long.
                EXECUTE format('ALTER TABLE ragstone.%I SET (toast_tuple_target = 8160)', part);
            END IF;
            EXECUTE format('ALTER TABLE ragstone.%I ATTACH PARTITION ragstone.%I FOR VALUES IN (%L)',
                whole, part, tenant);
            EXECUTE format('ALTER TABLE ragstone.%I ENABLE ROW LEVEL SECURITY', part);
            EXECUTE format('ALTER TABLE ragstone.%I FORCE ROW LEVEL SECURITY', part);
            EXECUTE format('CREATE POLICY tenant ON ragstone.%I USING (ragstone.acts_for(%L))', part, tenant);
        END LOOP;
    END $$
    """,
    """
    CREATE FUNCTION drop_partitions(tenant text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        whole text;
        part text;
    BEGIN
        PERFORM ragstone.close_gate();
        FOR whole IN
            SELECT c.relname FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
            WHERE c.relnamespace = 'ragstone'::regnamespace ORDER BY c.relname
        LOOP
            part := whole || '_' || tenant;
            CONTINUE WHEN to_regclass('ragstone.' || quote_ident(part)) IS NULL;
            EXECUTE format('ALTER TABLE ragstone.%I DETACH PARTITION ragstone.%I', whole, part);
            EXECUTE format('DROP TABLE ragstone.%I', part);
        END LOOP;
    END $$
    """,
    """
    CREATE FUNCTION add_partitions_of_new() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM ragstone.add_partitions(NEW.id);
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER add_partitions AFTER INSERT ON tenants
    FOR EACH ROW EXECUTE FUNCTION add_partitions_of_new()
    """,
)
"""Made before the tables: they call these."""

SWEEP = (
    """
    CREATE FUNCTION sweep_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        acting text := coalesce(current_setting('ragstone.tenant', true), '');
        tenant text;
    BEGIN
        -- A cascade may come from a tenant's row, whose deletion acts for no tenant.
        FOR tenant IN SELECT DISTINCT tenant_id FROM gone LOOP
            PERFORM set_config('ragstone.tenant', tenant, true);
            EXECUTE 'DELETE FROM ragstone.vectors WHERE tenant_id = $1 AND chunk_seq IN '
                '(SELECT seq FROM gone WHERE tenant_id = $1)' USING tenant;
            EXECUTE 'DELETE FROM ragstone.terms WHERE tenant_id = $1 AND chunk_seq IN '
                '(SELECT seq FROM gone WHERE tenant_id = $1)' USING tenant;
        END LOOP;
        PERFORM set_config('ragstone.tenant', acting, true);
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER sweep_chunks AFTER DELETE ON chunks REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION sweep_chunks()
    """,
)

VIEWS = (
    """
    CREATE VIEW ragstone_views.documents WITH (security_invoker = true) AS
    SELECT d.id::uuid AS id, d.tenant_id::uuid AS tenant_id, d.uri AS source_url, d.title, v.text AS content,
        d.metadata, d.created_at::timestamptz AS created_at, d.updated_at::timestamptz AS updated_at
    FROM documents d
    JOIN versions v ON v.tenant_id = d.tenant_id AND v.document_id = d.id AND v.version = d.version
    """,
    """
    CREATE VIEW ragstone_views.chunks WITH (security_invoker = true) AS
    SELECT c.id::uuid AS id, c.document_id::uuid AS document_id, c.tenant_id::uuid AS tenant_id, c.content,
        e.vector AS embedding, c.chunk_index, c.metadata, c.content_tsv, v.created_at::timestamptz AS created_at
    FROM chunks c
    JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version
    JOIN versions v ON v.tenant_id = c.tenant_id AND v.document_id = c.document_id AND v.version = c.version
    JOIN knowledge_bases k ON k.tenant_id = c.tenant_id AND k.id = c.kb_id
    LEFT JOIN vectors e ON e.tenant_id = c.tenant_id AND e.chunk_seq = c.seq AND e.space_id = k.live_space
    """,
    """
    CREATE VIEW ragstone_views.knowledge_embeddings WITH (security_invoker = true) AS
    SELECT c.id::uuid AS id, c.tenant_id::uuid AS tenant_id, k.name AS kb, c.content,
        c.context || c.content AS content_with_context, e.vector AS embedding, c.content_tsv AS content_tsvector,
        left(d.title, 255)::varchar(255) AS document_title,
        ARRAY(SELECT jsonb_array_elements_text(c.section)) AS section_path
    FROM chunks c
    JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version
    JOIN knowledge_bases k ON k.tenant_id = c.tenant_id AND k.id = c.kb_id
    LEFT JOIN vectors e ON e.tenant_id = c.tenant_id AND e.chunk_seq = c.seq AND e.space_id = k.live_space
    """,
)

"""Kbs and documents in a tenant's rows: functions that repositories and transactions share."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ragstone.core.clock import ReadTime
from ragstone.core.filters import Equals, Filter, In, Leaf, Or, Range, Scalar, replace_leaves
from ragstone.core.types import KnowledgeBase, LiveContent, Space, Stats, Vector
from ragstone.stores.ledger.versions import publish
from ragstone.stores.sql.database import Connection, in_parts, last_number, marks


def read_kb(connection: Connection, tenant_id: str, name: str) -> KnowledgeBase | None:
    """Return the kb of that name with its live Space."""
    found = _kbs(connection, "WHERE k.tenant_id = ? AND k.name = ?", (tenant_id, name))
    return found[0] if found else None


def read_kbs(connection: Connection, tenant_id: str) -> list[KnowledgeBase]:
    """Return all kbs in order of name."""
    return _kbs(connection, "WHERE k.tenant_id = ? ORDER BY k.name", (tenant_id,))


def known_vectors(connection: Connection, tenant_id: str, space: Space, hashes: Sequence[bytes]) -> dict[bytes, Vector]:
    """Stored vectors of a Space by hash of the text they were made from."""
    found = {}
    for part in in_parts(hashes):
        rows = connection.execute(
            "SELECT c.content_hash, v.vector FROM chunks c JOIN vectors v ON v.tenant_id = c.tenant_id "
            f"AND v.chunk_seq = c.seq AND v.space_id = ? WHERE c.tenant_id = ? AND c.content_hash IN ({marks(part)})",
            (space.id, tenant_id, *part),
        )
        found.update({key: connection.dialect.unpack_vector(vector) for key, vector in rows})
    return found


def read_stats(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> Stats:
    documents, chunks, tokens, unembedded = connection.execute(
        "SELECT count(*), coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0), "
        "coalesce(sum(CASE WHEN embedded = 0 THEN 1 ELSE 0 END), 0) "
        "FROM documents WHERE tenant_id = ? AND kb_id = ? AND version > 0",
        (tenant_id, kb.id),
    ).fetchone()
    return Stats(
        documents=documents,
        chunks=chunks,
        tokens=tokens,
        unembedded=unembedded,
        sequence=read_sequence(connection, tenant_id),
        bytes=connection.dialect.bytes_used(connection, tenant_id),
        model=kb.space.model if kb.space else "",
    )


def count_waiting(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> int:
    """Count the documents with a job that has not ended, and those without vectors where the kb has some."""
    unread = (
        "SELECT document_id FROM jobs "
        "WHERE tenant_id = ? AND kb_id = ? AND kind = 'document' AND state IN ('pending', 'running')"
    )
    unembedded = "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND version > 0 AND embedded = 0"
    parts = [unread, unembedded] if kb.space else [unread]
    row = connection.execute(
        f"SELECT count(*) FROM ({' UNION '.join(parts)}) AS waiting", (tenant_id, kb.id) * len(parts)
    ).fetchone()
    return int(row[0])


def read_sequence(connection: Connection, tenant_id: str) -> int:
    """Return the last commit's place in the change feed, also when the feed has been shortened."""
    return last_number(connection, tenant_id, "changes")


def kb_of(connection: Connection, tenant_id: str, document_id: str) -> str | None:
    """Return the name of the kb that a document is in or on its way into."""
    row = connection.execute(
        "SELECT k.name FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id "
        "WHERE d.tenant_id = ? AND d.id = ?",
        (tenant_id, document_id),
    ).fetchone()
    return row[0] if row else None


def _kbs(connection: Connection, which: str, parameters: tuple[str, ...]) -> list[KnowledgeBase]:
    rows = connection.execute(
        "SELECT k.id, k.name, k.languages, s.id, s.model, s.dimension, s.generation, s.state "
        f"FROM knowledge_bases k LEFT JOIN spaces s ON s.tenant_id = k.tenant_id AND s.id = k.live_space {which}",
        parameters,
    )
    return [
        KnowledgeBase(kb_id, name, Space(*space) if space[0] is not None else None, tuple(languages.split()))
        for kb_id, name, languages, *space in rows
    ]


def children(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """Documents that came in with this one."""
    rows = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND parent_id = ? ORDER BY id", (tenant_id, document_id)
    )
    return [row[0] for row in rows]


def identify(connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
    """Return the id of a document by what its source calls it, live or not yet."""
    row = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND external_id = ?",
        (tenant_id, kb.id, source, external_id),
    ).fetchone()
    return row[0] if row else None


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
    """Return those of the documents that there are, live or not yet."""
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
    """Return those of the chunks that are of a live version."""
    found: set[str] = set()
    for part in in_parts(list(dict.fromkeys(chunk_ids))):
        rows = connection.execute(
            "SELECT c.id FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id "
            f"AND d.version = c.version WHERE c.tenant_id = ? AND c.id IN ({marks(part)})",
            (tenant_id, *part),
        )
        found.update(identity for (identity,) in rows)
    return found


def family(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """Return a document and all that came in with it: an attachment may have some of its own."""
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
    """Return documents that never went live under the key that a document moves to: they go before it does."""
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


def resolve_sources(connection: Connection, tenant_id: str, kb: KnowledgeBase, where: Filter) -> Filter:
    """Return a filter in which `source` is `connector` wherever its value is the name of a connector and no origin.

    Until connectors had to say where their documents are from, `source` was the connector's name.
    """

    def has(field: str, value: Scalar) -> bool:
        parameters: list[Scalar] = [tenant_id, kb.id]
        condition = connection.dialect.condition(Equals(field, value), parameters, chunks=False)
        held = f"SELECT 1 FROM documents d WHERE d.tenant_id = ? AND d.kb_id = ? AND d.version > 0 AND {condition}"
        return connection.execute(f"{held} LIMIT 1", parameters).fetchone() is not None

    def by_connector(value: Scalar) -> bool:
        return isinstance(value, str) and has("connector", value) and not has("source", value)

    def resolve(leaf: Leaf) -> Filter:
        if leaf.field != "source" or isinstance(leaf, Range):
            return leaf
        values = leaf.values if isinstance(leaf, In) else (leaf.value,)
        named = tuple(value for value in values if by_connector(value))
        rest = tuple(value for value in values if value not in named)
        if not named:
            return leaf
        return Or((In("source", rest), In("connector", named))) if rest else In("connector", named)

    return replace_leaves(where, resolve)


def is_live(connection: Connection, tenant_id: str, document_id: str) -> bool:
    """Return whether a version of the document was ever live."""
    row = connection.execute(
        "SELECT 1 FROM documents WHERE tenant_id = ? AND id = ? AND version > 0", (tenant_id, document_id)
    ).fetchone()
    return row is not None


def move_document(connection: Connection, tenant_id: str, document_id: str, external_id: str, uri: str) -> None:
    """Have a document found under another external id; a path that is its `source` moves with it."""
    row = connection.execute(
        "SELECT uri, metadata FROM documents WHERE id = ? AND tenant_id = ?", (document_id, tenant_id)
    ).fetchone()
    if row is None:
        return
    old_uri, metadata = row[0], json.loads(row[1])
    path = metadata.get("source")
    if isinstance(path, str) and path and old_uri.endswith(path):
        metadata["source"] = uri.removeprefix(old_uri.removesuffix(path))
    connection.execute(
        "UPDATE documents SET external_id = ?, uri = ?, metadata = ? WHERE id = ? AND tenant_id = ?",
        (external_id, uri, connection.dialect.to_json(metadata), document_id, tenant_id),
    )
    live = connection.execute(
        "SELECT c.kb_id, c.seq, c.id FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id "
        "AND d.id = c.document_id AND d.version = c.version WHERE c.tenant_id = ? AND c.document_id = ? ORDER BY c.seq",
        (tenant_id, document_id),
    ).fetchall()
    if live:
        # An index elsewhere keeps these two with each chunk, for its filters.
        publish(connection, tenant_id, live[0][0], "vector", [(seq, chunk_id) for _, seq, chunk_id in live])

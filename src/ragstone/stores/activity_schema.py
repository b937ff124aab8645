"""The tables of an activity file, and how one of an earlier version is brought up to date."""

from __future__ import annotations

import sqlite3

from ragstone.core.errors import StoreError

VERSION = 2
FIRST = """
CREATE TABLE IF NOT EXISTS searches (
    id INTEGER PRIMARY KEY,
    moment TEXT NOT NULL,
    kb TEXT NOT NULL,
    query TEXT NOT NULL,
    mode TEXT NOT NULL,
    latency_ms REAL NOT NULL,
    num_results INTEGER NOT NULL,
    top_score REAL NOT NULL,
    similarity REAL,
    coverage REAL NOT NULL,
    missing TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS searches_by_moment ON searches (moment);
CREATE TABLE IF NOT EXISTS shown (
    search_id INTEGER NOT NULL REFERENCES searches ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    chunk_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (search_id, rank)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shown_by_document ON shown (document_id);
CREATE TABLE IF NOT EXISTS votes (
    kb TEXT NOT NULL,
    same_query TEXT NOT NULL,
    chunk_id TEXT NOT NULL,
    voter TEXT NOT NULL,
    moment TEXT NOT NULL,
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    vote TEXT NOT NULL,
    PRIMARY KEY (kb, same_query, chunk_id, voter)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS votes_by_document ON votes (document_id);
CREATE TABLE IF NOT EXISTS golden (
    kb TEXT NOT NULL,
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (kb, query, document_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS golden_by_document ON golden (document_id);
"""
SEARCHES = {
    "tenant_id": "TEXT NOT NULL DEFAULT ''",
    "conversation": "TEXT NOT NULL DEFAULT ''",
    "query_type": "TEXT NOT NULL DEFAULT ''",
    "sources_queried": "TEXT NOT NULL DEFAULT '[\"documents\"]'",
    "sources_returned": "TEXT NOT NULL DEFAULT '[]'",
    "database_results_count": "INTEGER NOT NULL DEFAULT 0",
    "internet_results_count": "INTEGER NOT NULL DEFAULT 0",
    "embedding_time_ms": "REAL NOT NULL DEFAULT 0",
    "success": "INTEGER NOT NULL DEFAULT 1",
    "error_message": "TEXT NOT NULL DEFAULT ''",
    "document_results_count": "INTEGER AS (num_results) VIRTUAL",
    "total_results": "INTEGER AS (num_results + database_results_count + internet_results_count) VIRTUAL",
    "retrieval_time_ms": "REAL AS (latency_ms) VIRTUAL",
}
"""What the second version adds to a search. The last three are other names and sums: they take no room."""
SECOND = """
CREATE INDEX IF NOT EXISTS searches_by_tenant ON searches (tenant_id, moment);
CREATE INDEX IF NOT EXISTS searches_by_conversation ON searches (conversation);
CREATE INDEX IF NOT EXISTS searches_by_success ON searches (success);
CREATE TABLE IF NOT EXISTS turns (
    id INTEGER PRIMARY KEY,
    moment TEXT NOT NULL,
    kb TEXT NOT NULL,
    conversation TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_by_conversation ON turns (kb, conversation, id);
CREATE INDEX IF NOT EXISTS turns_by_moment ON turns (moment);
CREATE TABLE IF NOT EXISTS turn_documents (
    turn_id INTEGER NOT NULL REFERENCES turns ON DELETE CASCADE,
    document_id TEXT NOT NULL,
    chunk_id TEXT NOT NULL,
    PRIMARY KEY (turn_id, document_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS turn_documents_by_document ON turn_documents (document_id);
CREATE INDEX IF NOT EXISTS turn_documents_by_chunk ON turn_documents (chunk_id);
"""
"""`chunk_id` is a passage of the version that the answer was made from; empty where there is no answer."""


def bring_up_to_date(connection: sqlite3.Connection, tenant_id: str) -> None:
    """Make what is missing, in one transaction that a second process waits for."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > VERSION:
            raise StoreError(
                f"what was asked of this tenant was written by a newer Ragstone (version {found})",
                hint="upgrade ragstone",
            )
        if found < VERSION:
            _upgrade(connection, tenant_id)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _upgrade(connection: sqlite3.Connection, tenant_id: str) -> None:
    _run(connection, FIRST)
    # An older Ragstone that opens a newer file sets its version back: what is there is not added again.
    there = {row[1] for row in connection.execute("PRAGMA table_xinfo(searches)")}
    for name, kind in SEARCHES.items():
        if name not in there:
            connection.execute(f"ALTER TABLE searches ADD COLUMN {name} {kind}")
    connection.execute("UPDATE searches SET tenant_id = ? WHERE tenant_id = ''", (tenant_id,))
    connection.execute(
        "UPDATE searches SET sources_returned = '[\"documents\"]' WHERE num_results > 0 AND sources_returned = '[]'"
    )
    _run(connection, SECOND)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _run(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        if statement.strip():
            connection.execute(statement)

"""What of a source could not be taken in: what its last run did not read, and what no document could be made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragstone.core.jobs import MOST_NAMED, NEAR_DUPLICATE, Shortfall, SourceRecord
from ragstone.core.types import Failure
from ragstone.stores.database import Connection, marks

OF_SOURCE = "= (SELECT kb_id, name FROM sources WHERE tenant_id = ? AND id = ?)"
LAST = (
    "NOT EXISTS (SELECT 1 FROM jobs n WHERE n.tenant_id = j.tenant_id AND n.document_id = j.document_id "
    "AND n.seq > j.seq)"
)
FAILED = (
    "FROM jobs j WHERE j.tenant_id = ? AND j.kind = 'document' AND j.state = 'failed' AND j.error_code <> ? "
    f"AND (j.kb_id, j.source) {OF_SOURCE} AND {LAST}"
)
TAKEN_IN = (
    f"SELECT 1 FROM documents d WHERE d.tenant_id = ? AND (d.kb_id, d.source) {OF_SOURCE} AND (d.version > 0 OR "
    "EXISTS (SELECT 1 FROM jobs w WHERE w.tenant_id = d.tenant_id AND w.document_id = d.id "
    "AND w.state IN ('pending', 'running'))) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id "
    f"AND j.document_id = d.id AND j.state = 'failed' AND {LAST}) LIMIT 1"
)


def unread_of(stored: Mapping[str, Any]) -> Shortfall:
    """What a run could not read, as it was written down."""
    first = tuple(Failure(**failure) for failure in stored.get("first", ()))
    return Shortfall(stored.get("count", 0), first, stored.get("total", False))


def with_failed_documents(connection: Connection, tenant_id: str, source: SourceRecord) -> SourceRecord:
    """The source, its documents whose last job failed among what could not be taken in."""
    unread = source.shortfall
    # What could not even be read this time is not told twice.
    told = [failure.uri for failure in unread.first]
    which = f"{FAILED} AND j.uri NOT IN ({marks(told)})" if told else FAILED
    given = (tenant_id, NEAR_DUPLICATE, tenant_id, source.id, *told)
    failed = connection.execute(f"SELECT count(*) {which}", given).fetchone()[0]
    count = unread.count + failed
    if not count:
        return source
    rows = connection.execute(
        f"SELECT j.uri, j.error_code, j.error, j.progress {which} ORDER BY j.seq LIMIT ?",
        (*given, MOST_NAMED),
    )
    lost = [
        Failure(uri, code, error, json.loads(how_far).get("hint", "")) for uri, code, error, how_far in rows
    ]
    first = (*unread.first, *lost)[:MOST_NAMED]
    nothing = not connection.execute(TAKEN_IN, (tenant_id, tenant_id, source.id)).fetchone()
    return replace(source, shortfall=Shortfall(count, first, unread.total or nothing))

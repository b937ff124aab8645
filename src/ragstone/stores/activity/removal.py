"""Remove conversations, votes, golden queries and logged searches together with their documents and kbs, or by age.

The ledger calls these in the transaction that removes a document. Foreign keys remove most rows; what they cannot do
is here: emptying answers, passing questions on, and the SQLite log, whose file has no keys into the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragstone.core.clock import canonical, now
from ragstone.stores.sql.database import Connection, in_parts, marks

OF_DOCUMENTS = ("votes", "golden_queries", "turn_documents")
OF_KBS = ("votes", "golden_queries", "turns", "article_runs")
KEPT_STALE = timedelta(days=30)
"""The time that outdated web results are kept, for when the engine limits requests."""


@dataclass(slots=True)
class Removed:
    """Documents and kbs that a transaction has removed, for the log that has no keys to them."""

    documents: list[str] = field(default_factory=list)
    kbs: dict[int, int | None] = field(default_factory=dict)
    """Each with the kb that its logged searches pass to, if any."""
    erased: bool = False
    """Searches that brought the documents go too, since a query may say what a document says."""

    def __bool__(self) -> bool:
        return bool(self.documents or self.kbs)


def empty_answers(connection: Connection, tenant_id: str, document_id: str) -> None:
    """Remove the text of answers that were made from a document; the questions stay."""
    connection.execute(
        "UPDATE turns SET answer = '' WHERE tenant_id = ? AND answer <> '' AND id IN "
        "(SELECT turn_id FROM turn_documents WHERE tenant_id = ? AND document_id = ?)",
        (tenant_id, tenant_id, document_id),
    )


def pass_on_questions(connection: Connection, tenant_id: str, old_kb: int, new_kb: int) -> None:
    """Give the questions that were asked of a kb to the one that replaces it, without their answers."""
    connection.execute(
        "UPDATE turns SET kb_id = ?, answer = '' WHERE tenant_id = ? AND kb_id = ?", (new_kb, tenant_id, old_kb)
    )
    if connection.dialect.has_log:
        _pass_on_searches(connection, tenant_id, old_kb, new_kb)


def erase_questions(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> None:
    """Remove turns and logged searches that documents were part of."""
    _erase(connection, tenant_id, "turns", "SELECT turn_id FROM turn_documents", document_ids)
    if connection.dialect.has_log:
        _erase(connection, tenant_id, "retrieval_log", "SELECT search_id FROM retrieval_log_hits", document_ids)


def remove_kb_rows(connection: Connection, tenant_id: str, kb_id: int) -> None:
    """Remove the conversations, votes and golden queries of a kb."""
    for table in OF_KBS:
        connection.execute(f"DELETE FROM {table} WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb_id))


def count_rows(connection: Connection, tenant_id: str, document_ids: Sequence[str], kb_id: int | None) -> int:
    """Count the rows of documents, and of a whole kb if one is named."""
    return _count(connection, tenant_id, OF_DOCUMENTS, document_ids, OF_KBS, kb_id)


def count_logged(connection: Connection, tenant_id: str, document_ids: Sequence[str], kb_id: int | None) -> int:
    """Count in the log what `count_rows` counts in the ledger."""
    return _count(connection, tenant_id, ("retrieval_log_hits",), document_ids, ("retrieval_log",), kb_id)


def count_tenant_rows(connection: Connection, tenant_id: str) -> int:
    """Count all rows of a tenant but those of the log."""
    return sum(_total(connection, tenant_id, table) for table in OF_KBS)


def count_tenant_log(connection: Connection, tenant_id: str) -> int:
    """Count the logged searches of a tenant."""
    return _total(connection, tenant_id, "retrieval_log")


def forget_logged(connection: Connection, tenant_id: str, removed: Removed) -> None:
    """Remove from the log what tells of removed documents and kbs."""
    if removed.erased:
        _erase(*(connection, tenant_id, "retrieval_log", "SELECT search_id FROM retrieval_log_hits"), removed.documents)
    for part in in_parts(removed.documents):
        connection.execute(
            f"DELETE FROM retrieval_log_hits WHERE tenant_id = ? AND document_id IN ({marks(part)})", (tenant_id, *part)
        )
    for old_kb, new_kb in removed.kbs.items():
        if new_kb is not None:
            _pass_on_searches(connection, tenant_id, old_kb, new_kb)
        connection.execute("DELETE FROM retrieval_log WHERE tenant_id = ? AND kb_id = ?", (tenant_id, old_kb))


def clean_up_log(connection: Connection, tenant_id: str) -> None:
    """Remove from the log what tells of documents and kbs that are gone: a crash may have come before that."""
    connection.execute(
        "DELETE FROM retrieval_log_hits WHERE tenant_id = ? AND document_id NOT IN "
        "(SELECT id FROM documents WHERE tenant_id = ?)",
        (tenant_id, tenant_id),
    )
    connection.execute(
        "DELETE FROM retrieval_log WHERE tenant_id = ? AND kb_id NOT IN "
        "(SELECT id FROM knowledge_bases WHERE tenant_id = ?)",
        (tenant_id, tenant_id),
    )


def remove_old_rows(connection: Connection, tenant_id: str, oldest: datetime) -> None:
    """Remove turns and article runs from before a moment, and web results that are outdated for long."""
    remove_old_turns(connection, tenant_id, oldest)
    remove_old_runs(connection, tenant_id, oldest)
    remove_old_web_results(connection, tenant_id, now())


def remove_old_turns(connection: Connection, tenant_id: str, oldest: datetime) -> None:
    connection.execute("DELETE FROM turns WHERE tenant_id = ? AND moment < ?", (tenant_id, canonical(oldest)))


def remove_old_runs(connection: Connection, tenant_id: str, oldest: datetime) -> None:
    """Remove article runs that nothing was written for since a moment, but none that a job is to write."""
    connection.execute(
        f"DELETE FROM article_runs WHERE {unclaimed_runs(connection)} AND updated_at < ?",
        (tenant_id, tenant_id, canonical(oldest)),
    )


def unclaimed_runs(connection: Connection) -> str:
    """Return SQL for article runs that no job is to write; it is given the tenant's id twice."""
    jobs = (
        f"SELECT {connection.dialect.json_text('facts', 'run')} FROM jobs WHERE tenant_id = ? AND kind = 'task' "
        "AND source = 'article' AND state IN ('pending', 'running')"
    )
    return f"tenant_id = ? AND id NOT IN ({jobs})"


def remove_old_web_results(connection: Connection, tenant_id: str, moment: datetime) -> None:
    connection.execute(
        "DELETE FROM web_results WHERE tenant_id = ? AND expires_at < ?", (tenant_id, canonical(moment - KEPT_STALE))
    )


def has_old_searches(connection: Connection, tenant_id: str, oldest: datetime) -> bool:
    """Return whether there are logged searches from before a moment."""
    row = connection.execute(
        "SELECT 1 FROM retrieval_log WHERE tenant_id = ? AND moment < ? LIMIT 1", (tenant_id, canonical(oldest))
    ).fetchone()
    return row is not None


def remove_old_searches(connection: Connection, tenant_id: str, oldest: datetime) -> None:
    connection.execute("DELETE FROM retrieval_log WHERE tenant_id = ? AND moment < ?", (tenant_id, canonical(oldest)))


def _pass_on_searches(connection: Connection, tenant_id: str, old_kb: int, new_kb: int) -> None:
    connection.execute(
        "DELETE FROM retrieval_log_hits WHERE tenant_id = ? AND search_id IN "
        "(SELECT id FROM retrieval_log WHERE tenant_id = ? AND kb_id = ?)",
        (tenant_id, tenant_id, old_kb),
    )
    connection.execute(
        "UPDATE retrieval_log SET kb_id = ? WHERE tenant_id = ? AND kb_id = ?", (new_kb, tenant_id, old_kb)
    )


def _erase(connection: Connection, tenant_id: str, table: str, brought: str, document_ids: Sequence[str]) -> None:
    for part in in_parts(document_ids):
        connection.execute(
            f"DELETE FROM {table} WHERE tenant_id = ? AND id IN "
            f"({brought} WHERE tenant_id = ? AND document_id IN ({marks(part)}))",
            (tenant_id, tenant_id, *part),
        )


def _count(
    connection: Connection,
    tenant_id: str,
    of_documents: Sequence[str],
    document_ids: Sequence[str],
    of_kbs: Sequence[str],
    kb_id: int | None,
) -> int:
    found = sum(
        int(
            connection.execute(
                f"SELECT count(*) FROM {table} WHERE tenant_id = ? AND document_id IN ({marks(part)})",
                (tenant_id, *part),
            ).fetchone()[0]
        )
        for table in of_documents
        for part in in_parts(document_ids)
    )
    if kb_id is None:
        return found
    return found + sum(_total(connection, tenant_id, table, " AND kb_id = ?", kb_id) for table in of_kbs)


def _total(connection: Connection, tenant_id: str, table: str, narrowed: str = "", *values: int) -> int:
    row = connection.execute(
        f"SELECT count(*) FROM {table} WHERE tenant_id = ?{narrowed}", (tenant_id, *values)
    ).fetchone()
    return int(row[0])

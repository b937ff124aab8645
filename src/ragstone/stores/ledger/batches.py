"""A whole wave of documents at once: one visit to the writer instead of several for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.types import KnowledgeBase, NewVersion
from ragstone.stores.database import Connection
from ragstone.stores.ledger.jobs import Weigh, complete_held, enqueue
from ragstone.stores.ledger.originals import let_go
from ragstone.stores.ledger.writes import Indexes, activate, discard, present, stage_in


def stage_all(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, versions: Sequence[NewVersion]
) -> list[int]:
    kb = present(connection, tenant_id, kb)
    return [stage_in(connection, tenant_id, kb, version) for version in versions]


def activate_all(
    connection: Connection,
    tenant_id: str,
    indexes: Indexes,
    kb: KnowledgeBase,
    versions: Sequence[tuple[str, int]],
) -> None:
    for document_id, number in versions:
        activate(connection, tenant_id, indexes, kb, document_id, number)


def discard_all(
    connection: Connection,
    tenant_id: str,
    indexes: Indexes,
    kb: KnowledgeBase,
    versions: Sequence[tuple[str, int]],
) -> None:
    for document_id, number in versions:
        discard(connection, tenant_id, indexes, kb, document_id, number)


def enqueue_all(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, jobs: Sequence[NewJob], weigh: Weigh
) -> list[Job]:
    return [enqueue(connection, tenant_id, kb, job, weigh) for job in jobs]


def complete_all(connection: Connection, tenant_id: str, finished: Mapping[Ticket, JobProgress]) -> None:
    ended = [
        complete_held(connection, tenant_id, ticket, progress, "; ".join(progress.remarks[:3]))
        for ticket, progress in finished.items()
    ]
    let_go(connection, tenant_id, [document_id for document_id in ended if document_id])

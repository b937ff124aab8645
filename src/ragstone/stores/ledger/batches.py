"""A whole wave of documents at once: one visit to the writer instead of several for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.types import KnowledgeBase, NewVersion
from ragstone.stores.database import Connection
from ragstone.stores.ledger.documents import has_document
from ragstone.stores.ledger.jobs import complete, enqueue, holds
from ragstone.stores.ledger.writes import Indexes, activate, discard, stage


def stage_all(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, versions: Sequence[NewVersion]
) -> list[int]:
    return [stage(connection, tenant_id, kb, version) for version in versions]


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


def existing(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> set[str]:
    return {identity for identity in set(document_ids) if has_document(connection, tenant_id, identity)}


def holding(connection: Connection, tenant_id: str, tickets: Sequence[Ticket]) -> set[Ticket]:
    return {ticket for ticket in set(tickets) if holds(connection, tenant_id, ticket)}


def enqueue_all(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, jobs: Sequence[NewJob]
) -> list[Job]:
    return [enqueue(connection, tenant_id, kb, job) for job in jobs]


def complete_all(connection: Connection, tenant_id: str, finished: Mapping[Ticket, JobProgress]) -> None:
    for ticket, progress in finished.items():
        if holds(connection, tenant_id, ticket):
            complete(connection, tenant_id, ticket, progress, "; ".join(progress.remarks[:3]))

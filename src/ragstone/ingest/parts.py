"""Checkpoints of one document in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.ledger import Ledger
from ragstone.ingest.task import Task


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """Keeps parts under the document's id and what they were made from: other content finds none of them."""

    ledger: Ledger
    tenant: str
    task: Task
    made_from: str

    async def load(self, part: str) -> bytes | None:
        return await self.ledger.part(self.tenant, self.task.document_id, self.made_from, part)

    async def save(self, part: str, data: bytes) -> None:
        """Nothing is kept of what was deleted or given to another worker meanwhile."""
        task = self.task
        async with self.ledger.transaction(self.tenant) as tx:
            if task.group.ticket and not await tx.holds(task.group.ticket):
                return
            if task.known and not await tx.has_document(task.document_id):
                return
            await tx.save_part(task.document_id, self.made_from, part, data)

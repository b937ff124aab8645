"""Checkpoints of one document in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from ragstone.core.protocols import Ledger


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """Keeps parts under the document's id and what they were made from: other content finds none of them."""

    ledger: Ledger
    tenant: str
    document_id: str
    made_from: str

    async def load(self, part: str) -> bytes | None:
        return await self.ledger.part(self.tenant, self.document_id, self.made_from, part)

    async def save(self, part: str, data: bytes) -> None:
        async with self.ledger.transaction(self.tenant) as tx:
            await tx.save_part(self.document_id, self.made_from, part, data)

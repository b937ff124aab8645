"""Embeds the waves of a run with the model that the kb has at that moment: it may be moved while the run goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.core.errors import ModelMismatch, ModelUnavailable
from ragstone.core.ledger import Ledger
from ragstone.core.tenants import Admission
from ragstone.ingest.embed import Embedded, embed
from ragstone.ingest.model_choice import ModelChoice
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.tally import Tally

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaveEmbedder:
    """What a run embeds with."""

    ledger: Ledger
    choice: ModelChoice
    gate: Admission
    tenant: str
    kb_name: str
    tally: Tally

    async def embed(self, wave: Sequence[Prepared]) -> Embedded:
        """Vectors for the live Space."""
        kb = await self.ledger.kb(self.tenant, self.kb_name)
        embedder = await self.choice.embedder(self.tenant, kb)
        async with self.gate.paying(self.tenant):
            return await embed(self.ledger, embedder, self.tenant, kb, wave, self.tally)

    async def in_step(self, wave: Sequence[Prepared], embedded: Embedded) -> Embedded:
        """The vectors, made anew if the kb has been moved to another model since."""
        kb = await self.ledger.kb(self.tenant, self.kb_name)
        space = kb.space if kb else None
        if embedded.vectors is None or space is None or space.model == embedded.model:
            return embedded
        try:
            return await self.embed(wave)
        except (ModelUnavailable, ModelMismatch) as error:
            # What is stored now is found by word; by meaning once somebody who has the model fills its Space.
            logger.warning("a wave is stored without vectors: %s", error)
            return embedded

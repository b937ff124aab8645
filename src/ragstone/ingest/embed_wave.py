"""Embeds the waves of a run with the model that the kb has at that moment: it may be moved while the run goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.core.errors import ModelMismatch, ModelUnavailable
from ragstone.core.tenants import Admission
from ragstone.ingest.embed import Embedded, embed
from ragstone.ingest.model_choice import ModelChoice
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.scope import Scope
from ragstone.ingest.tally import Tally

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaveEmbedder:
    """What a run embeds with."""

    scope: Scope
    choice: ModelChoice
    gate: Admission
    tally: Tally

    async def embed(self, wave: Sequence[Prepared]) -> Embedded:
        """Vectors for the live Space."""
        kb, tenant = await self.scope.now(), self.scope.tenant
        embedder = await self.choice.embedder(tenant, kb)
        async with self.gate.paying(tenant):
            return await embed(self.scope.ledger, embedder, tenant, kb, wave, self.tally)

    async def in_step(self, wave: Sequence[Prepared], embedded: Embedded) -> Embedded:
        """The vectors, made anew if the kb has been moved to another model since."""
        space = (await self.scope.now()).space
        if embedded.vectors is None or space is None or space.model == embedded.model:
            return embedded
        try:
            return await self.embed(wave)
        except (ModelUnavailable, ModelMismatch) as error:
            # What is stored now is found by word; by meaning once somebody who has the model fills its Space.
            logger.warning("a wave is stored without vectors: %s", error)
            return embedded

"""VERIFY: search for what was stored, by its own words and by its own vector."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.filters import Equals
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex, VectorIndex
from ragstone.core.types import Candidate, KnowledgeBase, Matrix
from ragstone.ingest.embed import Embedded
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.work import RunReport
from ragstone.language.analyzer import analyze

VERIFIED_PER_WAVE = 2
NEAREST = 0.98
"""A vector that was stored in half precision is still this near to itself."""
TERMS = 24
DEPTH = 20


class Verifier:
    """Looks documents up the way a search would."""

    def __init__(self, ledger: Ledger, vectors: VectorIndex, lexical: LexicalIndex) -> None:
        self._ledger = ledger
        self._vectors = vectors
        self._lexical = lexical

    async def problems(self, tenant: str, kb: KnowledgeBase, document: Prepared, vectors: Matrix | None) -> list[str]:
        """Return the reasons why a document that was just stored cannot be found; empty when it can."""
        problems = []
        sample = max(range(len(document.chunks)), key=lambda index: len(document.chunks[index].text))
        where = Equals("document_id", document.work.document_id)
        words = " ".join(dict.fromkeys(document.chunks[sample].text.split()[:TERMS]))
        if analyze(words):
            found = await self._lexical.search(tenant, kb, words, DEPTH, where)
            if not await self._is_of(tenant, kb, document, found):
                problems.append("it was not found by its own words")
        if vectors is not None and vectors[sample].any():
            near = await self._vectors.search(tenant, kb, vectors[sample], 1, where)
            if not near or near[0].score < NEAREST:
                score = f"{near[0].score:.3f}" if near else "nothing"
                problems.append(f"its own vector found {score} where 1.000 was expected")
        return problems

    async def _is_of(self, tenant: str, kb: KnowledgeBase, document: Prepared, found: Sequence[Candidate]) -> bool:
        chunks = await self._ledger.of(tenant).chunks(kb, [candidate.chunk_id for candidate in found])
        return any(chunk.document_id == document.work.document_id for chunk in chunks.values())

    async def check(
        self,
        tenant: str,
        opened: KnowledgeBase,
        wave: Sequence[Prepared],
        embedded: Embedded,
        stored: Sequence[Prepared],
        report: RunReport,
    ) -> None:
        """Search for some of what a wave has stored: all of a single upload, a sample of a batch."""
        kb = await self._ledger.of(tenant).kb(opened.name)
        if kb is None or kb.id != opened.id:
            return
        sample = {id(document) for document in stored[:VERIFIED_PER_WAVE]}
        vectors = embedded.vectors if kb.space and embedded.fit(kb.space) else None
        start = 0
        with report.times.measure("verify", len(sample)):
            for document in wave:
                end = start + len(document.chunks)
                if id(document) in sample:
                    rows = None if vectors is None else vectors[start:end]
                    for problem in await self.problems(tenant, kb, document, rows):
                        await self._report(tenant, document, problem, report)
                start = end

    async def _report(self, tenant: str, document: Prepared, problem: str, report: RunReport) -> None:
        # A document that was deleted or replaced since is rightly not found.
        live = await self._ledger.of(tenant).document(document.work.document_id)
        if live and live.content_hash == document.content_hash:
            report.degraded[f"verify: {document.work.item.uri}: {problem}"] = None

"""What an engine is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LLM, Embedder, Entailer, LexicalIndex, RecordSearch, Reranker, VectorIndex
from ragstone.core.tenants import TenantBook
from ragstone.gate import Gate
from ragstone.models.embedders.pool import EmbedderShelf
from ragstone.query.compress import CompressStage
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.transform import build_transformer
from ragstone.settings.retrieval import RetrievalSettings
from ragstone.settings.tree import Settings

if TYPE_CHECKING:
    from ragstone.activity import Activity
    from ragstone.answer import Answerer
    from ragstone.answer.research import Researcher
    from ragstone.answer.verify import ClaimVerifier
    from ragstone.corpora.builder import CorpusBuilder
    from ragstone.erasure import Eraser
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import Preparer
    from ragstone.intake import Intake
    from ragstone.reembed import Reembedder
    from ragstone.refresh.refresher import Refresher
    from ragstone.refresh.triggers import Triggers
    from ragstone.transfer.mover import Mover
    from ragstone.websearch.searcher import WebSearcher

Closing = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of; `ragstone.wiring` puts it together."""

    ledger: Ledger
    vectors: VectorIndex
    lexical: LexicalIndex
    embedder: Embedder
    embedders: EmbedderShelf
    """That one, and those of other models: for kbs that were made with them."""
    reranker: Reranker | None
    second_reranker: Reranker | None
    llm: LLM | None
    preparer: Callable[[str], Preparer]
    """Makes, for a model, what cuts documents; like the next ones only when it is needed: a search needs none."""
    pipeline: Callable[[str], IngestPipeline]
    intake: Callable[[str], Intake]
    reembedder: Callable[[], Reembedder]
    refresher: Callable[[], Refresher]
    triggers: Callable[[], Triggers]
    mover: Callable[[], Mover]
    corpora: Callable[[], CorpusBuilder]
    eraser: Callable[[], Eraser]
    reindex: Callable[[str, str], Awaitable[list[str]]]
    """Makes the indexes of a tenant's kb anew."""
    activity: Callable[[], Activity]
    web: WebSearcher | None
    records: RecordSearch | None
    answerer: Callable[[], Answerer]
    entailer: Callable[[], Entailer | None]
    """What judges whether a passage says what a sentence says; None leaves it to explicit checks."""
    verifier: Callable[[], ClaimVerifier]
    researcher: Callable[[], Researcher]
    gate: Gate
    tenants: TenantBook
    closing: list[Closing]

    def search_pipeline(self, retrieval: RetrievalSettings, settings: Settings) -> SearchPipeline:
        """What searches in a way that a tenant's settings ask for; the rest is as everybody's."""
        return SearchPipeline(
            self.ledger,
            self.vectors,
            self.lexical,
            self.embedders.of,
            self.reranker,
            retrieval,
            settings.reranking,
            second_reranker=self.second_reranker,
            transformer=build_transformer(retrieval, self.llm, settings.llm),
            compress=CompressStage(retrieval.compress, self.embedders.of, self.llm, settings.llm.max_tokens),
        )

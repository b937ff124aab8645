"""A search pipeline over stores and a given embedder, as the default profile sets it up."""

from __future__ import annotations

from ragstone.core.protocols import Embedder
from ragstone.core.types import Space
from ragstone.query.pipeline import SearchPipeline
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.stores.factory import Stores


def pipeline_over(stores: Stores, embedder: Embedder) -> SearchPipeline:
    """Every Space is searched with this embedder."""

    async def embedder_for(space: Space) -> Embedder:
        return embedder

    return SearchPipeline(
        stores.ledger, stores.vectors, stores.lexical, embedder_for, None, RetrievalSettings(), RerankingSettings()
    )

"""The ten components of the design are parts that can be used apart."""

from __future__ import annotations

from importlib import import_module

import pytest

COMPONENTS = {
    "retriever service": (
        "ragstone.agents.service.retrieval:ServiceRetriever",
        "retrieve retrieve_from_documents retrieve_from_database retrieve_from_internet",
    ),
    "document store": ("ragstone.engine.documents:Documents", "upload delete status list"),
    "vector store integration": ("ragstone.core.vectors:VectorProvider", "upsert search delete"),
    "database store": (
        "ragstone.engine.shop.shop:TenantShop",
        "get_product_context get_service_context get_appointment_availability",
    ),
    "internet search": (
        "ragstone.agents.service.enrichment:InternetSearch",
        "search_product_info extract_product_details is_cached get_cached_results",
    ),
    "processing pipeline": ("ragstone.ingest.pipeline:IngestPipeline", ""),
    "embedding service": ("ragstone.core.protocols:Embedder", "embed model"),
    "context synthesizer": (
        "ragstone.agents.service.synthesis:ContextSynthesizer",
        "synthesize resolve_conflicts format_for_llm",
    ),
    "attribution handler": ("ragstone.agents.service.attribution:", "add_attribution format_citation should_attribute"),
    "hybrid search engine": ("ragstone.query.pipeline:SearchPipeline", "search"),
}


@pytest.mark.req("R-CSA-39")
@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_of_the_design_has_a_place_of_its_own(name: str) -> None:
    place, methods = COMPONENTS[name]
    module, _, part = place.partition(":")
    found = getattr(import_module(module), part) if part else import_module(module)
    assert [method for method in methods.split() if not hasattr(found, method)] == []

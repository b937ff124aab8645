"""ENRICH: a document → what it is about, whom it names, what kind it is, two sentences of it, whom it resembles."""

from __future__ import annotations

from ragstone.core.types import Json, Parsed
from ragstone.ingest.enrich.boilerplate import trim_boilerplate
from ragstone.ingest.enrich.content_type import classify
from ragstone.ingest.enrich.entities import find_entities
from ragstone.ingest.enrich.excerpt import read_excerpt
from ragstone.ingest.enrich.keywords import find_keywords
from ragstone.ingest.enrich.near_duplicates import NEAR, bands, signature, similarity
from ragstone.ingest.enrich.summary import Summary, extract_summary, summarize
from ragstone.settings.tree import EnrichSettings

__all__ = [
    "FINGERPRINT",
    "NEAR",
    "Summary",
    "bands",
    "enrich",
    "signature",
    "similarity",
    "summarize",
    "trim_boilerplate",
]

FINGERPRINT = "enrich-1"
"""Changes whenever the same document would be described otherwise."""


def enrich(parsed: Parsed, settings: EnrichSettings) -> dict[str, Json]:
    """Metadata found in a normalized document; what was not found, or is known already, has no key.

    An `llm` summary is not made here, since that waits for a service: see `summarize`.
    """
    excerpt = read_excerpt(parsed)
    found: dict[str, Json] = {
        "keywords": find_keywords(excerpt, settings.keywords),
        "entities": find_entities(excerpt, settings.entities),
    }
    if settings.content_type and not parsed.metadata.get("content_type"):
        found["content_type"] = classify(parsed, excerpt)
    if settings.summary == "extractive":
        found["summary"] = extract_summary(excerpt)
    return {key: value for key, value in found.items() if value}

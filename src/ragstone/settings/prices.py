"""Prices of services that cost money, in US dollars. What runs on this machine or in your own network costs nothing."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import Field

from ragstone.settings.base import SettingsModel

LLM_RERANKING = 0.06
GOOGLE_THOUSAND, GOOGLE_FREE_PER_DAY = 5.0, 100
PINECONE_POD_MONTH, POD_VECTORS = 70.0, 100_000
"""A pod of 100,000 vectors: 0.096 for an hour are about 70 for a month."""


class PriceSettings(SettingsModel):
    """The price table; models have theirs beside their names: `embedding.price`, `llm.price_in`, `llm.price_out`."""

    reranking: float | None = Field(default=None, ge=0)
    """For a million tokens of an LLM that reranks; by default `llm.price_in`, or 0.06 at a public address."""
    web: float | None = Field(default=None, ge=0)
    """For a thousand web searches; by default 5 with Google and 0 with the others."""
    web_free_per_day: int | None = Field(default=None, ge=0)
    """Web searches of all tenants together that are free each day; by default 100 with Google."""
    vectors: float | None = Field(default=None, ge=0)
    """For 100,000 vectors a month; by default 70 in Pinecone and 0 in other stores."""

    def web_query(self, engine: str) -> float:
        """Return the price of one web search."""
        return (self.web if self.web is not None else GOOGLE_THOUSAND if engine == "google" else 0.0) / 1000

    def free_web_queries(self, engine: str) -> int:
        """Return the number of web searches that are free each day."""
        if self.web_free_per_day is not None:
            return self.web_free_per_day
        return GOOGLE_FREE_PER_DAY if engine == "google" else 0

    def vector_month(self, store: str) -> float:
        """Return the price of keeping one vector for a month."""
        price = self.vectors if self.vectors is not None else PINECONE_POD_MONTH if store == "pinecone" else 0.0
        return price / POD_VECTORS

    def reranking_million(self, price_in: float, base_url: str | None) -> float:
        """Return the price of a million tokens of an LLM that reranks at an address."""
        if self.reranking is not None:
            return self.reranking
        return price_in or (0.0 if is_own(base_url) else LLM_RERANKING)


def is_own(base_url: str | None) -> bool:
    """Return whether an address is in your own network; without one, the service is OpenAI's."""
    if base_url is None:
        return False
    host = urlsplit(base_url).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))

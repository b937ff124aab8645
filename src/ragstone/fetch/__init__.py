"""The one way out: addresses that users and documents give are fetched here, from the public net only."""

from ragstone.fetch.fetcher import Fetched, Fetcher
from ragstone.fetch.guard import Guard, Resolve
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import canonical_url, shown

__all__ = ["Fetched", "Fetcher", "Guard", "PoliteFetcher", "Resolve", "canonical_url", "shown"]

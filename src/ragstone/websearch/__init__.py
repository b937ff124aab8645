"""A search engine of the web as a source: query → engine → plain results, remembered for a day."""

from __future__ import annotations

from ragstone.core.protocols import WebSearch
from ragstone.core.registry import Registry
from ragstone.settings.web import WebSettings

ENGINES = Registry(
    "web search",
    {
        "searxng": "ragstone.websearch.searxng:SearXNG",
        "brave": "ragstone.websearch.brave:Brave",
        "tavily": "ragstone.websearch.tavily:Tavily",
        "google": "ragstone.websearch.google:Google",
        "fixture": "ragstone.websearch.fixture:Fixture",
    },
)


def build_web_search(settings: WebSettings) -> WebSearch:
    """The engine that the settings name."""
    engine: WebSearch = ENGINES.load(settings.kind)(settings)
    return engine

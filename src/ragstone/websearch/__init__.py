"""A search engine of the web as a source: query → engine → plain results, remembered for a day."""

from __future__ import annotations

from ragstone.core.protocols import WebSearch
from ragstone.core.registry import Registry
from ragstone.settings.web import WebSettings

ENGINES = Registry(
    "web search",
    {
        "searxng": "ragstone.websearch.engines:SearXNG",
        "brave": "ragstone.websearch.engines:Brave",
        "tavily": "ragstone.websearch.engines:Tavily",
        "google": "ragstone.websearch.engines:Google",
        "fixture": "ragstone.websearch.engines:Fixture",
    },
)


def build_web_search(settings: WebSettings) -> WebSearch:
    """Return the engine that the settings name."""
    engine: WebSearch = ENGINES.load(settings.kind)(settings)
    return engine

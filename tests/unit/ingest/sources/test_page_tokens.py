from __future__ import annotations

import pytest

from ragstone.core.errors import SourceError
from ragstone.ingest.sources import paging as page_tokens
from ragstone.ingest.sources.paging import PageTokens


def test_each_token_leads_on_once() -> None:
    tokens = PageTokens("Gmail")
    assert [tokens.follow(token) for token in ("a", "b", "", "")] == ["a", "b", "", ""]
    with pytest.raises(SourceError, match="Gmail lists in a circle"):
        tokens.follow("a")


def test_a_listing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_tokens, "MAX_PAGES", 2)
    tokens = PageTokens("Gmail")
    tokens.follow("a")
    tokens.follow("b")
    assert tokens.follow("") == ""
    with pytest.raises(SourceError, match="Gmail lists more than 2 pages"):
        tokens.follow("c")

from __future__ import annotations

import pytest

from ragstone.core.collections import collection_name


@pytest.mark.req("R-TEN-01")
@pytest.mark.parametrize(
    ("source_type", "tenant", "name"),
    [
        ("email", "default", "emails_default"),
        ("paper", "default", "papers_default"),
        ("rss", "default", "rss_default"),
        ("web", "default", "web_default"),
        ("email", "user_123", "emails_user_123"),
        ("hacker_news", "acme", "hacker_news_acme"),
    ],
)
def test_a_collection_is_named_by_source_type_and_tenant(source_type: str, tenant: str, name: str) -> None:
    assert collection_name(source_type, tenant) == name

"""Articles that agents wrote."""

from __future__ import annotations

from ragstone.core.agents.articles import ArticleClaim, WrittenArticle


def test_claims_that_are_said_are_counted() -> None:
    kept = ArticleClaim("A.", 0, 2, "confirmed", ("knowledge_base",), "A.", "a", "kept", 1)
    removed = ArticleClaim("B.", 3, 5, "open", (), "", "", "removed", None)
    assert WrittenArticle("A", "accepted", "A. [1]", (), (kept, removed), (), 0, (), ()).cited == 1

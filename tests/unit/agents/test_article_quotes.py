"""Sentences that fill up an article stand where the sources have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.settle import find_quotes
from ragstone.core.types import Hit, PageStart

TEXT = "Granite is an igneous rock of the north. Granite is quarried on the west coast."


async def test_a_quote_has_the_page_that_it_stands_on() -> None:
    second = TEXT.index("Granite is quarried")
    pages = (PageStart(second, 5),)
    hit = Hit("c", "d", "Rocks", "rocks.pdf", "", 4, TEXT, 1.0, {}, {}, 0, len(TEXT), page_starts=pages)
    pipeline = cast("Pipeline", SimpleNamespace(workspace=Workspace(hit), kb=None))
    quotes = await find_quotes(pipeline, "granite", "", 5)
    assert {quote["start"]: quote["page"] for quote in quotes} == {0: 4, second: 5}


class Workspace:
    """Finds one passage, which is all of its document."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self.documents = self

    async def research(self, topic: str, **how: Any) -> SimpleNamespace:
        return SimpleNamespace(findings=[SimpleNamespace(hit=self.hit, about=True)])

    async def text(self, document_id: str) -> str:
        return self.hit.text

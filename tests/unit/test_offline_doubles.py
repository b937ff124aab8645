"""Every model and every search service has a stand-in that needs no network and says the same each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.unit.websearch.test_engines import ENGINES

from ragstone.core.model_types import Message
from ragstone.settings.web import WebSettings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, FakeReranker
from ragstone.websearch import build_web_search

VECTORS = [[0.1135, 0.9132, 0.3221, 0.2222], [-0.2492, 0.2229, 0.5562, 0.7608]]
PAGE = {"title": "Ferries", "url": "https://ferry.example/", "snippet": "The ferry leaves at nine."}


async def answers(folder: Path) -> list[Any]:
    """Answers of new stand-ins to the same calls."""
    (folder / "web.json").write_text(json.dumps({"*": [PAGE]}), encoding="utf-8")
    embedded = await FakeEmbedder(dimension=4).embed(["the ferry", "a pier"])
    llm = FakeLLM(["At nine."])
    request = [Message("user", "When?")]
    return [
        [[round(float(value), 4) for value in row] for row in embedded.vectors],
        await FakeReranker().score("late ferry", ["a ferry", "a late ferry", "a pier"]),
        await llm.complete(request, max_tokens=9, seconds=1),
        [word async for word in FakeLLM(["At nine."]).stream(request, max_tokens=9, seconds=1)],
        await build_web_search(WebSettings(kind="fixture", path=folder / "web.json")).search("ferry", 3),
    ]


@pytest.mark.req("R-TST-55")
async def test_stand_ins_of_embedder_reranker_llm_and_web_search_repeat_themselves(tmp_path: Path) -> None:
    first, again = await answers(tmp_path), await answers(tmp_path)
    assert first == again
    # The same in every process and on every machine.
    assert first[0] == VECTORS
    assert first[1:4] == [[0.5, 1.0, 0.0], "At nine.", ["At", " nine."]]


@pytest.mark.req("R-TST-55")
def test_every_web_search_service_is_tested_against_a_double() -> None:
    kinds = set(get_args(WebSettings.model_fields["kind"].annotation))
    assert kinds - {"none", "fixture"} == set(ENGINES)

"""A service on one machine calls nothing but the language model that it was set up with."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.doubles.openai import OpenAIDouble, Reply, Request, chat_reply
from tests.serve.http.conftest import Caller

from ragstone import Settings

_connects: list[list[Any]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        for noted in _connects:
            noted.append(arguments[1] if event != "socket.getaddrinfo" else arguments[:2])


sys.addaudithook(_note)


@pytest.fixture
def connects() -> Iterator[list[Any]]:
    """The addresses that this process connects to, or looks up, during a test."""
    _connects.append([])
    yield _connects[-1]
    _connects.pop()


def rank(request: Request) -> Reply:
    """Turn the order of the passages round."""
    passages = json.loads(request.body["messages"][-1]["content"])["passages"]
    points = [{"id": passage["id"], "points": passage["id"]} for passage in reversed(passages)]
    return chat_reply(json.dumps(points))


@pytest.fixture
def llm() -> Iterator[OpenAIDouble]:
    with OpenAIDouble(rank) as double:
        yield double


@pytest.fixture
def settings(data_dir: Path, llm: OpenAIDouble) -> Settings:
    model = {"model": "m", "base_url": llm.url, "api_key": "k"}
    return Settings.model_validate({"data_dir": data_dir, "llm": model, "reranking": {"kind": "llm"}})


@pytest.mark.req("R-SEC-19")
def test_a_reranked_search_goes_to_the_language_model_alone(
    acme: Caller, llm: OpenAIDouble, connects: list[Any]
) -> None:
    for name in ("north", "south"):
        acme.upload(f"# Gate\n\nThe {name} tide gate opens at nine.\n", f"{name}.md", kb="docs")
    assert connects == []  # nothing is called to take documents in
    fast, thorough = (
        acme("GET", "/knowledge/docs/search", params={"q": "tide gate", "thoroughness": mode}).json()
        for mode in ("fast", "thorough")
    )
    sources = [[result["source"] for result in found["results"]] for found in (fast, thorough)]
    assert sources[1] == sources[0][::-1]
    assert len(llm.requests) == 1
    assert {address[:2] for address in connects} == {("127.0.0.1", urlsplit(llm.url).port)}

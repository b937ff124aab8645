"""Every dependency of the service, going wrong in every way: a typed answer in time, and all is well once it is back.

The deadlines are short here, so that a dependency that hangs does not hold up the tests.
`RAGSTONE_DEPENDENCY_ROUNDS=3 pytest tests/faults/test_dependencies.py` is the long run, for a machine that does nothing
else: each answer must come within its deadline and a second, and each dependency must be used again within ten seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.doubles.faulty import FAULT_KINDS, HOST, FaultKind, FaultyProxy
from tests.doubles.openai import OpenAIDouble, Request, chat_reply, json_reply
from tests.doubles.qdrant import QdrantDouble
from tests.doubles.web import WebDouble, xml
from tests.doubles.web import json_reply as web_json
from tests.long_runs import take_rounds

from ragstone import Settings, open_engine
from ragstone.core.keys import SCOPES, NewApiKey
from ragstone.serve.http.app import build_app
from ragstone.testing.fakes import FakeEmbedder

ROUNDS = take_rounds("RAGSTONE_DEPENDENCY_ROUNDS", 0)
SECONDS = 0.6
"""The time that each dependency has to answer."""
GIVE_UP_SECONDS = 30
TEXT = "# Refunds\n\nRefunds take five working days. They are paid to the card that was charged."
FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://news.example/</link>'
    "<item><title>Stones</title><link>http://news.example/1</link><description>A stone was found.</description></item>"
    "</channel></rss>"
)
BEHIND = FakeEmbedder(dimension=1536)


def _embed(request: Request) -> Any:
    vectors = asyncio.run(BEHIND.embed(request.body["input"])).vectors
    rows = [{"object": "embedding", "index": index, "embedding": row.tolist()} for index, row in enumerate(vectors)]
    return json_reply({"object": "list", "data": rows, "model": "m", "usage": {"prompt_tokens": 3, "total_tokens": 3}})


def _chat(_: Request) -> Any:
    return chat_reply("Refunds take five working days. [1]")


class World:
    """A service whose store, LLM, embedder, source and web search are reached through proxies."""

    def __init__(self, client: TestClient, token: str, proxies: dict[str, FaultyProxy], work: Any) -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}
        self.proxies = proxies
        self._work = work

    def call(self, method: str, path: str, **options: Any) -> Any:
        return self._client.request(method, path, headers=self._headers, **options)

    def work(self) -> None:
        assert self._client.portal is not None
        self._client.portal.call(self._work)

    def search(self, *, web: bool = False) -> Any:
        number = time.monotonic_ns()  # another query each time: none is answered from a cache
        body = {"query": f"how long do refunds take {number}", "web": web, "arms": "dense" if not web else "hybrid"}
        return self.call("POST", "/v1/search", json=body)

    def ask(self) -> Any:
        return self.call("POST", "/v1/ask", json={"question": "How long do refunds take?"})

    def sync(self) -> Any:
        queued = self.call("POST", "/v1/sources/news/sync", params={"afresh": True})
        assert queued.status_code == 202, queued.text
        self.work()
        return self.call("GET", f"/v1/jobs/{queued.json()['id']}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        models = {
            "llm": stack.enter_context(OpenAIDouble(_chat)),
            "embedder": stack.enter_context(OpenAIDouble(_embed)),
        }
        web = stack.enter_context(WebDouble())
        web.on("/feed", xml(FEED))
        web.on("/search", web_json({"results": [{"url": "http://x.example/", "title": "X", "content": "Refunds."}]}))
        qdrant = stack.enter_context(QdrantDouble())
        behind = {name: model.url.split("/")[2] for name, model in models.items()}
        behind |= {"store": qdrant.url.split("/")[2], "source": f"{HOST}:{web.port}", "web": f"{HOST}:{web.port}"}
        proxies = {name: stack.enter_context(FaultyProxy(address)) for name, address in behind.items()}
        engine = open_engine(_settings(tmp_path_factory.mktemp("data"), proxies))
        client = stack.enter_context(TestClient(build_app(engine, worker=False), raise_server_exceptions=False))
        assert client.portal is not None
        client.portal.call(engine.tenants.create, "acme")
        issued = client.portal.call(engine.keys.create, NewApiKey("acme", SCOPES))
        made = World(client, issued.token, proxies, lambda: engine.worker().run(until_idle=True))
        _fill(made, f"http://{HOST}:{proxies['source'].port}/feed")
        yield made
        client.portal.call(engine.close)


def _settings(data_dir: Path, proxies: dict[str, FaultyProxy]) -> Settings:
    urls = {name: f"http://{HOST}:{proxy.port}" for name, proxy in proxies.items()}
    remote = {"api_key": "k", "timeout": SECONDS, "retries": 0}
    return Settings(
        data_dir=data_dir,
        store={"vectors": {"kind": "qdrant", "url": urls["store"], "options": {"timeout": SECONDS}}},
        llm={"model": "m", "base_url": f"{urls['llm']}/v1", **remote},
        embedding={"model": "text-embedding-3-small", "remote": {"base_url": f"{urls['embedder']}/v1", **remote}},
        web={"kind": "searxng", "url": urls["web"], "timeout": SECONDS, "retries": 0, "cache_hours": 0},
        fetch={"allow": (HOST,), "timeout": SECONDS, "retries": 0, "seconds_per_host": 0, "robots": False},
        jobs={"attempts": 1, "retry_seconds": 0},
        cache={"search_seconds": 0},
    )


def _fill(world: World, feed: str) -> None:
    taken = world.call("POST", "/v1/documents", files={"file": ("refunds.md", TEXT.encode())})
    assert taken.status_code == 202, taken.text
    world.work()
    source = {"kind": "feeds", "name": "news", "config": {"urls": [feed]}}
    made = world.call("POST", "/v1/sources", json=source)
    assert made.status_code == 201, made.text
    for name, call in CALLS.items():
        assert IS_WELL[name](call(world).json()), name


CALLS: dict[str, Callable[[World], Any]] = {
    "store": World.search,
    "embedder": World.search,
    "llm": World.ask,
    "web": lambda world: world.search(web=True),
    "source": World.sync,
}
IS_WELL: dict[str, Callable[[Any], bool]] = {
    "store": lambda found: bool(found.get("hits")) and not found["degraded"],
    "embedder": lambda found: bool(found.get("hits")) and not found["degraded"],
    "llm": lambda answer: bool(answer.get("citations")) and not answer["degraded"],
    "web": lambda found: bool(found.get("web")) and not found["degraded"],
    "source": lambda job: job.get("state") == "completed",
}


def assert_typed(name: str, reply: Any) -> None:
    """Check that a reply says what went wrong: an error with a code, or a result that names what it lacks."""
    said = reply.json()
    if reply.status_code != 200:
        assert (reply.status_code, reply.headers["content-type"]) == (said["status"], "application/problem+json")
        assert said["status"] in (502, 503), said
        assert said["code"] not in ("", "internal"), said
    elif name == "source":
        assert (said["state"], bool(said["error_code"])) == ("failed", True), said
        assert said["error_code"] != "internal", said
    else:
        assert said["degraded"], said
        assert name != "llm" or said["citations"], "the passages are there without the LLM"
        assert "surprise" not in reply.text


@pytest.mark.parametrize("name", CALLS)
def test_a_dependency_that_fails_is_named_in_time(
    world: World, name: str, record_property: Callable[[str, object], None]
) -> None:
    """FAULTS 12 and 13."""
    answers, recoveries = [], []
    for kind in FAULT_KINDS * max(ROUNDS, 1):
        answers.append(fail(world, name, kind))
        recoveries.append(recover(world, name))
    record_property("injected", len(answers))
    record_property("noted", f"{name}: answers within {max(answers):.1f} s, back after {max(recoveries):.1f} s")
    if ROUNDS:
        assert max(answers) < SECONDS + 1
        assert max(recoveries) < 10


def fail(world: World, name: str, kind: FaultKind) -> float:
    """Have a dependency fail, and return the seconds after which the service said so."""
    started = time.monotonic()
    world.proxies[name].fault = kind
    try:
        assert_typed(name, CALLS[name](world))
    finally:
        world.proxies[name].fault = None
    return time.monotonic() - started


def recover(world: World, name: str) -> float:
    """Return the seconds after which a dependency that works again is used again."""
    started = time.monotonic()
    while not IS_WELL[name](CALLS[name](world).json()):
        assert time.monotonic() - started < GIVE_UP_SECONDS, f"{name} does not come back"
        time.sleep(0.2)
    return time.monotonic() - started

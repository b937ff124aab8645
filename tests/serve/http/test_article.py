"""An article over HTTP: queued, followed node by node, read when it is done, resumed when it failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.doubles.newsroom import ask_tool, newsroom, once
from tests.doubles.openai import Reply, Request, json_reply
from tests.serve.http.conftest import Service, open_service

from ragstone import Settings
from ragstone.settings.tree import LLMSettings

GATE = "# Gate\n\nThe tide gate opens at nine. The keeper of the tide gate has two keys.\n"


def work(service: Service) -> None:
    async def run() -> None:
        await service.engine.worker().run(until_idle=True)

    service.run(run)


def test_without_a_model_nothing_is_queued(tmp_path: Path) -> None:
    with open_service(Settings(data_dir=tmp_path)) as service:
        caller = service.caller("acme", "read", "write")
        caller.upload(GATE)
        queued = len(caller("GET", "/v1/jobs").json()["jobs"])
        refused = caller("POST", "/v1/articles", json={"topic": "The tide gate"})
        assert (refused.status_code, "llm.model" in refused.json()["hint"]) == (503, True)
        assert caller("GET", "/v1/articles").json()["runs"] == []
        assert len(caller("GET", "/v1/jobs").json()["jobs"]) == queued


@pytest.mark.req("R-API-17")
def test_an_article_is_queued_followed_resumed_and_read(tmp_path: Path) -> None:
    broken = True

    def critic(_: Request) -> Reply | str:
        return json_reply({}, 500) if broken else "Short."

    writer = once(ask_tool("search_knowledge", {"query": "keeper"}), GATE)
    with newsroom({"writer": writer, "editor": GATE, "style_enforce": GATE, "critic": critic}) as double:
        settings = Settings(data_dir=tmp_path, llm=LLMSettings(model="m", base_url=double.url, retries=0))
        with open_service(settings) as service:
            caller = service.caller("acme", "read", "write")
            caller.upload(GATE)
            queued = caller("POST", "/v1/articles", json={"topic": "The tide gate"})
            place, article = queued.headers["location"], queued.headers["content-location"]
            assert (queued.status_code, queued.json()["source"]) == (202, "article")
            assert caller("GET", article).json()["article"] is None
            work(service)
            assert (caller("GET", place).json()["state"], caller("GET", article).json()["status"]) == (
                "failed",
                "failed",
            )
            broken = False
            again = caller("POST", f"{article}/resume")
            assert again.headers["content-location"] == article
            work(service)
            with service.client.stream(
                "GET",
                again.headers["location"],
                headers={"Authorization": f"Bearer {caller.token}", "Accept": "text/event-stream"},
            ) as stream:
                events = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
            assert events[-1]["state"] == "completed"
            run = caller("GET", article).json()
            (listed,) = caller("GET", "/v1/articles").json()["runs"]
            denied = service.caller("acme", "read")("POST", "/v1/articles", json={"topic": "x"})
    assert (run["status"], listed["article"], denied.status_code) == ("completed", None, 403)
    assert "The tide gate opens at nine. [1]" in run["article"]["markdown"]
    assert [step["node"] for step in run["article"]["steps"]].count("critic") == 1
    assert {citation["quote"] for citation in run["article"]["citations"]} >= {"The tide gate opens at nine."}

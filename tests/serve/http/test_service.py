"""The customer-service agent over HTTP: messages, events, configuration, chart."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from tests.serve.http.conftest import Caller, Service

from ragstone.core.shop import Product

ASKED = {"message": "When does the tide gate open?"}
GATE = "# Gate\n\nThe tide gate opens at nine. The keeper has two keys.\n"


@pytest.mark.req("R-API-16")
def test_a_message_is_answered_in_a_conversation(acme: Caller) -> None:
    acme.upload(GATE)
    reply = acme("POST", "/v1/chat", json=ASKED).json()
    assert (reply["status"], reply["sources"]) == ("answered", ["documents"])
    assert reply["reply"] == "The tide gate opens at nine [Source: Gate]."
    again = acme("POST", "/v1/chat", json={"message": "Thanks!", "conversation": reply["conversation"]}).json()
    assert (again["status"], again["conversation"]) == ("small_talk", reply["conversation"])
    turns = acme("GET", f"/v1/conversations/{reply['conversation']}").json()["turns"]
    assert [turn["question"] for turn in turns] == [ASKED["message"], "Thanks!"]
    assert acme("DELETE", f"/v1/conversations/{reply['conversation']}").json()["turns"] == 2


@pytest.mark.req("R-API-16")
def test_a_reply_comes_as_events(acme: Caller) -> None:
    acme.upload(GATE)
    answer = acme("POST", "/v1/chat", json=ASKED, headers={"Accept": "text/event-stream"})
    events = [block.split("\n", 1) for block in answer.text.strip().split("\n\n") if block.startswith("event")]
    assert [name for name, _ in events] == ["event: sentence", "event: reply"]
    sentence, reply = (json.loads(data.removeprefix("data: ")) for _, data in events)
    assert sentence["marked"] == reply["reply"] == "The tide gate opens at nine [Source: Gate]."


@pytest.mark.req("R-API-16", "R-DOM-26")
def test_the_configuration_is_changed_by_an_administrator(service: Service, acme: Caller) -> None:
    assert acme("GET", "/v1/agent").json()["enable_internet_enrichment"] is False
    changed = acme("PATCH", "/v1/agent", json={"enable_source_attribution": False, "agent_cannot_do": "Talk of tides."})
    assert (changed.status_code, changed.json()["enable_source_attribution"]) == (200, False)
    acme.upload(GATE)
    assert acme("POST", "/v1/chat", json=ASKED).json()["status"] == "declined"
    assert acme("PATCH", "/v1/agent", json={"max_internet_results": 9}).status_code == 422
    assert acme("PATCH", "/v1/agent", json={"unknown": 1}).status_code == 422
    reader = service.caller("acme", "read")
    assert reader("GET", "/v1/agent").json()["agent_cannot_do"] == "Talk of tides."
    assert reader("PATCH", "/v1/agent", json={}).status_code == 403
    assert service.caller("globex")("GET", "/v1/agent").json()["agent_cannot_do"] == ""


def test_a_message_that_cannot_be_answered(acme: Caller) -> None:
    assert acme("POST", "/v1/chat", json={"message": " "}).status_code == 422
    assert acme("POST", "/v1/chat", json={"message": "x" * 10_000}).status_code == 422
    assert acme("POST", "/v1/chat", json={"message": "Hi", "conversation": "a\nb"}).status_code == 422
    assert acme("POST", "/v1/chat", json={"message": "Hi", "conversation": "x" * 300}).status_code == 422


def test_a_tenant_without_the_flag_has_no_agent(service: Service, acme: Caller) -> None:
    async def switch_off() -> None:
        await service.engine.tenants.set_settings("acme", {"flags.service_agent": False})

    service.run(switch_off)
    assert acme("POST", "/v1/chat", json=ASKED).status_code == 403


@pytest.mark.req("R-CSA-33", "R-API-16")
def test_analytics_are_drawn(service: Service, acme: Caller) -> None:
    async def fill() -> None:
        await service.engine.workspace("acme").shop.put_product(Product("key", "Silver key"))

    acme.upload(GATE)
    service.run(fill)
    empty = acme("GET", "/v1/analytics/chart.svg")
    for _ in range(3):
        acme("POST", "/v1/chat", json=ASKED)
    drawn = acme("GET", "/v1/analytics/chart.svg", params={"days": 7})
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    for chart in (empty, drawn):
        ET.fromstring(chart.text)
    words = [one.text for one in ET.fromstring(drawn.text).iter() if one.text and one.text.strip()]
    assert "Retrievals a day" in words
    assert "3 asked, 3 helpful, 0 failed" in words
    assert acme("GET", "/v1/analytics").json()["sources"]["documents"]["asked"] == 3
    assert service.caller("acme", "read")("GET", "/v1/analytics/chart.svg").status_code == 403

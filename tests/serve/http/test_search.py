"""Search, answers and claims over HTTP."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from tests.serve.http.conftest import Caller, Service

from ragstone.serve.http import identity, replies

GATE = "# Gate\n\nThe tide gate opens at nine.\n"


@pytest.fixture
def asker(acme: Caller) -> Caller:
    acme.upload(GATE)
    return acme


@pytest.mark.req("R-API-13")
def test_a_search_has_the_shape_of_the_command(asker: Caller) -> None:
    found = asker("POST", "/v1/search", json={"query": "tide gate", "k": 1, "mode": "fast"}).json()
    assert (found["query"], found["mode"], len(found["hits"])) == ("tide gate", "fast", 1)
    assert found["hits"][0]["text"].endswith("The tide gate opens at nine.")


def test_an_answer_has_its_source(asker: Caller) -> None:
    answer = asker("POST", "/v1/ask", json={"question": "When does the tide gate open?"}).json()
    assert (answer["status"], answer["answer"]) == ("answered", "The tide gate opens at nine. [1]")
    assert answer["citations"][0]["quote"] == "The tide gate opens at nine."


def test_an_answer_is_streamed_as_events(asker: Caller) -> None:
    question = {"question": "When does the tide gate open?"}
    whole = asker("POST", "/v1/ask", json=question).json()
    streamed = asker("POST", "/v1/ask", json=question, headers={"Accept": "text/event-stream"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    events = _events(streamed.text)
    assert [name for name, _ in events] == ["sentence", "citations", "answer"]
    assert events[-1][1] == {"event": "answer", **whole}


def test_a_stream_that_fails_at_once_is_answered_with_the_status_of_its_error(acme: Caller) -> None:
    question = {"question": "What?", "kb": "nowhere"}
    refused = acme("POST", "/v1/ask", json=question, headers={"Accept": "text/event-stream"})
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


def test_a_stream_that_fails_later_ends_with_an_error(acme: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "FIRST_SECONDS", 0.0)
    streamed = acme("POST", "/v1/ask", json={"question": "What?"}, headers={"Accept": "text/event-stream"})
    ((name, problem),) = _events(streamed.text)
    assert (name, problem["error"]["code"]) == ("error", "not_found")


def test_a_stream_ends_when_its_key_is_revoked(
    service: Service, asker: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(replies, "CHECK_SECONDS", 0.01)
    issued = service.key("acme", "read", "write")
    taken = asker("POST", "/v1/documents", files={"file": ("b.md", b"# B\n\nNobody works on this.")}).json()

    async def revoke() -> None:
        await service.engine.keys.revoke(issued.key.id, tenant="acme")

    watcher = Caller(service, issued.token)
    path = f"/v1/jobs/{taken['job_id']}"
    calls = 0
    find = service.client.app.state.keys.find

    async def find_and_revoke(token: str) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:  # the request itself, the first event, and then
            await revoke()
        return await find(token)

    monkeypatch.setattr(service.client.app.state.keys, "find", find_and_revoke)
    events = _events(watcher("GET", path, headers={"Accept": "text/event-stream"}).text)
    assert [name for name, _ in events] == ["job", "error"]
    assert events[1][1]["error"]["code"] == "unauthenticated"


def test_the_progress_of_a_job_is_streamed_until_it_has_ended(asker: Caller) -> None:
    job_id = asker("GET", "/v1/jobs").json()["jobs"][0]["id"]
    events = _events(asker("GET", f"/v1/jobs/{job_id}", headers={"Accept": "text/event-stream"}).text)
    assert [(name, job["state"], job["progress"]) for name, job in events] == [("job", "completed", 100)]


def test_a_claim_is_checked(asker: Caller) -> None:
    verdict = asker("POST", "/v1/verify", json={"claim": "The tide gate opens at nine."}).json()
    assert (verdict["stance"], verdict["evidence"][0]["text"]) == ("supported", "The tide gate opens at nine.")


def test_a_topic_is_researched_and_a_search_explained(asker: Caller) -> None:
    findings = asker("POST", "/v1/research", json={"topic": "tide gate", "depth": "quick"}).json()["findings"]
    assert "opens at nine" in findings[0]["text"]
    document_id = asker("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"][0]["document_id"]
    told = asker("POST", "/v1/explain", json={"query": "tide gate", "document_id": document_id}).json()
    assert told["found"] is True
    unknown = asker("POST", "/v1/explain", json={"query": "tide gate", "document_id": "0" * 32})
    assert unknown.status_code == 404


def test_feedback_and_conversations_are_kept(asker: Caller) -> None:
    hit = asker("POST", "/v1/search", json={"query": "tide gate", "conversation": "c1"}).json()["hits"][0]
    assert asker("POST", "/v1/feedback", json={"query": "tide gate", "chunk_ids": [hit["chunk_id"]]}).status_code == 201
    assert [vote["chunk_id"] for vote in asker("GET", "/v1/feedback").json()["feedback"]] == [hit["chunk_id"]]
    assert [turn["question"] for turn in asker("GET", "/v1/conversations/c1").json()["turns"]] == ["tide gate"]
    assert asker("DELETE", "/v1/conversations/c1").json() == {"forgotten": "c1", "turns": 1}
    assert asker("GET", "/v1/conversations").json() == {"conversations": []}


@pytest.mark.parametrize("name", ["support/42", "https://shop.example/?a=1#b", "a/../b", "/", "50% off", "Zoë"])
def test_a_conversation_of_any_name_is_shown_and_forgotten(asker: Caller, name: str) -> None:
    asker("POST", "/v1/search", json={"query": "tide gate", "conversation": name})
    place = f"/v1/conversations/{quote(name, safe='')}"
    shown = asker("GET", place).json()
    assert (shown["conversation"], [turn["question"] for turn in shown["turns"]]) == (name, ["tide gate"])
    assert asker("DELETE", place).json() == {"forgotten": name, "turns": 1}


@pytest.mark.parametrize("name", [".", ".."])
def test_no_conversation_is_begun_that_no_address_leads_to(asker: Caller, name: str) -> None:
    for path, field in (("search", "query"), ("ask", "question"), ("chat", "message")):
        assert asker("POST", f"/v1/{path}", json={field: "tide gate", "conversation": name}).status_code == 422


def _events(text: str) -> list[tuple[str, dict[str, object]]]:
    """The events of a stream, without the comments between them."""
    blocks = [block.split("\n") for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]

"""Requests that are repeated: done once, answered the same, and what is unchanged is not sent again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.http.conftest import Caller, Service, open_service

from ragstone import Settings
from ragstone.core.answers import AnswerEvent, Sentence, SentenceReady
from ragstone.core.errors import StoreBusy
from ragstone.core.search import Question
from ragstone.engine.workspace import Workspace
from ragstone.serve.http import idempotency
from ragstone.stores.control import replies

GATE = "# Gate\n\nThe tide gate opens at nine.\n"


def repeat(caller: Caller, key: str, path: str = "/v1/keys", **options: Any) -> Any:
    options = options or {"json": {"scopes": ["read"]}}
    return caller("POST", path, headers={"Idempotency-Key": key}, **options)


def test_a_repeated_request_is_done_once_and_answered_the_same(shared: Service) -> None:
    caller = shared.caller("once")
    first, second = repeat(caller, "a"), repeat(caller, "a")
    assert first.status_code == 201
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["content-type"] == first.headers["content-type"]
    assert ("idempotency-replayed" in first.headers, second.headers["idempotency-replayed"]) == (False, "true")
    assert len(caller("GET", "/v1/keys").json()["keys"]) == 2
    assert repeat(caller, "b").content != first.content


def test_another_request_under_the_same_key_is_refused(shared: Service) -> None:
    caller = shared.caller("reuse")
    repeat(caller, "a")
    for other in (repeat(caller, "a", json={"scopes": ["write"]}), repeat(caller, "a", "/v1/keys?x=1")):
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert repeat(caller, "\x7f").status_code == repeat(caller, "k" * 256).status_code == 422


def test_the_same_upload_has_the_same_reply_whatever_its_boundary(shared: Service) -> None:
    caller = shared.caller("uploads")
    taken = [repeat(caller, "a", "/v1/documents", files={"file": ("a.md", GATE.encode())}) for _ in range(2)]
    assert taken[0].request.headers["content-type"] != taken[1].request.headers["content-type"]
    assert (taken[1].status_code, taken[1].json()) == (202, taken[0].json())
    assert taken[1].headers["location"] == taken[0].headers["location"]


def test_keys_are_of_one_caller_alone(shared: Service) -> None:
    acme, globex, reader = shared.caller("mine"), shared.caller("yours"), shared.caller("mine", "read")
    issued = repeat(acme, "a").json()
    assert repeat(globex, "a").json()["tenant"] == "yours"
    assert issued["tenant"] == "mine"
    assert repeat(reader, "a").status_code == 403
    assert repeat(Caller(shared, "rgs_wrong"), "a").status_code == 401


def test_what_failed_may_be_made_again(shared: Service) -> None:
    caller = shared.caller("failures")
    query = {"query": "When?", "document_ids": ["0" * 32]}
    assert repeat(caller, "a", "/v1/golden", json=query).status_code == 404
    query["document_ids"] = [caller.upload(GATE)]
    assert repeat(caller, "a", "/v1/golden", json=query).status_code == 201


def test_a_stream_that_ended_with_an_error_may_be_made_again(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: Workspace, question: Question | str) -> AsyncGenerator[AnswerEvent]:
        yield SentenceReady(Sentence("The tide gate opens at nine.", "supported", ()), "The tide gate opens at nine.")
        raise StoreBusy("the ledger is busy")

    caller = shared.caller("streams")
    caller.upload(GATE)
    headers = {"Accept": "text/event-stream", "Idempotency-Key": "a"}
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "stream", fail)
        failed = caller("POST", "/v1/ask", json={"question": "When?"}, headers=headers)
    assert (failed.status_code, "event: error" in failed.text) == (200, True)
    again = caller("POST", "/v1/ask", json={"question": "When?"}, headers=headers)
    assert ("event: error" in again.text, "idempotency-replayed" in again.headers) == (False, False)
    assert caller("POST", "/v1/ask", json={"question": "When?"}, headers=headers).text == again.text


def test_requests_at_the_same_time_are_done_once(shared: Service) -> None:
    caller = shared.caller("together")
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(repeat(caller, "a"))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.content for answer in answers} == {answers[0].content}
    assert len(caller("GET", "/v1/keys").json()["keys"]) == 2


def test_a_reply_outlives_the_service_and_cannot_be_read_from_its_files(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with open_service(settings) as service:
        caller = service.caller("acme")
        first = repeat(caller, "a")
    with open_service(settings) as service:
        again = repeat(Caller(service, caller.token), "a")
        assert again.content == first.content
    secret = first.json()["key"].encode()
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret in file.read_bytes()]


def test_an_erasure_takes_stored_replies_with_it(shared: Service) -> None:
    caller = shared.caller("erasures")
    document_id = caller.upload(GATE)
    asked = {"json": {"query": "tide gate"}}
    assert repeat(caller, "a", "/v1/search", **asked).json()["hits"]
    caller("DELETE", f"/v1/documents/{document_id}?erase=true")
    again = repeat(caller, "a", "/v1/search", **asked)
    assert (again.status_code, again.json()["code"]) == (409, "reply_not_kept")


def test_a_reply_that_is_too_large_is_not_kept(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_BYTES", 10)
    caller = shared.caller("large")
    assert repeat(caller, "a").status_code == 201
    again = repeat(caller, "a")
    assert (again.status_code, again.json()["code"]) == (409, "reply_not_kept")
    assert len(caller("GET", "/v1/keys").json()["keys"]) == 2


def test_a_tenant_that_has_many_replies_goes_on_and_the_oldest_is_forgotten(
    shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "MOST_REPLIES", 1)
    caller = shared.caller("many")
    first, second = repeat(caller, "a"), repeat(caller, "b")
    assert (first.status_code, second.status_code) == (201, 201)
    assert repeat(caller, "b").content == second.content
    assert repeat(caller, "a").content != first.content


def test_a_tenant_has_only_so_many_under_way(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST_REPLIES", 0)
    refused = repeat(shared.caller("busy"), "a")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")


def test_a_request_that_waits_too_long_for_the_first_is_told_so(
    shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.0)
    caller = shared.caller("waiting")
    begun, go_on = threading.Event(), threading.Event()
    create = shared.engine.keys.create

    async def slow(wanted: Any) -> Any:
        begun.set()
        await asyncio.to_thread(go_on.wait)
        return await create(wanted)

    with monkeypatch.context() as patch:
        patch.setattr(type(shared.engine.keys), "create", lambda _, wanted: slow(wanted))
        first = threading.Thread(target=repeat, args=(caller, "a"))
        first.start()
        begun.wait()
        second = repeat(caller, "a")
        go_on.set()
        first.join()
    assert (second.status_code, second.json()["code"]) == (409, "request_under_way")
    assert repeat(caller, "a").status_code == 201


def test_head_is_answered_as_get_without_the_body(shared: Service) -> None:
    caller = shared.caller("tags")
    for path in ("/healthz", "/ask", "/v1/sources", "/v1/documents/none", "/v1/search"):
        whole, head = caller("GET", path), caller("HEAD", path)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        for name in ("content-length", "content-type", "etag", "cache-control"):
            assert head.headers.get(name) == whole.headers.get(name), (path, name)
    assert shared.client.head("/v1/sources").status_code == 401


def test_what_is_unchanged_is_not_sent_again(shared: Service) -> None:
    caller = shared.caller("tags")
    document_id = caller.upload(GATE, external_id="gate")
    paths = [f"/v1/documents/{document_id}{part}" for part in ("", "/text", "/chunks", "/file", "/versions")]
    for path in (*paths, "/v1/documents", "/v1/kbs", "/v1/kbs/default", "/v1/sources"):
        first = caller("GET", path)
        known = {"If-None-Match": f'"other", W/{first.headers["etag"]}'}
        again = caller("GET", path, headers=known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"]), path
        assert "content-length" not in again.headers
    tag = caller("GET", paths[1]).headers["etag"]
    caller.upload(GATE + "It closes at ten.\n", external_id="gate")
    changed = caller("GET", paths[1], headers={"If-None-Match": tag})
    assert (changed.status_code, "closes" in changed.text) == (200, True)
    assert "etag" not in caller("GET", "/v1/documents/none").headers

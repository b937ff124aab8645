"""Errors as problems, and requests that are too large or too slow."""

from __future__ import annotations

import inspect
import json
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from tests.serve.http.conftest import Caller, Service

from ragstone.core import errors
from ragstone.core.errors import QuotaExceeded, RagstoneError, StoreFull
from ragstone.core.tenants import Quotas
from ragstone.serve.http import limits
from ragstone.serve.http.problems import MOST_WRONG, handle_problems, status_of
from ragstone.serve.http.requests import MOST_CHARS, MOST_FIELDS

MESSAGE = {"role": "user", "content": "When does the tide gate open?"}


def test_an_error_says_what_happened_and_what_to_do(acme: Caller) -> None:
    answer = acme("POST", "/v1/search", json={"query": "tide"}, headers={"X-Request-ID": "mine-1"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "there is no knowledge base 'default' yet in tenant 'acme'",
        "code": "not_found",
        "hint": "ingest documents for the tenant 'acme'",
        "request_id": "mine-1",
    }


def test_a_kb_that_is_not_there_is_told_with_those_of_the_caller(service: Service, acme: Caller) -> None:
    for kb in ("handbook", "wiki", "secret"):
        acme.upload("# Tide\n\nThe gate opens at nine.\n", kb=kb)
    limited = service.caller("acme", kbs=("handbook", "wiki"))
    for caller, hint in (
        (
            acme,
            "name one that is there (handbook, wiki, secret), or ingest documents into the knowledge base 'handbok'",
        ),
        (limited, "ingest documents into the knowledge base 'handbok'"),
    ):
        told = caller("POST", "/v1/search", json={"query": "tide", "kb": "handbok"}).json()
        assert told["hint"] == f"{hint} for the tenant 'acme'"


@pytest.mark.req("R-API-13")
@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, ["body", "query"]),
        ({"query": "x", "k": "many"}, ["body", "k"]),
        ({"query": "x", "quary": "x"}, ["body", "quary"]),
        ({"query": "x", "mode": "best"}, ["body", "mode"]),
    ],
)
def test_a_wrong_request_names_the_field(acme: Caller, body: dict[str, Any], at: list[str]) -> None:
    answer = acme("POST", "/v1/search", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert answer.json()["errors"][0]["loc"] == at


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {"query": "x"} | {f"field{number}": 1 for number in range(MOST_FIELDS)}),
        ("/v1/sources", {"kind": "web", "name": "x", "config": {f"field{number}": 1 for number in range(9999)}}),
        ("/v1/receipts/check", {"receipt": {f"field{number}": 1 for number in range(9999)}}),
        ("/v1/keys", {"scopes": [0] * 9999}),
        ("/v1/keys", {"scopes": ["read"], "kbs": [0] * 9999}),
        ("/v1/chat/completions", {"model": "x", "messages": [MESSAGE], "modalities": [0] * 9999}),
    ],
)
def test_a_body_with_many_parts_is_refused_before_each_of_them_is_an_error(
    acme: Caller, path: str, body: dict[str, Any]
) -> None:
    answer = acme("POST", path, json=body)
    assert answer.status_code in (400, 422)
    assert "at most" in answer.text, answer.text
    assert len(answer.content) < 1000


def test_a_request_that_is_wrong_in_many_places_gets_a_short_answer(acme: Caller) -> None:
    answer = acme("POST", "/v1/ask", json={"question": "x", "earlier": [{}] * 999})
    assert (answer.status_code, len(answer.json()["errors"])) == (422, MOST_WRONG)


@pytest.mark.req("R-API-19")
def test_a_query_is_neither_empty_nor_endless(acme: Caller) -> None:
    acme.upload("# Gate\n\nThe tide gate opens at nine.\n")
    for query in ("", "   ", "x" * 100_000):
        assert acme("POST", "/v1/search", json={"query": query}).status_code == 422


def test_every_error_of_ours_has_a_status() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RagstoneError)]
    assert len(kinds) > 25
    assert {kind.__name__ for kind in kinds if status_of(kind("x")) == 500} == {"RagstoneError"}
    assert status_of(StoreFull("x")) == 507


def test_a_quota_says_when_to_come_back(service: Service, acme: Caller) -> None:
    acme.upload("# Gate\n\nThe tide gate opens at nine.\n")

    async def limit() -> None:
        await service.engine.tenants.set_quotas("acme", Quotas(queries_per_minute=1))

    service.run(limit)
    assert acme("POST", "/v1/search", json={"query": "gate"}).status_code == 200
    refused = acme("POST", "/v1/search", json={"query": "gate"})
    assert (refused.status_code, refused.json()["code"]) == (429, QuotaExceeded.code)
    assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_a_defect_tells_nothing_of_itself(acme: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("the secret is 1234")

    monkeypatch.setattr("ragstone.engine.workspace.Workspace.usage", fail)
    answer = acme("GET", "/v1/usage")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "1234" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_what_no_route_knows_is_a_problem_too(acme: Caller) -> None:
    for method, path, code in (("GET", "/v1/nothing", "not_found"), ("PUT", "/v1/search", "method_not_allowed")):
        problem = acme(method, path).json()
        assert (problem["code"], problem["hint"]) == (code, "/docs lists all routes")


def test_a_body_that_is_no_json_is_said_to_be_none(acme: Caller) -> None:
    answer = acme("POST", "/v1/search", content="{no", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the body is not valid JSON (character 1)")


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}])
def test_json_without_its_content_type_is_said_to_lack_it(acme: Caller, headers: dict[str, str]) -> None:
    """`curl -d` names a form unless it is told otherwise."""
    answer = acme("POST", "/v1/search", content=b'{"query": "tide"}', headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (422, "the body was not sent as JSON")
    assert answer.json()["hint"] == "send the header Content-Type: application/json"


def test_json_in_another_encoding_is_said_to_be_no_utf_8(acme: Caller) -> None:
    body = '{"query": "Öffnung"}'.encode("cp1252")
    answer = acme("POST", "/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (400, "the body is not UTF-8 (byte 11)")


def test_an_upload_without_a_file_name_is_said_to_be_no_file(acme: Caller) -> None:
    for path in ("/v1/documents", "/v1/imports"):
        answer = acme("POST", path, files={"file": (None, "text")})
        assert (answer.status_code, answer.json()["detail"]) == (422, "'file' has no file name, so it is not a file")


def test_a_request_id_that_is_none_is_replaced(service: Service) -> None:
    answer = service.client.get("/healthz", headers={"X-Request-ID": "a b\tc" * 50})
    assert len(answer.headers["x-request-id"]) == 32


async def _call(guard: limits.RequestGuard, parts: list[bytes], headers: list[tuple[bytes, bytes]]) -> int:
    """The status of a request whose body comes in parts; after the last one nothing comes."""
    sent: list[dict[str, Any]] = []
    left = list(parts)

    async def receive() -> dict[str, Any]:
        if not left:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b"", "state": {}}
    await guard(scope, receive, send)
    return int(sent[0]["status"])


async def _read_all(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_a_body_that_is_too_large_is_not_read_to_its_end() -> None:
    guard = limits.RequestGuard(_read_all, most_bytes=10)
    assert await _call(guard, [b"123456", b"123456"], []) == 413
    assert await _call(guard, [], [(b"content-length", b"11")]) == 413


async def test_a_body_without_files_has_a_limit_of_its_own() -> None:
    """JSON is parsed while nothing else runs, so what is right for a file is too much for it."""
    guard = limits.RequestGuard(_read_all, most_bytes=100 * limits.TEXT_BYTES)
    length = (b"content-length", b"%d" % (limits.TEXT_BYTES + 1))
    for kind in (b"application/json", b"application/x-www-form-urlencoded", b"text/plain"):
        assert await _call(guard, [], [length, (b"content-type", kind)]) == 413
    assert await _call(guard, [], [length]) == 413
    form = limits.RequestGuard(_answer, most_bytes=100 * limits.TEXT_BYTES)
    assert await _call(form, [b"x"], [length, (b"content-type", b"Multipart/form-data; boundary=x")]) == 200


async def test_a_text_of_the_greatest_length_fits() -> None:
    body = json.dumps({"text": "\U0001f30a" * MOST_CHARS}, ensure_ascii=False).encode()
    assert await _call(limits.RequestGuard(_answer, most_bytes=100 * limits.TEXT_BYTES), [body], []) == 200


async def test_a_body_of_json_that_turns_out_to_be_too_large_is_refused_as_such() -> None:
    """Its size is not announced, and the framework would call it one that cannot be parsed."""
    app = FastAPI()
    handle_problems(app)

    @app.post("/")
    async def take(body: dict[str, Any]) -> None: ...

    assert await _call(limits.RequestGuard(app, most_bytes=10), [b'{"a": 1, ', b'"b": 2}'], []) == 413


async def test_a_body_that_stops_coming_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.01)
    assert await _call(limits.RequestGuard(_read_all, most_bytes=10), [b"1"], []) == 408

"""Keys: without one nothing is told, with one only what it is for."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.serve.http.conftest import Caller, Service

from ragstone.core.clock import now
from ragstone.serve.http import identity

OPEN = {"/healthz", "/readyz", "/docs", "/openapi.json", "/health"}
GATE = "# Gate\n\nThe tide gate opens at nine.\n"


@pytest.fixture(scope="module")
def routes(shared: Service) -> list[tuple[str, str]]:
    """All methods and paths of the service, from its own description."""
    described = shared.client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in described.items() for method in methods]


@pytest.mark.req("R-API-15", "R-SEC-17")
@pytest.mark.parametrize("token", [None, "", "wrong", "rgs_0123456789abcdef_" + "A" * 43])
def test_nothing_but_health_answers_without_a_key(
    service: Service, routes: list[tuple[str, str]], token: str | None
) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    asked = [(method, path) for method, path in routes if path not in OPEN]
    assert len(asked) > 30
    for method, path in asked:
        answer = service.client.request(method, path.replace("{", "").replace("}", ""), headers=headers)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        told = answer.json()
        shown = told["error"] if isinstance(told.get("error"), dict) else told
        assert shown["code"].lower() == "unauthenticated"


@pytest.mark.parametrize("token", ["", "wrong"])
def test_the_body_of_a_request_without_a_key_is_not_read(
    shared: Service, routes: list[tuple[str, str]], token: str
) -> None:
    """Whoever has no key must not have the service keep and parse what is sent."""
    asked = [(method, path) for method, path in routes if method not in ("GET", "DELETE")]
    assert len(asked) > 30
    for method, path in asked:
        assert shared.run(partial(_ask_without_a_body, shared, method, path, token)) == 401, (method, path)


async def _ask_without_a_body(service: Service, method: str, path: str, token: str) -> int:
    """Return the status of a request that fails if anything reads its body."""
    answers: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers, "client": None}
    await service.client.app(scope, receive, send)
    return int(answers[0]["status"])


def test_health_needs_no_key(service: Service) -> None:
    assert service.client.get("/healthz").json() == {"status": "ok", "components": {}}
    assert service.client.get("/readyz").json()["status"] == "ok"


@pytest.mark.req("R-SEC-18")
def test_the_tenant_is_that_of_the_key(acme: Caller, globex: Caller) -> None:
    document_id = acme.upload(GATE)
    assert acme("GET", f"/v1/documents/{document_id}").status_code == 200
    for path in ("", "/text", "/chunks"):
        foreign = globex("GET", f"/v1/documents/{document_id}{path}")
        unknown = globex("GET", f"/v1/documents/{'0' * 32}{path}")
        assert (foreign.status_code, unknown.status_code) == (404, 404)
        assert _without_ids(foreign.json(), document_id) == _without_ids(unknown.json(), "0" * 32)
    assert globex("POST", "/v1/search", json={"query": "tide gate"}).status_code == 404
    assert globex("POST", "/v1/search", json={"query": "tide gate", "tenant": "acme"}).status_code == 422
    assert globex("DELETE", f"/v1/documents/{document_id}").status_code == 404
    assert acme("GET", f"/v1/documents/{document_id}").status_code == 200


def _without_ids(problem: dict[str, Any], document_id: str) -> dict[str, Any]:
    detail = problem["detail"].replace(document_id, "ID")
    return {name: value for name, value in problem.items() if name != "request_id"} | {"detail": detail}


def test_a_key_does_only_what_its_scopes_say(service: Service, acme: Caller) -> None:
    document_id = acme.upload(GATE)
    reader, writer = service.caller("acme", "read"), service.caller("acme", "write")
    assert reader("POST", "/v1/search", json={"query": "tide gate"}).status_code == 200
    refused = reader("DELETE", f"/v1/documents/{document_id}")
    assert (refused.status_code, refused.json()["detail"]) == (403, "this needs a key with the scope write")
    assert writer("POST", "/v1/search", json={"query": "tide gate"}).status_code == 403
    assert writer("GET", "/v1/keys").status_code == 403
    assert writer("DELETE", f"/v1/documents/{document_id}").status_code == 200


def test_every_key_shows_what_it_may_do(service: Service) -> None:
    issued = service.key("acme", "read", name="robot", kbs=("handbook",), per_minute=60)
    shown = Caller(service, issued.token)("GET", "/v1/key")
    assert shown.status_code == 200
    assert shown.json() == {
        "id": issued.key.id,
        "name": "robot",
        "tenant": "acme",
        "scopes": ["read"],
        "kbs": ["handbook"],
        "created_at": shown.json()["created_at"],
        "expires_at": None,
        "revoked_at": None,
        "per_minute": 60,
    }
    assert service.caller("", "admin")("GET", "/v1/key").json()["tenant"] == ""
    assert service.client.get("/v1/key").status_code == 401


def test_a_key_of_the_operator_reads_no_tenant(service: Service, acme: Caller) -> None:
    acme.upload(GATE)
    operator = service.caller("", "admin")
    assert operator("POST", "/v1/search", json={"query": "tide gate"}).status_code == 403
    assert [tenant["name"] for tenant in operator("GET", "/v1/tenants").json()["tenants"]] == ["acme"]
    assert operator("POST", "/v1/tenants", json={"name": "initech"}).status_code == 201
    assert operator("GET", "/v1/tenants/initech").json()["state"] == "active"
    assert operator("GET", "/v1/tenants/nobody").status_code == 404
    assert acme("GET", "/v1/tenants").status_code == 403


def test_a_revoked_key_is_refused(service: Service, acme: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "FRESH_SECONDS", 0.0)
    made = acme("POST", "/v1/keys", json={"scopes": ["read"], "name": "robot"})
    assert made.status_code == 201
    robot = Caller(service, made.json()["key"])
    assert robot("GET", "/v1/kbs").status_code == 200
    assert acme("DELETE", f"/v1/keys/{made.json()['id']}").json()["revoked_at"] is not None
    assert robot("GET", "/v1/kbs").status_code == 401
    listed = acme("GET", "/v1/keys").json()["keys"]
    assert sorted(key["name"] for key in listed) == ["", "robot"]
    assert not any("key" in key for key in listed)


def test_a_key_that_is_known_is_looked_up_again_within_a_second() -> None:
    """Also by processes that did not revoke it."""
    assert identity.FRESH_SECONDS < 1


def test_no_tenant_revokes_the_key_of_another(service: Service, acme: Caller, globex: Caller) -> None:
    own = service.key("acme", "read").key.id
    foreign, unknown = globex("DELETE", f"/v1/keys/{own}"), globex("DELETE", f"/v1/keys/{'0' * 16}")
    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert _without_ids(foreign.json(), own) == _without_ids(unknown.json(), "0" * 16)


def test_a_key_expires(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "FRESH_SECONDS", 0.0)
    short = service.caller("acme", "read", expires_at=now() + timedelta(days=1))
    assert short("GET", "/v1/kbs").status_code == 200
    monkeypatch.setattr(service.engine.keys, "_clock", lambda: now() + timedelta(days=2))
    assert short("GET", "/v1/kbs").status_code == 401


def test_a_key_that_is_limited_to_a_kb_knows_no_job_of_several(service: Service, acme: Caller) -> None:
    acme.upload(GATE, kb="public")
    archive = {"files": {"file": ("acme.zip", b"PK\x03\x04")}, "data": {"kb": "public"}}
    jobs = [acme("POST", "/v1/exports", json={}).json(), acme("POST", "/v1/imports", **archive).json()]
    limited = service.caller("acme", kbs=("public", "default"))
    assert {job["kb"] for job in jobs} == {"public", "default"}
    for job in jobs:
        for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/retry")):
            assert limited(method, f"/v1/jobs/{job['id']}{path}").status_code == 404
        assert acme("GET", f"/v1/jobs/{job['id']}").json()["state"] == "pending"
    queued = acme("POST", "/v1/kbs/public/reembed", json={}).json()
    assert limited("POST", f"/v1/jobs/{queued['id']}/cancel").json()["state"] == "cancelled"


def test_a_key_that_is_limited_to_a_kb_knows_no_other(service: Service, acme: Caller) -> None:
    secret = acme.upload("# Vault\n\nThe vault code is 1234.\n", kb="private")
    acme.upload(GATE, kb="public")
    limited = service.caller("acme", kbs=("public", "public"))
    assert limited("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"][0]["text"].endswith("at nine.")
    assert [kb["name"] for kb in limited("GET", "/v1/kbs").json()["kbs"]] == ["public"]
    for method, path, body in (
        ("POST", "/v1/search", {"query": "vault", "kb": "private"}),
        ("POST", "/v1/ask", {"question": "What is the vault code?", "kb": "private"}),
        ("GET", "/v1/kbs/private", None),
        ("GET", f"/v1/documents/{secret}", None),
        ("GET", f"/v1/documents/{secret}/text", None),
        ("GET", f"/v1/documents/{secret}/chunks", None),
        ("DELETE", f"/v1/documents/{secret}", None),
        ("DELETE", f"/v1/documents/{secret}?erase=true", None),
        ("DELETE", "/v1/kbs/private", None),
    ):
        assert limited(method, path, json=body).status_code == 404, (method, path)
    jobs = acme("GET", "/v1/jobs").json()["jobs"]
    (hidden,) = [job["id"] for job in jobs if job["kb"] == "private"]
    assert limited("GET", f"/v1/jobs/{hidden}").status_code == 404
    for path in ("/v1/jobs", "/v1/notices", "/v1/usage", "/v1/audit", "/v1/sources", "/v1/keys"):
        assert limited("GET", path).status_code == 403, path
    assert limited("POST", "/v1/keys", json={"scopes": ["read"]}).status_code == 403
    assert limited("DELETE", f"/v1/keys/{service.key('acme').key.id}").status_code == 403
    assert acme("GET", f"/v1/documents/{secret}").json()["status"] == "completed"

"""Limits of callers: of each key, of each tenant, and of wrong keys from one address."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import HTTPConnection
from tests.serve.http.conftest import Caller, Service

from ragstone.core.keys import new_token
from ragstone.core.tenants import Quotas
from ragstone.serve.http import rates
from ragstone.serve.http.rates import GuessLimiter, address_of
from ragstone.stores.control.keys import SqlKeyBook


@pytest.fixture(autouse=True)
def early_in_the_minute(service: Service) -> None:
    """The minute must not end within a test."""
    for book in (service.engine.keys, service.engine.tenants):
        clock = book._clock  # type: ignore[attr-defined]
        book._clock = lambda clock=clock: clock().replace(second=10)  # type: ignore[attr-defined]


@pytest.mark.req("R-SEC-10")
def test_a_key_is_held_to_its_limit_on_all_routes_together(service: Service, acme: Caller) -> None:
    made = acme("POST", "/v1/keys", json={"scopes": ["read"], "per_minute": 3})
    assert (made.status_code, made.json()["per_minute"]) == (201, 3)
    limited = Caller(service, made.json()["key"])
    left = []
    for method, path in (("GET", "/v1/kbs"), ("GET", "/v1/documents/unknown"), ("GET", "/v1/jobs")):
        answer = limited(method, path)
        assert (answer.headers["ratelimit-limit"], answer.headers["ratelimit-reset"]) == ("3", "50")
        left.append(answer.headers["ratelimit-remaining"])
    assert left == ["2", "1", "0"]
    refused = [limited("GET", "/v1/kbs") for _ in range(2)]
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
        assert answer.headers["retry-after"] == "50"
        assert answer.headers.get_list("ratelimit-remaining") == ["0"]
    assert "ratelimit-limit" not in acme("GET", "/v1/kbs").headers
    listed = {key["id"]: key["per_minute"] for key in acme("GET", "/v1/keys").json()["keys"]}
    assert listed[made.json()["id"]] == 3
    assert acme("POST", "/v1/keys", json={"scopes": ["read"], "per_minute": 0}).status_code == 422


def test_a_refused_key_writes_nothing_until_the_minute_ends(service: Service) -> None:
    limited = service.caller("acme", "read", per_minute=1)
    spent: list[str] = []
    spend = service.engine.keys.spend

    async def count(key: object) -> object:
        spent.append("")
        return await spend(key)  # type: ignore[arg-type]

    service.engine.keys.spend = count  # type: ignore[method-assign, assignment]
    assert [limited("GET", "/v1/kbs").status_code for _ in range(6)] == [200, 429, 429, 429, 429, 429]
    assert len(spent) == 2


@pytest.mark.req("R-TEN-13", "R-SEC-10")
def test_a_tenant_that_asked_too_much_is_told_when_to_come_back(service: Service, acme: Caller) -> None:
    acme.upload("# Gate\n\nThe tide gate opens at nine.\n")

    async def limit() -> None:
        await service.engine.tenants.set_quotas("acme", Quotas(queries_per_minute=2))

    service.run(limit)
    other = service.caller("acme", "read")
    assert acme("POST", "/v1/search", json={"query": "tide gate"}).status_code == 200
    assert other("POST", "/v1/ask", json={"question": "When does the gate open?"}).status_code == 200
    refused = acme("POST", "/v1/search", json={"query": "tide gate"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "50")
    assert (refused.headers["ratelimit-limit"], refused.headers["ratelimit-remaining"]) == ("2", "0")
    assert acme("GET", "/v1/kbs").status_code == 200


def test_an_address_that_guesses_keys_has_to_wait(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "WRONG_KEYS", 3)
    valid, new = service.caller("acme"), service.caller("globex")
    assert valid("GET", "/v1/kbs").status_code == 200
    same = [Caller(service, "wrong")("GET", "/v1/kbs").status_code for _ in range(5)]
    assert same == [401] * 5
    guessed = [Caller(service, new_token()[1])("GET", "/v1/kbs") for _ in range(4)]
    assert [answer.status_code for answer in guessed] == [401, 401, 429, 429]
    assert guessed[-1].json()["code"] == "too_many_wrong_keys"
    assert 0 < int(guessed[-1].headers["retry-after"]) <= 60
    assert valid("GET", "/v1/kbs").status_code == 200
    assert new("GET", "/v1/kbs").status_code == 429
    looked_up: list[str] = []
    monkeypatch.setattr(SqlKeyBook, "find", lambda self, token: looked_up.append(token))
    once = Caller(service, new_token()[1])("POST", "/v1/keys", headers={"Idempotency-Key": "a"}, json={})
    assert (once.status_code, looked_up) == (429, [])
    assert service.client.get("/v1/kbs").status_code == 401


def test_guesses_are_forgotten_after_a_minute_and_never_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "REMEMBERED", 2)
    moment = 0.0
    limiter = GuessLimiter(lambda: moment)
    for n in range(1000):
        limiter.note("10.0.0.1", f"{n}")
    assert limiter.seconds_to_wait("10.0.0.1") == rates.WINDOW_SECONDS
    assert limiter.seconds_to_wait("10.0.0.2") == 0
    assert len(limiter._guesses["10.0.0.1"].tokens) == rates.WRONG_KEYS
    moment = rates.WINDOW_SECONDS
    assert limiter.seconds_to_wait("10.0.0.1") == 0
    for n in range(1000):
        limiter.note(f"10.0.1.{n}", "wrong")
    assert len(limiter._guesses) == 2


def test_addresses_of_one_ipv6_network_count_together() -> None:
    def connection(host: str) -> HTTPConnection:
        return HTTPConnection({"type": "http", "client": (host, 1), "headers": []})

    assert address_of(connection("2001:db8:1:2::1")) == address_of(connection("2001:db8:1:2:ffff::9"))
    assert address_of(connection("2001:db8:1:2::1")) != address_of(connection("2001:db8:1:3::1"))
    assert address_of(connection("::ffff:10.0.0.1")) == address_of(connection("10.0.0.1")) == "10.0.0.1"


def test_requests_at_once_do_not_pass_the_limit(service: Service) -> None:
    """FAULTS 19, through the service."""
    limited = service.key("acme", "read", per_minute=1)
    ring = service.client.app.state.keys  # type: ignore[attr-defined]

    async def ask() -> list[object]:
        asked = [HTTPConnection({"type": "http", "client": ("10.0.0.1", 1), "headers": []}) for _ in range(50)]
        return await asyncio.gather(*(ring.admit(one, limited.token) for one in asked), return_exceptions=True)

    outcomes = service.run(ask)
    assert sum(not isinstance(one, BaseException) for one in outcomes) == 1


@pytest.mark.req("R-SEC-10")
def test_no_way_in_leads_past_the_limit_of_a_key(service: Service) -> None:
    ways = (
        ("GET", "/v1/models", None),
        ("POST", "/v1/chat/completions", {"model": "ragstone", "messages": [{"role": "user", "content": "hi"}]}),
        ("POST", "/v1/embeddings", {"model": "fake", "input": "ferry"}),
        ("POST", "/search", {"query": "ferry"}),
        ("GET", "/knowledge/default/search?q=ferry", None),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    )
    for method, path, body in ways:
        limited = service.caller("acme", per_minute=1)
        headers = {"Host": "localhost"}
        assert limited(method, path, json=body, headers=headers).status_code not in (401, 429), path
        refused = limited(method, path, json=body, headers=headers)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "50"), path

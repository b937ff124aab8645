"""Ids of another tenant: every route and every tool answers for them as it does for ids that nobody has."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.long_runs import take_rounds
from tests.serve.http.conftest import Caller, Service, articles_without_a_model, open_service

from ragstone import Settings
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
from ragstone.answer.receipts.make import digest
from ragstone.core.errors import NotFoundError
from ragstone.serve.mcp.resources import ResourceCatalog, document_templates
from ragstone.settings.tree import CacheSettings

ROUNDS = take_rounds("RAGSTONE_LEAK_ROUNDS", 0)
"""Calls with each id whose times are compared; none in the test suite."""
WITHIN = 0.10
ATTEMPTS = 3
"""A machine that does other things may spoil one measurement; what differs three times differs."""
GATE = "# Gate\n\nThe tide gate opens at nine. The keeper has two keys.\n"
HIDDEN = "# Vault\n\nThe vault opens at midnight with a silver key.\n"
OTHER = str.maketrans("0123456789abcdefghijklmnopqrstuvwxyz", "123456789abcdef0hijklmnopqrstuvwxyzg")
"""Turns hexadecimal digits into others, and other letters likewise."""
TRACE = re.compile(r'(?<="trace": \[\{).*?(?=\}\])')
MCP_HEADERS = {
    "Host": "localhost",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-06-18",
}
VARYING = {"x-request-id", "date", "etag", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "server-timing"}
"""Headers that differ between two equal requests."""


@dataclass(frozen=True)
class Case:
    """A request with an id in it: `$` in the path, the query or the body."""

    kind: str
    status: int = 404
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, operation: str, identity: str) -> tuple[str, str, dict[str, Any]]:
        """Return method, path and options of the request for an id."""
        method, path = operation.split(" ", 1)
        options = _replace(dict(self.options), identity)
        return method, re.sub(r"\{\w+\}", identity, path), options


def of(kind: str, status: int = 404, **options: Any) -> Case:
    return Case(kind, status, options)


def _replace(value: Any, identity: str) -> Any:
    if isinstance(value, str):
        return value.replace("$", identity)
    if isinstance(value, bytes):
        return value.replace(b"$", identity.encode())
    if isinstance(value, dict):
        return {name: _replace(part, identity) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_replace(part, identity) for part in value)
    return value


WEB = {"urls": ["https://example.org/"]}
RECEIPT = "receipt"
CASES: dict[str, Sequence[Case]] = {
    "POST /v1/search": [
        of("kb", json={"query": "tide gate", "kb": "$"}),
        of("document", 200, json={"query": "silver key", "where": {"document_id": "$"}}),
        of("conversation", 200, json={"query": "silver key", "conversation": "$"}),
    ],
    "POST /v1/ask": [
        of("kb", json={"question": "When does it open?", "kb": "$"}),
        of("conversation", 200, json={"question": "When does it open?", "conversation": "$"}),
    ],
    "POST /v1/chat": [
        of("kb", json={"message": "When does it open?", "kb": "$"}),
        of("conversation", 200, json={"message": "When does it open?", "conversation": "$"}),
    ],
    "POST /v1/verify": [of("kb", json={"claim": "The vault opens at midnight.", "kb": "$"})],
    "POST /v1/verify/text": [of("kb", json={"text": "The vault opens at midnight.", "kb": "$"})],
    "GET /v1/analytics": [of("kb", params={"kb": "$"})],
    "GET /v1/analytics/days": [of("kb", params={"kb": "$"})],
    "GET /v1/analytics/chart.svg": [of("kb", params={"kb": "$"})],
    "GET /v1/analytics/gaps": [of("kb", 200, params={"kb": "$"})],
    "POST /v1/research": [of("kb", json={"topic": "vaults", "kb": "$"})],
    "POST /v1/explain": [
        of("kb", json={"query": "tide gate", "document_id": "0" * 32, "kb": "$"}),
        of("document", json={"query": "silver key", "document_id": "$"}),
    ],
    "POST /v1/receipts": [of("kb", json={"question": "When does it open?", "kb": "$"})],
    "POST /v1/receipts/check": [of(RECEIPT, 200)],
    "POST /v1/documents": [of("new kb", 202, data={"kb": "$"}, files={"file": ("a.md", b"# A\n\nText.\n")})],
    "GET /v1/documents": [of("kb", params={"kb": "$"}), of("document", 200, params={"where": '{"document_id": "$"}'})],
    "POST /v1/documents/urls": [of("new kb", 200, json={"urls": ["http://127.0.0.1:1/"], "kb": "$"})],
    "GET /v1/documents/{document_id}": [of("document")],
    "DELETE /v1/documents/{document_id}": [of("document"), of("document", params={"erase": "true"})],
    "GET /v1/documents/{document_id}/text": [of("document")],
    "GET /v1/documents/{document_id}/file": [of("document")],
    "GET /v1/documents/{document_id}/versions": [of("document")],
    "GET /v1/documents/{document_id}/chunks": [of("document")],
    "GET /v1/kbs/{kb}": [of("kb")],
    "PATCH /v1/kbs/{kb}": [of("kb", json={"name": "renamed"})],
    "DELETE /v1/kbs/{kb}": [of("kb")],
    "GET /v1/kbs/{kb}/spaces": [of("kb")],
    "POST /v1/kbs/{kb}/reembed": [of("kb", json={})],
    "GET /v1/sources": [of("kb", 200, params={"kb": "$"})],
    "POST /v1/sources": [of("new kb", 201, json={"kind": "web", "name": "pages", "config": WEB, "kb": "$"})],
    "GET /v1/sources/{name}": [of("source")],
    "DELETE /v1/sources/{name}": [of("source"), of("source", params={"keep_documents": "true"})],
    "POST /v1/sources/{name}/sync": [of("source")],
    "POST /v1/sources/{name}/pause": [of("source")],
    "POST /v1/sources/{name}/resume": [of("source")],
    "GET /v1/jobs": [of("source", 200, params={"source": "$"})],
    "GET /v1/jobs/{job_id}": [of("job"), of("export"), of("job", headers={"Accept": "text/event-stream"})],
    "POST /v1/jobs/{job_id}/cancel": [of("job"), of("export")],
    "POST /v1/jobs/{job_id}/retry": [of("job"), of("export")],
    "GET /v1/jobs/{job_id}/result": [of("job"), of("export")],
    "POST /v1/notices/read": [of("notice", 200, json={"ids": ["$"]})],
    "POST /v1/exports": [of("kb", json={"kbs": ["$"]})],
    "POST /v1/imports": [of("new kb", 202, data={"kb": "$"}, files={"file": ("a.zip", b"PK\x03\x04")})],
    "POST /v1/evaluations": [of("kb", json={"kb": "$"})],
    "POST /v1/tunings": [of("kb", json={"kb": "$"})],
    "POST /v1/articles": [of("kb", json={"topic": "vaults", "kb": "$"})],
    "GET /v1/articles": [of("kb", 200, params={"kb": "$"})],
    "GET /v1/articles/{run_id}": [of("article")],
    "POST /v1/articles/{run_id}/resume": [of("article")],
    "POST /v1/feedback": [
        of("kb", json={"query": "vault", "chunk_ids": ["0" * 32], "kb": "$"}),
        of("chunk", json={"query": "vault", "chunk_ids": ["$"]}),
    ],
    "GET /v1/feedback": [of("kb", 200, params={"kb": "$"})],
    "GET /v1/conversations": [of("kb", 200, params={"kb": "$"})],
    "GET /v1/conversations/{name}": [
        of("old conversation", 200),
        of("old conversation", 200, params={"kb": "default"}),
    ],
    "DELETE /v1/conversations/{name}": [of("old conversation", 200)],
    "GET /v1/golden": [of("kb", 200, params={"kb": "$"})],
    "POST /v1/golden": [
        of("kb", json={"query": "vault", "document_ids": ["0" * 32], "kb": "$"}),
        of("document", json={"query": "vault", "document_ids": ["$"]}),
    ],
    "DELETE /v1/golden": [of("kb", 200, params={"kb": "$"}), of("golden", params={"query": "$"})],
    "POST /v1/golden/make": [of("kb", json={"kb": "$"})],
    "POST /v1/keys": [of("new kb", 201, json={"scopes": ["read"], "kbs": ["$"]})],
    "DELETE /v1/keys/{key_id}": [of("key")],
    "POST /v1/keys/{key_id}/rotate": [of("key")],
    "GET /v1/shop/products": [
        of("product", 200, params={"q": "silver $"}),
        of("product", 200, params={"after": "$", "limit": 1}),
    ],
    "GET /v1/shop/services": [
        of("service", 200, params={"q": "silver $"}),
        of("service", 200, params={"after": "$", "limit": 1}),
    ],
    "GET /v1/shop/products/{product_id}": [of("product")],
    "PUT /v1/shop/products/{product_id}": [of("new product", 200, json={"name": "Tea"})],
    "DELETE /v1/shop/products/{product_id}": [of("product")],
    "POST /v1/shop/products": [of("new product", 201, json={"name": "Tea", "id": "$"})],
    "GET /v1/shop/services/{service_id}": [of("service")],
    "PUT /v1/shop/services/{service_id}": [of("new service", 200, json={"name": "Walk"})],
    "DELETE /v1/shop/services/{service_id}": [of("service")],
    "POST /v1/shop/services": [of("new service", 201, json={"name": "Walk", "id": "$"})],
    "GET /v1/shop/services/{service_id}/slots": [of("service", params={"first": "2030-06-03", "last": "2030-06-04"})],
    "GET /v1/shop/appointments": [of("service", 200, params={"service_id": "$"})],
    "POST /v1/shop/appointments": [
        of("service", json={"service_id": "$", "starts_at": "2030-06-03T09:00:00Z", "customer": "Eve"})
    ],
    "GET /v1/shop/appointments/{appointment_id}": [of("appointment")],
    "POST /v1/shop/appointments/{appointment_id}/cancel": [of("appointment")],
    "POST /v1/shop/import": [
        of("new product", 200, data={"kind": "products"}, files={"file": ("a.csv", b"id,name\n$,Tea\n")})
    ],
    "GET /v1/tenants/{name}": [of("tenant", 403)],
    "POST /v1/tenants": [of("tenant", 403, json={"name": "$"})],
    "POST /ingest": [of("new kb", json={"corpus_path": "a.txt", "collection_name": "$"})],
    "POST /search": [of("kb", json={"query": "vault", "collection_name": "$"})],
    "GET /health": [of("kb", 200, params={"collection_name": "$"})],
    "GET /knowledge/{kbId}/search": [of("kb", params={"q": "vault"})],
    "GET /v1/models/{model}": [of("kb")],
    "POST /v1/chat/completions": [
        of("kb", json={"model": "$", "messages": [{"role": "user", "content": "When does it open?"}]})
    ],
    "POST /v1/embeddings": [of("kb", json={"model": "$", "input": "vault"})],
}
"""Every operation that takes an id, with requests for each kind of it."""
WITHOUT_IDS = {
    "GET /v1/agent",
    "PATCH /v1/agent",
    "GET /v1/kbs",
    "GET /v1/notices",
    "GET /v1/usage",
    "GET /v1/alerts",
    "GET /v1/audit",
    "GET /v1/key",
    "GET /v1/keys",
    "GET /v1/tenants",
    "GET /v1/models",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
}
TOOL_CASES: dict[str, dict[str, Any]] = {
    "search_knowledge": {"query": "silver key"},
    "verify_claim": {"claim": "The vault opens at midnight."},
    "check_text": {"text": "The vault opens at midnight."},
    "research_topic": {"topic": "vaults"},
    "searchDocs": {"query": "silver key"},
    "researchTopic": {"topic": "vaults"},
    "find_similar_critiques": {"topic": "vaults"},
    "get_style_references": {"topic": "vaults"},
    "get_writing_examples": {"topic": "vaults"},
}


@dataclass
class Tenants:
    """A caller, and what another tenant has."""

    service: Service
    caller: Caller
    victim: Caller
    foreign: Mapping[str, str]

    def unknown(self, kind: str) -> str:
        """Return an id of the same form and length that nobody has."""
        return self.foreign[kind].translate(OTHER)

    def options(self, case: Case, options: dict[str, Any], identity: str) -> dict[str, Any]:
        if case.kind == "notice":
            return {"json": {"ids": [int(identity)]}}
        if case.kind == RECEIPT:
            receipt = json.loads(self.foreign["receipt text"].replace(self.foreign[RECEIPT], identity))
            return {"json": {"receipt": {**receipt, "digest": digest(receipt)}}}
        return options

    def call(self, operation: str, case: Case, identity: str) -> Any:
        method, path, options = case.make(operation, identity)
        return self.caller(method, path, **self.options(case, options, identity))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # Without a cache, which would answer the second of two equal searches sooner and in other words.
    settings = Settings(data_dir=tmp_path_factory.mktemp("leaks"), cache=CacheSettings(search_seconds=0))
    with open_service(settings) as service, articles_without_a_model():
        yield service


@pytest.fixture(scope="module")
def tenants(shared: Service) -> Tenants:
    caller, victim = shared.caller("acme"), shared.caller("globex")
    caller.upload(GATE)
    document_id = victim.upload(HIDDEN, "vault.md")
    kb_document = victim.upload(HIDDEN, kb="vaults")
    assert document_id != kb_document
    victim.upload(HIDDEN, kb="fresh-kb")
    chunk = victim("GET", f"/v1/documents/{document_id}/chunks").json()["chunks"][0]["id"]
    asked = {"question": "When does the vault open?"}
    for name in ("talk-one", "talk-two"):
        victim("POST", "/v1/ask", json=asked | {"conversation": name})
    victim("POST", "/v1/sources", json={"kind": "web", "name": "hidden-pages", "config": WEB})
    victim("POST", "/v1/golden", json={"query": "silver keys", "document_ids": [document_id]})
    hidden = {"name": "Silver tea", "category": "midnight"}
    for product in ("vault-tea", "new-tea"):
        victim("POST", "/v1/shop/products", json=hidden | {"id": product})
    hours = [{"weekday": 0, "opens": "09:00", "closes": "17:00"}]
    for walk in ("vault-walk", "new-walk"):
        victim("POST", "/v1/shop/services", json={"id": walk, "name": "Silver walk", "windows": hours})
    booking = {"service_id": "vault-walk", "starts_at": "2030-06-03T09:00:00Z", "customer": "Ada"}
    appointment = victim("POST", "/v1/shop/appointments", json=booking).json()["id"]
    export = victim("POST", "/v1/exports", json={}).json()["id"]
    shared.run(lambda: shared.engine.worker().run(until_idle=True))
    article = victim("POST", "/v1/articles", json={"topic": "silver keys"}).headers["content-location"]
    receipt = victim("POST", "/v1/receipts", json=asked).json()["receipt"]
    return Tenants(
        shared,
        caller,
        victim,
        {
            "document": document_id,
            "chunk": chunk,
            "kb": "vaults",
            "new kb": "fresh-kb",
            "job": victim("GET", f"/v1/documents/{document_id}").json()["job_id"],
            "export": export,
            "article": article.rpartition("/")[2],
            "source": "hidden-pages",
            "conversation": "talk-one",
            "old conversation": "talk-two",
            "golden": "silver keys",
            "key": victim("GET", "/v1/keys").json()["keys"][0]["id"],
            "notice": str(victim("GET", "/v1/notices").json()["notices"][0]["id"]),
            "product": "vault-tea",
            "new product": "new-tea",
            "service": "vault-walk",
            "new service": "new-walk",
            "appointment": appointment,
            "tenant": "globex",
            "uri": "vault.md",
            RECEIPT: document_id,
            "receipt text": json.dumps(receipt),
        },
    )


def operations(service: Service) -> set[str]:
    """Return every operation of the OpenAPI document."""
    document = service.client.get("/openapi.json").json()
    return {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}


def test_every_operation_has_a_case(shared: Service) -> None:
    assert operations(shared) == CASES.keys() | WITHOUT_IDS
    taking_ids = {operation for operation in WITHOUT_IDS if "{" in operation}
    assert not taking_ids


@pytest.mark.req("R-TEN-06")
@pytest.mark.parametrize("operation", CASES)
def test_an_id_of_another_tenant_is_as_unknown_as_any(tenants: Tenants, operation: str) -> None:
    for case in CASES[operation]:
        foreign, unknown = tenants.foreign[case.kind], tenants.unknown(case.kind)
        got, expected = tenants.call(operation, case, foreign), tenants.call(operation, case, unknown)
        assert got.status_code == expected.status_code == case.status, (case, got.text, expected.text)
        assert plain(got.text, foreign) == plain(expected.text, unknown)
        assert headers_of(got, foreign) == headers_of(expected, unknown)
        assert "silver" not in got.text.replace("silver key", "")
        assert "midnight" not in got.text.replace("The vault opens at midnight.", "") or case.kind == RECEIPT


def test_nothing_of_the_other_tenant_was_changed(tenants: Tenants) -> None:
    victim, ids = tenants.victim, tenants.foreign
    paths = [
        *(f"/v1/documents/{ids['document']}", f"/v1/documents/{ids['document']}/file", "/v1/kbs/vaults"),
        *(f"/v1/jobs/{ids['job']}", f"/v1/jobs/{ids['export']}/result", f"/v1/sources/{ids['source']}"),
        *(f"/v1/shop/products/{ids['product']}", f"/v1/shop/services/{ids['service']}"),
        *(f"/v1/conversations/{name}" for name in (ids["conversation"], ids["old conversation"])),
    ]
    assert [path for path in paths if victim("GET", path).status_code != 200] == []
    assert [golden["query"] for golden in victim("GET", "/v1/golden").json()["golden"]] == [ids["golden"]]
    assert not victim("GET", f"/v1/sources/{ids['source']}").json()["paused"]
    assert victim("GET", f"/v1/shop/appointments/{ids['appointment']}").json()["status"] == "booked"
    assert victim("GET", f"/v1/shop/products/{ids['new product']}").json()["name"] == "Silver tea"


def test_every_tool_has_a_case() -> None:
    assert set(TOOLS) == TOOL_CASES.keys()


@pytest.mark.parametrize("name", TOOL_CASES)
def test_a_tool_does_not_know_the_knowledge_base_of_another_tenant(tenants: Tenants, name: str) -> None:
    def ask(kb: str) -> Any:
        async def call() -> str:
            workspace = tenants.service.engine.workspace("acme")
            return await Toolbox(workspace, [name], kb=kb).call(name, TOOL_CASES[name])

        return plain(tenants.service.run(call), kb)

    foreign, unknown = ask(tenants.foreign["kb"]), ask(tenants.unknown("kb"))
    assert foreign == unknown
    assert '"error"' in foreign


RESOURCE_CASES = {"ragstone://documents/{document_id}": "document", "ragstone://documents{?uri}": "uri"}


def test_every_resource_has_a_case() -> None:
    assert {template.uri_template for template in document_templates()} == RESOURCE_CASES.keys()


@pytest.mark.parametrize("template", RESOURCE_CASES)
def test_a_resource_of_another_tenant_is_as_unknown_as_any(tenants: Tenants, template: str) -> None:
    kind = RESOURCE_CASES[template]

    def read(identity: str) -> str:
        address = template.replace("{document_id}", identity).replace("{?uri}", f"?uri={identity}")

        async def call() -> str:
            with pytest.raises(NotFoundError) as refused:
                await ResourceCatalog(tenants.service.engine.workspace("acme")).read(address)
            return f"{refused.value} {refused.value.advice}"

        return plain(tenants.service.run(call), identity)

    assert read(tenants.foreign[kind]) == read(tenants.unknown(kind))


def test_a_tool_over_http_knows_no_other_tenant(tenants: Tenants) -> None:
    own = McpSession(tenants.caller, "default")
    assert set(own.tools()) <= TOOL_CASES.keys()
    sessions = {kb: McpSession(tenants.caller, kb) for kb in (tenants.foreign["kb"], tenants.unknown("kb"))}
    for name in own.tools():
        foreign, unknown = (
            plain(session.post("tools/call", name=name, arguments=TOOL_CASES[name]), kb)
            for kb, session in sessions.items()
        )
        assert foreign == unknown
        assert "error" in foreign


@dataclass
class McpSession:
    """A session of an MCP client at `/mcp`, with a knowledge base."""

    caller: Caller
    kb: str
    headers: dict[str, str] = field(default_factory=lambda: dict(MCP_HEADERS))

    def __post_init__(self) -> None:
        version = self.headers["MCP-Protocol-Version"]
        client = {"name": "test", "version": "1"}
        self.post("initialize", protocolVersion=version, capabilities={}, clientInfo=client)

    def post(self, method: str, **params: Any) -> str:
        """Make a request; return the answer without what differs from call to call."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.caller("POST", f"/mcp?kb={self.kb}", json=asked, headers=self.headers)
        assert answer.status_code == 200, answer.text
        if session := answer.headers.get("mcp-session-id"):
            self.headers["mcp-session-id"] = session
        return str(answer.text)

    def tools(self) -> list[str]:
        """Return the names of the tools."""
        found = re.search(r"\{.*\}", self.post("tools/list"))
        assert found
        return [tool["name"] for tool in json.loads(found[0])["result"]["tools"]]


def plain(text: str, identity: str) -> str:
    """Return a text without the id, and without ids, times and durations that differ from call to call."""
    text = re.sub(rf"(?<![0-9A-Za-z]){re.escape(identity)}(?![0-9A-Za-z])", "<id>", text)
    text = re.sub(r"rgs_[\w-]+", "<key>", text)
    text = TRACE.sub(lambda found: str(sorted(found[0].split("}, {"))), text)  # stages end in any order
    text = re.sub(r"\b[0-9a-f]{16,}\b", "<hex>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.+]+Z?", "<time>", text)
    return re.sub(r"\d+\.\d+(e-?\d+)?", "<number>", text)


def headers_of(answer: Any, identity: str) -> dict[str, str]:
    """Return the headers of an answer that two equal requests share."""
    left_out = VARYING if answer.status_code >= 400 else VARYING | {"content-length"}
    return {
        name.lower(): plain(value, identity) for name, value in answer.headers.items() if name.lower() not in left_out
    }


if ROUNDS:

    @pytest.mark.parametrize(
        ("operation", "case"),
        [(operation, case) for operation, cases in CASES.items() for case in cases if case.status == 404],
    )
    def test_both_take_the_same_time(tenants: Tenants, operation: str, case: Case) -> None:
        differences = []
        for _ in range(ATTEMPTS):
            differences.append(_difference_in_time(tenants, operation, case))
            if abs(differences[-1]) <= WITHIN:
                return
        pytest.fail(f"the medians differ each time: {differences}")


def _difference_in_time(tenants: Tenants, operation: str, case: Case) -> float:
    """Return how much longer the id of another tenant takes, as a share of the time."""
    ids = (tenants.foreign[case.kind], tenants.unknown(case.kind))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        # By turns, and each first as often: whatever else the machine does falls on both.
        for which in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter()
            tenants.call(operation, case, ids[which])
            times[which].append(time.perf_counter() - started)
    foreign, unknown = map(statistics.median, times)
    return (foreign - unknown) / max(foreign, unknown)

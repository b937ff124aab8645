"""The MCP package's own client at `/mcp` of a service that listens: for the tenant and the kbs of the key alone."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.serve.http.live import SECONDS, LiveService, run_examples, serve_live

from ragstone import Item, Settings
from ragstone.core.keys import IssuedKey
from ragstone.serve import server
from ragstone.serve.http import identity, replies
from ragstone.serve.mcp import guard

OPENS = "The harbour opens at six in the morning."
MODES = ("legacy", "auto")
"""The protocol with a handshake and sessions, and the one without."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
ACCEPT = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    settings = Settings.model_validate(
        {"data_dir": tmp_path_factory.mktemp("data"), "service": {"hosts": ["Knowledge.example."]}}
    )
    with serve_live(settings) as served:
        served.key("acme")
        served.key("globex")

        async def fill() -> None:
            for tenant, kb, text in (
                ("acme", "default", OPENS),
                ("acme", "vault", "The vault code is 1234."),
                ("globex", "default", "Granite is an igneous rock."),
            ):
                item = Item("test", kb, f"{kb}.md", text, title=kb)
                await served.engine.workspace(tenant).documents.ingest_items([item], kb=kb)

        served.run(fill())
        yield served


@asynccontextmanager
async def connect(live: LiveService, key: IssuedKey, mode: str = "legacy", path: str = "/mcp") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key.token}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{live.url}{path}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def value(result: Any) -> Any:
    (content,) = result.content
    return json.loads(content.text)


async def document_of(client: Client) -> str:
    _, only = (await client.list_resources()).resources
    return str(only.uri)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_gets_the_tools_resources_and_prompts_of_its_tenant(live: LiveService, mode: str) -> None:
    async with connect(live, live.key("acme"), mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "search_knowledge",
            "verify_claim",
            "check_text",
            "research_topic",
        ]
        found = value(await client.call_tool("search_knowledge", {"query": "harbour opens", "top_k": 1}))
        assert found[0]["text"].endswith(OPENS)
        verdict = value(await client.call_tool("verify_claim", {"claim": OPENS}))
        assert verdict["evidence"][0]["text"] == OPENS
        read = await client.read_resource(await document_of(client))
        assert OPENS in read.contents[0].text
        assert len((await client.list_prompts()).prompts) == 3
        own = await document_of(client)
    async with connect(live, live.key("globex"), mode) as other:
        found = value(await other.call_tool("search_knowledge", {"query": "harbour opens"}))
        assert "harbour" not in json.dumps(found)
        unknown = "ragstone://documents/" + "0" * 32
        said = []
        for uri in (own, unknown):
            with pytest.raises(MCPError) as refused:
                await other.read_resource(uri)
            said.append(str(refused.value).replace(uri, "URI"))
        assert said[0] == said[1]


@pytest.mark.parametrize("mode", MODES)
async def test_a_key_that_is_limited_to_a_kb_knows_no_other(live: LiveService, mode: str) -> None:
    limited = live.key("acme", "read", kbs=("vault",))
    async with connect(live, live.key("acme")) as client:
        harbour = await document_of(client)
    async with connect(live, limited, mode) as client:
        found = value(await client.call_tool("search_knowledge", {"query": "vault code"}))
        assert "1234" in found[0]["text"]
        kbs = json.loads((await client.read_resource("ragstone://kbs")).contents[0].text)
        assert [kb["name"] for kb in kbs["kbs"]] == ["vault"]
        assert "1234" in (await client.read_resource(await document_of(client))).contents[0].text
        with pytest.raises(MCPError):
            await client.read_resource(harbour)
    async with connect(live, limited, mode, "/mcp?kb=default") as client:
        refused = await client.call_tool("search_knowledge", {"query": "harbour opens"})
        assert value(refused)["error"]["code"] == "not_found"
        with pytest.raises(MCPError):
            await client.read_resource(harbour)


async def test_the_address_chooses_the_kb(live: LiveService) -> None:
    async with connect(live, live.key("acme"), path="/mcp?kb=vault") as client:
        found = value(await client.call_tool("search_knowledge", {"query": "vault code"}))
        assert [one["text"].split()[-1] for one in found] == ["1234."]


async def test_what_is_asked_is_recorded_under_the_key_and_the_request(live: LiveService) -> None:
    key = live.key("acme")
    with session(live, key) as http:
        call = {"name": "search_knowledge", "arguments": {"query": "harbour hours"}}
        asked = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
        assert http.post("/mcp", json=asked, headers={"X-Request-ID": "mine-7"}).status_code == 200
    (told,) = [
        one for one in live.run(live.engine.workspace("acme").audit.list(limit=20)) if one.actor == f"key:{key.key.id}"
    ]
    assert (told.action, told.request_id) == ("search", "mine-7")


@contextmanager
def session(live: LiveService, key: IssuedKey) -> Iterator[httpx2.Client]:
    """A client with a session that is open."""
    headers = {"Authorization": f"Bearer {key.token}", "Accept": ACCEPT}
    with httpx2.Client(base_url=live.url, headers=headers) as http:
        opened = http.post("/mcp", json=INITIALIZE)
        assert opened.status_code == 200, opened.text
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        assert http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
        yield http


@pytest.mark.req("R-SEC-18")
def test_a_session_belongs_to_the_key_that_opened_it(live: LiveService) -> None:
    mine = live.key("acme")
    with session(live, mine) as http:
        assert http.post("/mcp", json=LIST).status_code == 200
        for other in (live.key("acme"), live.key("globex")):
            for method in ("POST", "GET", "DELETE"):
                headers = {"Authorization": f"Bearer {other.token}"}
                taken = http.request(method, "/mcp", json=LIST if method == "POST" else None, headers=headers)
                made_up = http.request(
                    method,
                    "/mcp",
                    json=LIST if method == "POST" else None,
                    headers=headers | {"mcp-session-id": "0" * 32},
                )
                assert (taken.status_code, taken.text) == (404, made_up.text)
        assert http.post("/mcp", json=LIST).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "knowledge.EXAMPLE"}, 200),
        ({"Host": "knowledge.example:443", "Origin": "https://knowledge.example"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8000"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "169.254.169.254"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://localhost.evil.example"}, 403),
        ({"Origin": "file://localhost"}, 403),
    ],
)
def test_no_foreign_page_gets_in_by_a_name_of_its_own(live: LiveService, headers: dict[str, str], status: int) -> None:
    key = live.key("acme")
    sent = {"Authorization": f"Bearer {key.token}", "Accept": ACCEPT} | headers
    for token in (key.token, "wrong"):
        answer = httpx2.post(f"{live.url}/mcp", json=INITIALIZE, headers=sent | {"Authorization": f"Bearer {token}"})
        assert answer.status_code == (401 if status == 200 and token == "wrong" else status), answer.text


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_nothing_is_told_without_a_key(live: LiveService, method: str) -> None:
    answer = httpx2.request(method, f"{live.url}/mcp", headers={"Accept": ACCEPT})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["code"] == "unauthenticated"


def test_a_key_has_to_read(live: LiveService) -> None:
    headers = {"Authorization": f"Bearer {live.key('acme', 'write').token}", "Accept": ACCEPT}
    assert httpx2.post(f"{live.url}/mcp", json=INITIALIZE, headers=headers).status_code == 403


def test_a_key_that_is_revoked_ends_its_stream_and_its_session(
    live: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "FRESH_SECONDS", 0.0)
    key = live.key("acme")
    with session(live, key) as http, http.stream("GET", "/mcp") as stream:
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")
        live.run(live.engine.keys.revoke(key.key.id, tenant="acme"))
        assert list(stream.iter_bytes()) is not None  # it comes to its end
        assert http.post("/mcp", json=LIST).status_code == 401


def test_streams_look_again_within_a_second() -> None:
    assert identity.FRESH_SECONDS + replies.CHECK_SECONDS <= 1


def test_the_example_of_the_guide_runs(live: LiveService, tmp_path: Path) -> None:
    (printed,) = run_examples("mcp.md", live, live.key("acme").token, tmp_path)
    assert len(json.loads(printed)) == 1


def test_a_body_is_limited(live: LiveService) -> None:
    with session(live, live.key("acme")) as http:
        assert http.post("/mcp", content=b"x" * (guard.MOST_BYTES + 1)).status_code == 413


def test_a_tenant_has_so_many_sessions_and_the_oldest_ends(live: LiveService, monkeypatch: pytest.MonkeyPatch) -> None:
    live.key("initech")
    monkeypatch.setattr(guard, "MOST_OF_GROUP", 2)
    with ExitStack() as stack:
        opened = [stack.enter_context(session(live, live.key(name))) for name in ("acme", *["initech"] * 3)]
        statuses = [http.post("/mcp", json=LIST).status_code for http in opened]
    assert statuses == [200, 404, 200, 200]


def test_without_the_package_the_service_says_what_is_missing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with serve_live(Settings(data_dir=tmp_path_factory.mktemp("data"))) as served:
        headers = {"Authorization": f"Bearer {served.key().token}", "Accept": ACCEPT}
        answer = httpx2.post(f"{served.url}/mcp", json=INITIALIZE, headers=headers)
        assert answer.status_code == 501
        assert 'pip install "ragstone[mcp]"' in answer.json()["detail"]
        assert httpx2.get(f"{served.url}/healthz").status_code == 200


def test_an_open_stream_does_not_keep_the_service_from_stopping(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 10 * SECONDS)
    with ExitStack() as stack:
        with serve_live(Settings(data_dir=tmp_path_factory.mktemp("data"))) as served:
            http = stack.enter_context(session(served, served.key()))
            stream = stack.enter_context(http.stream("GET", "/mcp"))
        with suppress(httpx2.RemoteProtocolError):  # it ends in the middle
            stream.read()

"""The MCP package's own client, talking to `ragstone mcp` as a real process over stdio and over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from tests.warm import warm_python

from ragstone import Settings, open_engine
from ragstone.serve.cli.main import main
from ragstone.serve.mcp.server import McpCaller, build_server, serve_http
from ragstone.testing.workspaces import workspace_of

MODES = ("legacy", "auto")
"""The protocol with a handshake, and the one without."""
CLAIM = "A hook has to finish within five seconds."


def arguments(data: Path, *more: str) -> list[str]:
    return ["-m", "ragstone", "mcp", "--data-dir", str(data), *more]


def over_stdio(data: Path, *more: str, python: Sequence[str] | None = None) -> StdioServerParameters:
    environment = {name: os.environ[name] for name in ("RAGSTONE_CACHE_DIR",) if name in os.environ}
    command, *first = python or warm_python()
    return StdioServerParameters(
        command=command, args=[*first, *arguments(data, *more)], cwd=data.parent, env=environment
    )


@pytest.fixture(scope="module")
def over_http(guide: Path) -> Iterator[str]:
    """The address of one server for all who ask over HTTP: each has a budget of its own."""
    process = subprocess.Popen(
        [*warm_python(), *arguments(guide, "--http", "--port", "0")],
        cwd=guide.parent,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        found = re.fullmatch(r"note: serving MCP at (http://127\.0\.0\.1:\d+/mcp)\n", process.stderr.readline())
        assert found
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "", "note: Stopped.\n")


def value(result: Any) -> Any:
    (content,) = result.content
    return json.loads(content.text)


async def search_verify_research(client: Client) -> None:
    names = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(names) == ["search_knowledge", "verify_claim", "check_text", "research_topic"]
    assert names["search_knowledge"].annotations.read_only_hint
    assert names["research_topic"].input_schema["properties"]["depth"]["enum"] == ["quick", "medium", "deep"]

    found = value(await client.call_tool("search_knowledge", {"query": "how long may a hook take", "top_k": 1}))
    assert list(found[0]) == ["text", "source", "date", "url", "relevance", "parent_doc_id"]
    assert found[0]["text"].endswith(CLAIM)

    verdict = await client.call_tool("verify_claim", {"claim": CLAIM})
    assert verdict.structured_content == value(verdict)
    assert value(verdict)["status"] in ("VERIFIED", "LIKELY")
    assert value(verdict)["evidence"][0]["text"] == CLAIM

    checked = value(await client.call_tool("check_text", {"text": f"# A title\n\n{CLAIM} Is it so?"}))
    assert [claim["claim"] for claim in checked["claims"]] == [CLAIM]
    assert checked["outcomes"]["confirmed"] == 1

    research = value(await client.call_tool("research_topic", {"topic": "modules", "depth": "quick"}))
    assert [Path(source).name for source in research] == ["cronjobs.md", "hooks.md", "bans.md"]

    read = await client.read_resource(f"ragstone://documents/{found[0]['parent_doc_id']}")
    assert CLAIM in read.contents[0].text

    wrong = await client.call_tool("search_knowledge", {"query": ""})
    assert wrong.is_error
    assert value(wrong)["error"]["code"] == "invalid_input"
    assert not (await client.call_tool("search_knowledge", {"query": "player bans"})).is_error
    spent = await client.call_tool("search_knowledge", {"query": "one more"})
    assert spent.is_error
    assert value(spent)["error"]["message"] == "all 5 tool calls of this invocation are used up"


async def test_search_verify_research_over_stdio(guide: Path) -> None:
    async with Client(over_stdio(guide, python=[sys.executable])) as client:
        await search_verify_research(client)


async def test_what_a_client_asks_for_is_recorded_as_done_over_mcp(guide: Path) -> None:
    async with Client(over_stdio(guide)) as client:
        found = value(await client.call_tool("search_knowledge", {"query": "what hooks react to", "top_k": 1}))
        await client.read_resource(f"ragstone://documents/{found[0]['parent_doc_id']}")
    async with open_engine(Settings(data_dir=guide)) as engine:
        told = await workspace_of(engine).audit.list(limit=2)
    assert {(one.action, one.actor) for one in told} == {("search", "mcp"), ("document.read", "mcp")}
    assert told[0].target == found[0]["parent_doc_id"]


@pytest.mark.parametrize("mode", MODES)
async def test_search_verify_research_over_http(over_http: str, mode: str) -> None:
    async with Client(over_http, mode=mode) as client:
        await search_verify_research(client)


async def test_the_address_that_is_told_can_be_reached_at_once(guide: Path) -> None:
    reached: list[bool] = []

    async def knock(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)):
            reached.append(True)
        raise InterruptedError

    async with open_engine(Settings(data_dir=guide)) as engine:
        server = build_server(lambda _: McpCaller(workspace_of(engine)))
        with pytest.raises(InterruptedError):
            await serve_http(server, 0, knock)
    assert reached == [True]


async def test_resources_prompts_and_chosen_tools(guide: Path) -> None:
    chosen = ("--tool", "searchDocs", "--calls", "1")
    async with Client(over_stdio(guide, *chosen)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["searchDocs"]
        first = await client.call_tool("searchDocs", {"query": "cronjobs", "limit": 1})
        assert first.structured_content["results"][0]["source"] == "pages/cronjobs.md"
        assert (await client.call_tool("searchDocs", {"query": "bans"})).is_error

        listed = (await client.list_resources()).resources
        assert listed[0].uri == "ragstone://kbs"
        assert sorted(one.name for one in listed[1:]) == ["pages/bans.md", "pages/cronjobs.md", "pages/hooks.md"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [
            "ragstone://documents/{document_id}",
            "ragstone://documents{?uri}",
        ]
        kbs = json.loads((await client.read_resource("ragstone://kbs")).contents[0].text)
        assert [(kb["name"], kb["documents"]) for kb in kbs["kbs"]] == [("default", 3)]
        by_uri = await client.read_resource("ragstone://documents?uri=pages%2Fbans.md")
        assert by_uri.contents[0].text.startswith("# Moderation")
        for unknown in ("ragstone://documents/nope", "ragstone://documents?uri=nope", "file:///etc/passwd"):
            with pytest.raises(MCPError, match=r"no (document|resource)"):
                await client.read_resource(unknown)

        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert list(prompts) == ["answer_with_sources", "check_text", "research_brief"]
        filled = await client.get_prompt("check_text", {"text": "Hooks {take} days."})
        assert filled.messages[0].content.text.endswith("Text:\nHooks {take} days.")
        with pytest.raises(MCPError, match="check_text needs 'text'"):
            await client.get_prompt("check_text", {})
        with pytest.raises(MCPError, match="no prompt 'nope'"):
            await client.get_prompt("nope", {})


def test_stdout_carries_nothing_but_the_protocol(guide: Path) -> None:
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    search = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "search_knowledge", "arguments": {"query": "hooks"}},
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    process = subprocess.Popen(
        [*warm_python(), *arguments(guide, "--debug")],
        cwd=guide.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    answers = []
    for message in (opening, ready, search):
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    rest, _ = process.communicate(timeout=240)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert rest == ""
    assert process.returncode == 0


def test_without_data_there_is_nothing_to_serve(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(tmp_path / "none")[2:]) == 4
    written = capfd.readouterr()
    assert written.out == ""
    assert "there is no data in" in written.err


def test_without_the_kb_there_is_nothing_to_serve(guide: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(guide, "--kb", "nope")[2:]) == 4
    written = capfd.readouterr()
    assert written.out == ""
    assert "there is no knowledge base 'nope' yet" in written.err


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_one_interrupt_ends_it_while_stdin_is_open(guide: Path, terminal: bool) -> None:
    write_end, read_end = os.openpty() if terminal else reversed(os.pipe())
    process = subprocess.Popen(
        [*warm_python(), *arguments(guide)],
        cwd=guide.parent,
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        # An answer says that it reads, and the next read waits for a line that does not come.
        os.write(write_end, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
        os.close(write_end)
        os.close(read_end)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_a_file_of_messages_is_answered(guide: Path, tmp_path: Path) -> None:
    messages = tmp_path / "messages"
    ping = '{"jsonrpc": "2.0", "id": %d, "method": "ping"}'
    messages.write_text("\n".join([ping % 1, "no \u2028 json", ping % 2]), encoding="utf-8")
    with messages.open() as given:
        done = subprocess.run(
            [*warm_python(), *arguments(guide)],
            cwd=guide.parent,
            stdin=given,
            capture_output=True,
            text=True,
            check=False,
        )
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [1, 2]
    assert (done.returncode, done.stderr) == (0, "")

"""`ragstone mcp`: the tools for agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from ragstone.core.remedies import render_sentence, render_with
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.signals import until_signal

PORT = 8765
Http = Annotated[bool, typer.Option("--http", help="Serve streamable HTTP on this machine instead of stdio.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port for --http; 0 selects a free one.")]
Tools = Annotated[
    list[str] | None, typer.Option("--tool", help="Offer this tool in place of the four usual ones; may be repeated.")
]
Calls = Annotated[
    int, typer.Option("--calls", min=1, help="Tool calls that a session may make before a pause of a minute.")
]


async def serve_mcp(
    session: CliSession, http: Http = False, port: Port = PORT, tool: Tools = None, calls: Calls = 5
) -> None:
    """Serve the agent tools over MCP.

    Serves one tenant and knowledge base. Over stdio a client starts this command itself; stdout then carries nothing
    but the protocol.
    """
    from ragstone.agents.budget import Budget
    from ragstone.serve.mcp.server import DEFAULT_TOOLS, HOST, McpCaller, build_server, serve_http, serve_stdio

    async with session.workspace(warm="answers") as workspace:
        # A kb that does not exist is an error here, not of the first agent that asks.
        await workspace.knowledge_bases.get()

        caller = McpCaller(workspace)
        server = build_server(lambda _: caller, tools=tool or DEFAULT_TOOLS, budget=Budget(calls=calls))
        with render_with(render_sentence):  # agents have no shell
            if http:

                async def tell(at: int) -> None:
                    session.remark("note", f"serving MCP at http://{HOST}:{at}/mcp")

                if await until_signal(serve_http(server, port, tell)):
                    session.remark("note", "Stopped.")
            else:
                await serve_stdio(server)

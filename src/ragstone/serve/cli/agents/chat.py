"""`ragstone chat` and `ragstone agent`: talk to the customer-service agent, and configure it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.ask import draw_contradiction
from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import search_code
from ragstone.serve.cli.options import Conversation
from ragstone.serve.cli.render.output import console, table, text, write_json_line
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.agents.service.agent import CustomerReply, ServiceAgent
    from ragstone.agents.service.settings import AgentConfiguration
    from ragstone.core.types import Json

Said = Annotated[
    str | None, typer.Argument(metavar="[MESSAGE]", help="A customer's message; without it messages are read as lines.")
]
Changes = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE", help="Fields of the configuration; 'default' resets one.")
]
DEFAULT = "default"
PROMPT = "> "


async def chat(session: CliSession, message: Said = None, conversation: Conversation = None) -> int:
    """Talk to the customer-service agent of a tenant."""
    from ragstone.agents.service.agent import ServiceAgent

    async with session.workspace(warm=True) as workspace:
        agent = ServiceAgent(workspace)
        if message is None:
            return await _talk(session, agent, conversation)
        async with session.slow_notice(MODEL_WAIT):
            reply = await agent.reply(message, conversation)
    from ragstone.schemas.service import ChatReplySchema

    session.show(ChatReplySchema.of(reply), lambda out: draw_reply(out, reply))
    session.warn(f"degraded: {note}" for note in reply.degraded)
    return search_code(reply.status in ("answered", "small_talk"), reply.degraded)


async def _talk(session: CliSession, agent: ServiceAgent, conversation: str | None) -> int:
    """Answer the lines of stdin until it ends; with --json, one event per line."""
    import asyncio

    live = sys.stdin.isatty() and not session.options.json
    while True:
        if live:
            print(PROMPT, end="", file=sys.stderr, flush=True)  # noqa: T201
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            return 0
        if line.strip():
            reply = await _show_live(session, agent, line.strip(), conversation)
            conversation = reply.conversation


async def _show_live(session: CliSession, agent: ServiceAgent, message: str, conversation: str | None) -> CustomerReply:
    """Write the sentences of a reply as they come; return the reply."""
    from ragstone.agents.service.agent import ReplyReady
    from ragstone.schemas.service import ChatReplyEventSchema, ChatSentenceEventSchema

    out, written = console(), list[str]()
    async for event in agent.stream(message, conversation):
        if isinstance(event, ReplyReady):
            reply = event.reply
            if session.options.json:
                write_json_line(ChatReplyEventSchema.of(reply, event="reply"))
            else:
                draw_reply(out, reply, reply.reply.removeprefix(" ".join(written)).lstrip("\n"))
        elif session.options.json:
            write_json_line(ChatSentenceEventSchema.of(event.sentence, event="sentence", marked=event.text))
        else:
            written.append(event.text)
            out.print(text(event.text))
    session.warn(f"degraded: {note}" for note in reply.degraded)
    return reply


def draw_reply(out: Console, reply: CustomerReply, words: str | None = None) -> None:
    """Draw a reply, or what of its words has not been drawn, and the passages that disagree with the shop's data."""
    said = reply.reply if words is None else words
    if said:
        out.print(text(said, "" if reply.status in ("answered", "small_talk") else "yellow"))
    for conflict in reply.conflicts:
        draw_contradiction(out, conflict)


async def show_agent(session: CliSession) -> None:
    """Show the configuration of the customer-service agent."""
    from ragstone.agents.service.agent import read_agent

    async with session.workspace() as workspace:
        configuration = await read_agent(workspace)
    _show(session, configuration)


async def set_agent(session: CliSession, changes: Changes) -> None:
    """Change fields of the configuration of the customer-service agent."""
    from ragstone.agents.service.agent import change_agent

    values = dict(_read_change(change) for change in changes)
    async with session.workspace(create=True) as workspace:
        configuration = await change_agent(workspace, values)
    _show(session, configuration)


def _read_change(change: str) -> tuple[str, Json]:
    from ragstone.agents.service.settings import AgentConfiguration

    name, equals, value = change.partition("=")
    field = AgentConfiguration.model_fields.get(name)
    if not equals or field is None:
        known = ", ".join(AgentConfiguration.model_fields)
        raise InputError(f"{change!r:.80} changes nothing", hint=f"write FIELD=VALUE; the fields are: {known}")
    return name, field.default if value == DEFAULT else value


def _show(session: CliSession, configuration: AgentConfiguration) -> None:
    from ragstone.schemas.service import AgentConfigurationSchema

    session.show(AgentConfigurationSchema.of(configuration), lambda out: _draw_configuration(out, configuration))


def _draw_configuration(out: Console, configuration: AgentConfiguration) -> None:
    rows = table("field", "value")
    for name, value in configuration.model_dump().items():
        shown = (
            {True: "on", False: "off", "": "–"}.get(value, str(value)) if isinstance(value, bool | str) else str(value)
        )
        rows.add_row(name, text(shown))
    out.print(rows)

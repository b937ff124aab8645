"""`ragstone chat` and `ragstone agent`: talk to the customer-service agent, and configure it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.ask import check_writable, draw_contradiction
from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import OK, PARTIAL, report_error, search_code
from ragstone.serve.cli.options import Conversation
from ragstone.serve.cli.render.output import console, table, text, write_json_line
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.agents.service.agent import ServiceAgent
    from ragstone.agents.service.settings import AgentConfiguration
    from ragstone.core.agents.replies import CustomerReply
    from ragstone.core.types import Json
    from ragstone.engine.monitoring.analytics import AnalyticsSummary

Said = Annotated[
    str | None,
    typer.Argument(
        metavar="[MESSAGE]", help="A customer's message; without one, lines are read until `quit`, `exit` or Ctrl-D."
    ),
]
Changes = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE", help="Fields of the configuration; 'default' resets one.")
]
Days = Annotated[int, typer.Option("--days", min=1, max=3650, help="The last days.")]
SvgFile = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write a chart as well.")]
DEFAULT = "default"
PROMPT = "> "
LEAVE = ("quit", "exit")


async def chat(session: CliSession, message: Said = None, conversation: Conversation = None) -> int:
    """Talk to the customer-service agent of a tenant."""
    import asyncio

    from ragstone.agents.service.agent import ServiceAgent

    settings = session.settings()
    async with session.engine(settings) as engine:
        agent = ServiceAgent(engine.workspace(settings.tenant))
        async with session.slow_notice(MODEL_WAIT):
            # The time of a source does not include loading its model; the reply tells of one that cannot be loaded.
            await asyncio.gather(engine.warm(settings.tenant, answers=True), return_exceptions=True)
        if message is None:
            return await _talk(session, agent, conversation)
        async with session.slow_notice(MODEL_WAIT):
            reply = await agent.reply(message, conversation)
    from ragstone.schemas.service import ChatReplySchema

    session.show(ChatReplySchema.of(reply), lambda out: draw_reply(out, reply))
    session.warn(f"degraded: {note}" for note in reply.degraded)
    return search_code(reply.status in ("answered", "small_talk"), reply.degraded)


async def _talk(session: CliSession, agent: ServiceAgent, conversation: str | None) -> int:
    """Answer the lines of stdin until it ends or one says to; with --json, one event per line."""
    from ragstone.serve.stdin import stdin_lines

    live = sys.stdin.isatty() and not session.options.json
    answered, refusal = False, OK
    if live:
        session.remark("note", "quit, exit or Ctrl-D ends the session")
    with stdin_lines() as lines:
        while True:
            if live:
                print(PROMPT, end="", file=sys.stderr, flush=True)  # noqa: T201
            line = await anext(lines, None)
            if line is None or line.strip().lower() in LEAVE:
                return PARTIAL if answered and refusal else refusal
            if not line.strip():
                continue
            try:
                reply = await _show_live(session, agent, line.strip(), conversation)
            except InputError as error:
                refusal = report_error(error, as_json=session.options.json, debug=session.options.debug)
            else:
                answered, conversation = True, reply.conversation


async def _show_live(session: CliSession, agent: ServiceAgent, message: str, conversation: str | None) -> CustomerReply:
    """Write the sentences of a reply as they come; return the reply."""
    from ragstone.core.agents.replies import ReplyReady
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
    """Show the settings of the agent."""
    from ragstone.agents.service.agent import read_agent

    async with session.workspace() as workspace:
        configuration = await read_agent(workspace)
    _show(session, configuration)


async def set_agent(session: CliSession, changes: Changes) -> None:
    """Change settings of the customer-service agent."""
    from ragstone.agents.service.agent import change_agent

    values = dict(_read_change(change) for change in changes)
    async with session.workspace(create=True) as workspace:
        configuration = await change_agent(workspace, values)
    _show(session, configuration)


async def show_analytics(session: CliSession, days: Days = 30, svg: SvgFile = None) -> None:
    """Show retrievals of a tenant as a table or as a chart.

    Shows their number, time, sources and costs.
    """
    from ragstone.core.clock import now
    from ragstone.schemas.monitoring import AnalyticsSchema
    from ragstone.serve.chart import draw_analytics

    if svg:
        check_writable(svg)
    async with session.workspace() as workspace:
        summary = await workspace.analytics.summary(days=days)
        by_day = await workspace.analytics.days(days=days) if svg else []
    session.show(AnalyticsSchema.of(summary), lambda out: _draw_analytics(out, summary))
    if svg:
        svg.write_text(draw_analytics(summary, by_day, now().date()), encoding="utf-8")
        session.remark("chart", f"written to {svg}")


def _draw_analytics(out: Console, summary: AnalyticsSummary) -> None:
    rows = table("figure", "value", right=("value",))
    times = summary.latency
    shown = {
        "retrievals": f"{summary.searches:,}",
        "failed": f"{summary.failed:,}",
        "found nothing": f"{summary.nothing:,}",
        "degraded": f"{summary.degraded:,}",
        "p50 / p95 / p99": "–" if times.p50 is None else f"{times.p50:.0f} / {times.p95:.0f} / {times.p99:.0f} ms",
        **{
            name: f"{figures.asked:,} asked, {figures.helpful:,} helpful, {figures.failed:,} failed"
            for name, figures in summary.sources.items()
        },
        "cost this month": f"${summary.cost_month:.4f}",
        **{f"  {kind}": f"${usd:.4f}" for kind, usd in sorted(summary.cost_by_kind.items())},
    }
    for name, value in shown.items():
        rows.add_row(name, value)
    out.print(rows)


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

"""`ragstone demo --shop`: a fictional shop, five conversations with its customers, four ways to configure the agent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from ragstone.serve.cli.agents.chat import draw_reply
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.render.output import console, pluralize, text
from ragstone.serve.cli.render.progress import ingest_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.agents.service.agent import ServiceAgent
    from ragstone.core.agents.replies import CustomerReply
    from ragstone.core.documents import IngestReport
    from ragstone.engine.workspace import Workspace

TENANT = "demo-shop"
"""A tenant has one shop: that of the user must not get products that do not exist."""


async def play_shop(session: CliSession) -> int:
    """Load the demo shop, and play its conversations with each of the demo configurations."""
    from ragstone.agents.service.agent import ServiceAgent
    from ragstone.agents.service.settings import DEMO_CONFIGURATIONS
    from ragstone.samples import shop
    from ragstone.schemas.service import ShopDemoSchema

    tenant = session.options.tenant or TENANT
    settings = session.settings(tenant=tenant, web={"kind": "fixture", "path": shop.web_pages()})
    out = None if session.options.json else console()
    played: dict[str, list[CustomerReply]] = {}
    async with session.workspace(settings, create=True) as workspace:
        report = await load_shop(session, workspace)
        if out:
            _draw_start(out, report, tenant)
        for name, configuration in DEMO_CONFIGURATIONS.items():
            agent = ServiceAgent(workspace, configuration)
            if out:
                out.print(text(f"\n── {name} ──", "magenta"))
            played[name] = [await _play(out, agent, message) for message in shop.CONVERSATIONS]
    if out:
        _draw_next(out, session, tenant)
    else:
        session.show(ShopDemoSchema.of(ingest=report, conversations=played), lambda _: None)
    session.warn([f"{failure.uri}: {failure.error}" for failure in report.failed])
    return FAILURE if report.failed else OK


async def load_shop(session: CliSession, workspace: Workspace) -> IngestReport:
    """Put the documents, products, services and bookings of the demo into a tenant's shop, unless they are there."""
    from ragstone.core.clock import now
    from ragstone.samples import shop

    with ingest_progress(session) as progress:
        report = await workspace.documents.ingest(*shop.documents(), on_progress=progress.show)
    await workspace.shop.put_products(shop.products())
    await workspace.shop.put_services(shop.services())
    if not await workspace.shop.appointments(limit=1):
        first = now().date() + timedelta(days=1)
        for booking in shop.BOOKINGS:
            slots = await workspace.shop.free_slots(booking.service_id, first, first + timedelta(days=13))
            await workspace.shop.book(booking.service_id, slots[booking.slot].starts_at, booking.customer)
    return report


async def _play(out: Console | None, agent: ServiceAgent, message: str) -> CustomerReply:
    reply = await agent.reply(message)
    if out:
        out.print()
        out.print(text("? ", "cyan").append(message, "bold"))
        draw_reply(out, reply)
        out.print(text(f"({', '.join(reply.sources) or 'no source'})", "dim"))
    return reply


def _draw_start(out: Console, report: IngestReport, tenant: str) -> None:
    from ragstone.samples import shop

    goods, services = pluralize(len(shop.products()), "product"), pluralize(len(shop.services()), "service")
    out.print(f"The shop Juniper Lane: {pluralize(report.documents, 'document')}, {goods} and {services}.")
    out.print(f"They are in the tenant {tenant}: no other shop in this data folder changes.")
    out.print("Pages of the web are a recording; everything else is read on this machine while you watch.")


def _draw_next(out: Console, session: CliSession, tenant: str) -> None:
    options = replace(session.options, tenant=tenant).as_typed()
    out.print()
    out.print(text("What to type next", "bold"))
    for line in (f'ragstone chat "How much is Rose Velvet?"{options}', f"ragstone chat{options}"):
        out.print(f"  {line}", soft_wrap=True)

"""`ragstone tenants`: who there is, what they may use and what they have used."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError, StoreCorrupt
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import QUOTA_NAMES, QuotaName, Quotas, checked_quotas, checked_retention
from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, pluralize, table, text
from ragstone.serve.cli.render.receipts import show_receipts
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from ragstone.core.tenants import Tenant, Usage
    from ragstone.core.types import Json
    from ragstone.stores.control.tenants import SqlTenantBook

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tenant.")]
Changes = Annotated[
    list[str],
    typer.Argument(
        metavar="KEY=VALUE",
        help="quotas.documents, .chunks, .bytes, .queries_per_minute, .cost_per_month; retention_days; "
        "retrieval.*, embedding.model, profile, flags.NAME. 'none' removes a limit.",
    ),
]
QUOTA, RETENTION, NONE = "quotas.", "retention_days", "none"


async def list_tenants(session: CliSession) -> int:
    """List, create, change and delete tenants."""
    from ragstone.schemas.tenants import TenantListSchema

    async with session.engine() as engine:
        found = await engine.tenants.all()
    session.show(TenantListSchema.of(tenants=found), lambda out: _draw_tenants(out, found))
    return OK if found else NOTHING_FOUND


async def create_tenant(session: CliSession, name: Name) -> None:
    """Create a tenant. Ingesting for a new tenant creates it as well."""
    async with session.engine(create=True) as engine:
        made = await engine.tenants.create(name)
    _show(session, made, f"Tenant '{name}' is there.")


async def show_tenant(session: CliSession, name: Name) -> None:
    """Show the limits, settings and usage of a tenant."""
    from ragstone.schemas.tenants import TenantDetailSchema

    async with session.engine() as engine:
        tenant = await _existing(engine.tenants, name)
        usage = await engine.tenants.usage(name)
    session.show(TenantDetailSchema.of(tenant, usage=usage), lambda out: _draw_tenant(out, tenant, usage))


async def rename_tenant(
    session: CliSession,
    old: Annotated[str, typer.Argument(metavar="OLD", help="Current name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="New name.")],
) -> None:
    """Rename a tenant. Its documents and all ids stay the same."""
    async with session.engine() as engine:
        renamed = await engine.tenants.rename(old, new)
    _show(session, renamed, f"Renamed tenant '{old}' to '{new}'.")


async def suspend_tenant(session: CliSession, name: Name) -> None:
    """Refuse all requests for a tenant and pause its jobs."""
    async with session.engine() as engine:
        suspended = await engine.tenants.suspend(name)
    _show(session, suspended, f"Tenant '{name}' is suspended.")


async def resume_tenant(session: CliSession, name: Name) -> None:
    """End a suspension."""
    async with session.engine() as engine:
        resumed = await engine.tenants.resume(name)
    _show(session, resumed, f"Tenant '{name}' is active.")


async def delete_tenant(
    session: CliSession, name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Delete a tenant with everything it has. Asks first on a terminal; finishes an interrupted deletion."""
    from ragstone.schemas.erasure import DeletedTenantSchema

    async with session.engine() as engine:
        tenant = await _existing(engine.tenants, name)
        documents = 0
        if tenant.state != "deleting":
            with suppress(StoreCorrupt):  # they are lost, and the tenant is to go for it
                documents = (await engine.tenants.usage(name)).stock.documents
        if not session.confirms(f"Delete tenant '{name}' with {pluralize(documents, 'document')}?", yes=yes):
            return FAILURE
        receipts = [await engine.erase_tenant(name)]
    return show_receipts(
        session,
        DeletedTenantSchema.of(deleted=name, documents=documents, tenant=tenant, receipts=receipts),
        f"Deleted '{name}' with {pluralize(documents, 'document')}.",
        receipts,
    )


async def set_tenant(session: CliSession, name: Name, changes: Changes) -> None:
    """Set limits, retention and settings of a tenant.

    For example: ragstone tenants set acme quotas.documents=5000 retention_days=365 retrieval.k=20
    flags.new_ranking=25%
    """
    from ragstone.settings.tenants import packed_settings

    given = [_pair(change) for change in changes]
    async with session.engine() as engine:
        book = engine.tenants
        tenant = await _existing(book, name)
        quotas, days, settings = tenant.quotas, tenant.retention_days, dict(tenant.settings)
        for key, value in given:
            if key.startswith(QUOTA):
                quotas = _with_quota(quotas, key.removeprefix(QUOTA), value)
            elif key == RETENTION:
                days = None if value == NONE else _number(key, value, int)
            elif value == NONE:
                settings.pop(key, None)
            else:
                settings[key] = value
        # All of it is checked before any of it is written.
        checked_quotas(quotas)
        checked_retention(days)
        packed_settings(settings)
        await book.set_quotas(name, quotas)
        await book.set_retention(name, days)
        changed = await book.set_settings(name, settings)
    _show(session, changed, f"Set {pluralize(len(given), 'value')} of tenant '{name}'.")


async def show_usage(session: CliSession) -> None:
    """Show what a tenant has used and what that has cost.

    Shows it by kind and month, for the tenant of --tenant.
    """
    from ragstone.schemas.tenants import UsageSchema

    name = session.settings().tenant
    async with session.engine() as engine:
        tenant = await _existing(engine.tenants, name)
        usage = await engine.tenants.usage(name)
    session.show(UsageSchema.of(usage), lambda out: _draw_usage(out, tenant, usage))


async def _existing(book: SqlTenantBook, name: str) -> Tenant:
    found = await book.get(name)
    if found is None:
        raise NotFoundError(f"there is no tenant '{name}'", remedy=Remedy(Action.LIST_TENANTS))
    return found


def _pair(change: str) -> tuple[str, str]:
    key, equals, value = change.partition("=")
    if not equals or not key or not value:
        raise InputError(f"'{change}' is not KEY=VALUE", hint="such as quotas.documents=5000")
    return key, value


def _with_quota(quotas: Quotas, name: str, value: str) -> Quotas:
    if name not in QUOTA_NAMES:
        raise InputError(
            f"there is no quota '{name}'", hint=f"there are {', '.join(f'quotas.{quota}' for quota in QUOTA_NAMES)}"
        )
    kind: Callable[[str], float] = float if name == "cost_per_month" else int
    return replace(quotas, **{name: None if value == NONE else _number(f"{QUOTA}{name}", value, kind)})


def _number(key: str, value: str, kind: Callable[[str], Json]) -> Json:
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"{key} cannot be '{value}'", hint="give a number, or 'none' for no limit") from None


def _show(session: CliSession, tenant: Tenant, message: str) -> None:
    from ragstone.schemas.tenants import TenantSchema

    session.show(TenantSchema.of(tenant), lambda out: out.print(message))


def _draw_tenants(out: Console, tenants: Sequence[Tenant]) -> None:
    if not tenants:
        out.print("No tenants.")
        return
    rows = table("name", "state", "created", "limits", "kept")
    for tenant in tenants:
        limits = [quota for quota in QUOTA_NAMES if tenant.quotas.of(quota) is not None]
        kept = f"{tenant.retention_days} days" if tenant.retention_days else "–"
        rows.add_row(
            tenant.name,
            text(tenant.state, "" if tenant.state == "active" else "yellow"),
            moment(tenant.created_at),
            ", ".join(limits) or "–",
            kept,
        )
    out.print(rows)


def _draw_usage(out: Console, tenant: Tenant, usage: Usage) -> None:
    out.print(text(tenant.name, "bold"))
    _draw_amounts(out, tenant, usage)
    if usage.web_queries:
        day, count = list(usage.web_queries.items())[-1]
        out.print(f"web searches: {count:,} on {day}, {sum(usage.web_queries.values()):,} in 31 days")
    if not usage.cost_by_month:
        out.print("Nothing has cost anything.")
        return
    months = usage.cost_by_month
    rows = table("USD", *months, "expected", right=(*months, "expected"))
    for kind in sorted({kind for costs in months.values() for kind in costs} | usage.projection.keys()):
        spent = [f"{costs.get(kind, 0.0):,.4f}" for costs in months.values()]
        rows.add_row(kind, *spent, f"{usage.projection[kind]:,.2f}" if kind in usage.projection else "–")
    totals = [f"{sum(costs.values()):,.4f}" for costs in months.values()]
    rows.add_row("total", *totals, f"{sum(usage.projection.values()):,.2f}")
    out.print(rows)
    out.print(text("expected: for a month with as many documents and conversations, with paid services", "dim"))


def _draw_tenant(out: Console, tenant: Tenant, usage: Usage) -> None:
    out.print(text(tenant.name, "bold"))
    out.print(text(f"{tenant.state}, since {moment(tenant.created_at)}, id {tenant.id}", "dim"))
    if tenant.retention_days:
        out.print(f"documents are kept for {tenant.retention_days} days")
    _draw_amounts(out, tenant, usage)
    for key, value in tenant.settings.items():
        out.print(text(f"{key} = {value}"))


def _draw_amounts(out: Console, tenant: Tenant, usage: Usage) -> None:
    used: dict[QuotaName, float] = {
        "documents": usage.stock.documents,
        "chunks": usage.stock.chunks,
        "bytes": usage.stock.bytes,
        "queries_per_minute": usage.queries,
        "cost_per_month": usage.cost,
    }
    rows = table("", "used", "limit", right=("used", "limit"))
    for name, amount in used.items():
        limit, form = tenant.quotas.of(name), ",.2f" if name == "cost_per_month" else ",.0f"
        rows.add_row(name, format(amount, form), "–" if limit is None else format(limit, form))
    out.print(rows)
    if usage.stock.originals:
        out.print(text(f"of the bytes {usage.stock.originals:,} are original files", "dim"))
    if usage.queued.documents:
        room = f", for which {usage.queued.bytes:,} bytes are set aside" if usage.queued.bytes else ""
        out.print(f"{pluralize(usage.queued.documents, 'document')} in the queue{room}")

"""`ragstone audit` and `ragstone alerts`: who did what, and what is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK, PARTIAL
from ragstone.serve.cli.render.output import one_line, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from ragstone.core.audit import AuditChain, AuditEntry
    from ragstone.stores.control.alerts import Alert

AGO = re.compile(r"(\d{1,5})([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MOST_SHOWN = 16
"""Characters of an id that tell it from the others; --json has all of them."""
COLOURS = {"denied": "red", "failed": "red", "begun": "yellow"}
Action = Annotated[
    str | None,
    typer.Option("--action", help="Only this action, such as search, document.delete, or tenant for all of tenant.…"),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="7d|DATE", help="Only newer entries: 30m, 12h, 7d, 4w or a date.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most N, the newest.")]
Verify = Annotated[
    bool, typer.Option("--verify", help="Prove that no entry of any tenant was changed, removed, inserted or moved.")
]
Noted = Annotated[
    str | None,
    typer.Option(
        "--noted", metavar="HASH", help="With --verify: the last entry's hash of an earlier run, kept elsewhere."
    ),
]


async def audit(
    session: CliSession,
    action: Action = None,
    since: Since = None,
    limit: Limit = 100,
    verify: Verify = False,
    noted: Noted = None,
) -> int:
    """Show the audit log, newest first.

    Covers all tenants, including deleted ones, or only --tenant. Entries name things by id and count them. They
    hold no text of documents, questions or answers.
    """
    if verify or noted:
        return await _verify(session, noted or "")
    from ragstone.engine.installation import read_audit
    from ragstone.schemas.tenants import AuditSchema

    entries = await read_audit(
        session.settings(), tenant=session.options.tenant, action=action, since=read_since(since), limit=limit
    )
    session.show(AuditSchema.of(audit=entries), lambda out: _draw(out, entries))
    return OK if entries else NOTHING_FOUND


async def _verify(session: CliSession, noted: str) -> int:
    from ragstone.engine.installation import verify_audit
    from ragstone.schemas.tenants import AuditChainSchema

    chain = await verify_audit(session.settings(), noted=noted)
    session.show(AuditChainSchema.of_chain(chain), lambda out: _draw_chain(out, chain))
    return OK if chain.is_intact else FAILURE


def _draw_chain(out: Console, chain: AuditChain) -> None:
    if not chain.is_intact:
        out.print(text(f"The audit record was tampered with: {chain.problem}.", "red"))
        return
    pruned = f" ({chain.pruned:,} older ones were pruned)" if chain.pruned else ""
    out.print(f"All {chain.entries:,} entries are as they were written{pruned}.")
    if chain.head:
        out.print(f"Hash of the last entry, to be noted elsewhere: {chain.head}", soft_wrap=True)


async def list_alerts(session: CliSession) -> int:
    """Show alerts, those that fire first.

    Covers all tenants and the service, or only --tenant. The exit code is 3 while one fires.
    """
    from ragstone.schemas.monitoring import AlertListSchema

    async with session.engine() as engine:
        tenant = session.options.tenant
        alerts = await engine.alerts_of(tenant) if tenant else await engine.alerts()
    session.show(AlertListSchema.of(alerts=alerts), lambda out: _draw_alerts(out, alerts))
    return PARTIAL if any(alert.state == "firing" for alert in alerts) else OK


def _draw_alerts(out: Console, alerts: Sequence[Alert]) -> None:
    if not alerts:
        out.print("There are no alerts.")
        return
    rows = table("state", "rule", "tenant", "value", "threshold", "since (UTC)", right=["value", "threshold"])
    for alert in alerts:
        rows.add_row(
            text(alert.state, "bold red" if alert.state == "firing" else "green"),
            text(alert.rule),
            text(alert.tenant or "(service)"),
            f"{alert.value:g}",
            f"{alert.threshold:g}",
            f"{alert.since:%Y-%m-%d %H:%M}",
        )
    out.print(rows)


def read_since(since: str | None) -> datetime | None:
    """Return the moment that `--since` means."""
    from datetime import timedelta

    from ragstone.core.clock import now, parse_moment

    if since is None:
        return None
    if ago := AGO.fullmatch(since.strip()):
        return now() - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    moment = parse_moment(since)
    if moment is None:
        raise InputError(
            f"--since cannot be {since!r:.60}", hint="such as --since 12h, --since 7d or --since 2026-01-31"
        )
    return moment


def _draw(out: Console, entries: Sequence[AuditEntry]) -> None:
    if not entries:
        out.print("Nothing is recorded.")
        return
    tenants = {entry.tenant for entry in entries}
    columns = {
        "when (UTC)": [_moment(entry.moment) for entry in entries],
        "who": [entry.actor or "–" for entry in entries],
        "tenant": [entry.tenant or "–" for entry in entries] if len(tenants) > 1 else [],
        "action": [entry.action for entry in entries],
        "what": [entry.target[:MOST_SHOWN] for entry in entries],
        "kb": [entry.kb for entry in entries],
        "count": [f"{entry.count:,}" if entry.count else "" for entry in entries],
        "outcome": [_outcome(entry) for entry in entries],
    }
    used = {name: values for name, values in columns.items() if any(values)}
    drawn = table(*used, right=["count"])
    for column in drawn.columns:
        column.no_wrap = True
    for entry, row in zip(entries, zip(*used.values(), strict=True), strict=True):
        cells = [text(one_line(value)) for value in row]
        cells[-1] = text(one_line(row[-1]), COLOURS.get(entry.outcome, ""))
        drawn.add_row(*cells)
    out.print(drawn)


def _moment(moment: datetime) -> str:
    """Return a time, with its day only where that is not today."""
    from ragstone.core.clock import now

    return f"{moment:%H:%M:%S}" if moment.date() == now().date() else f"{moment:%Y-%m-%d %H:%M}"


def _outcome(entry: AuditEntry) -> str:
    """Return the outcome with its reason; a denial needs none."""
    return f"{entry.outcome}: {entry.detail}" if entry.detail and entry.outcome == "failed" else entry.outcome

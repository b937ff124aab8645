"""`ragstone audit`: who did what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.output import one_line, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from ragstone.core.audit import AuditEntry

AGO = re.compile(r"(\d{1,5})([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
COLOURS = {"denied": "red", "failed": "red", "begun": "yellow"}
Action = Annotated[
    str | None,
    typer.Option(
        "--action", help="Only this, such as search, document.delete, or tenant for all of tenant.…"
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="7d|DATE", help="Only what is newer: 30m, 12h, 7d, 4w or a date."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most N, the newest.")]


async def audit(session: Session, action: Action = None, since: Since = None, limit: Limit = 100) -> int:
    """Show who did what, newest first: of all tenants, or of those called --tenant, deleted ones too.

    Entries name things by id and count them. They hold no text of documents, questions or answers.
    """
    import asyncio

    from ragstone.core.audit import audit_json
    from ragstone.stores.opening import open_stores

    settings = session.settings()
    if settings.store.ledger.kind == "sqlite" and not settings.data_dir.exists():
        raise NotFoundError(
            f"there is no data in {settings.data_dir} yet",
            hint="ragstone ingest PATH makes it; --data-dir names another folder",
        )
    stores = await asyncio.to_thread(open_stores, settings)
    try:
        entries = await stores.audit.entries(
            tenant=session.options.tenant, action=action, since=read_since(since), limit=limit
        )
    finally:
        await stores.close()
    session.show({"audit": [audit_json(one) for one in entries]}, lambda out: _draw(out, entries))
    return OK if entries else NOTHING_FOUND


def read_since(since: str | None) -> datetime | None:
    """The moment that `--since` means."""
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
    drawn = table(
        "when (UTC)", "who", "tenant", "action", "outcome", "what", "kb", "count", "detail", right=["count"]
    )
    for one in entries:
        drawn.add_row(
            f"{one.moment:%Y-%m-%d %H:%M:%S}",
            text(one_line(one.actor) or "–"),
            one.tenant or "–",
            one.action,
            text(one.outcome, COLOURS.get(one.outcome, "")),
            text(one_line(one.target)),
            text(one_line(one.kb)),
            f"{one.count:,}" if one.count else "",
            text(one_line(one.detail)),
        )
    out.print(drawn)

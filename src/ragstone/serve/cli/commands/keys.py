"""`ragstone keys`: keys of callers over the network, and keys that encrypt what is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.commands.installation import rotate_encryption
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragstone.core.keys import ApiKey, IssuedKey

KeyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as `keys` lists it.")]


async def list_keys(session: CliSession) -> int:
    """List, create, rotate and revoke keys.

    Lists the API keys of all tenants, or with --tenant of one.
    """
    from ragstone.schemas.tenants import ApiKeyListSchema

    async with session.engine() as engine:
        found = await engine.keys.all(session.options.tenant)
    session.show(ApiKeyListSchema.of(keys=found), lambda out: _draw_keys(out, found))
    return OK if found else NOTHING_FOUND


async def create_key(
    session: CliSession,
    scope: Annotated[str, typer.Option("--scope", help="read, write, admin, or several of them: read,write.")] = "read",
    name: Annotated[str, typer.Option("--name", help="A name to recognize it by.")] = "",
    only_kb: Annotated[
        list[str] | None, typer.Option("--only-kb", metavar="KB", help="Limit it to this kb. May be repeated.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36_500, help="Days until it expires; never by default.")
    ] = None,
    per_minute: Annotated[
        int | None,
        typer.Option("--per-minute", min=1, help="Requests that it may make in a minute; no limit by default."),
    ] = None,
    operator: Annotated[
        bool,
        typer.Option("--operator", help="A key for the operator, who creates and lists tenants and reads metrics."),
    ] = False,
) -> None:
    """Create an API key for the tenant of --tenant. It is printed once and not stored.

    For example: ragstone keys create --tenant acme --scope read,write
    """
    from ragstone.core.clock import now
    from ragstone.core.keys import NewApiKey, read_scopes

    scopes = read_scopes(["admin"] if operator else [part.strip() for part in scope.split(",") if part.strip()])
    tenant = "" if operator else session.settings().tenant
    expires = now() + timedelta(days=days) if days else None
    async with session.engine(create=True) as engine:
        if tenant and await engine.tenants.get(tenant) is None:
            await engine.tenants.create(tenant)
        issued = await engine.keys.create(NewApiKey(tenant, scopes, name, tuple(only_kb or ()), expires, per_minute))
    _show_issued(session, issued)


async def rotate_key(
    session: CliSession,
    key_id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the key, as `keys` lists it.")] = None,
    hours: Annotated[
        int, typer.Option("--hours", min=0, max=876_000, help="Hours for which the old key keeps working.")
    ] = 24,
) -> int:
    """Replace an API key by one with the same rights. The old key keeps working for some hours."""
    if key_id is None:
        session.warn(["'keys rotate' without an id is deprecated; use 'keys rotate-encryption'"])
        return await rotate_encryption(session)
    async with session.engine() as engine:
        issued = await engine.keys.rotate(key_id, tenant=session.options.tenant, grace=timedelta(hours=hours))
    _show_issued(session, issued)
    return OK


async def revoke_key(session: CliSession, key_id: KeyId) -> None:
    """Revoke an API key. Requests with it are refused from now on."""
    from ragstone.schemas.tenants import ApiKeySchema

    async with session.engine() as engine:
        revoked = await engine.keys.revoke(key_id, tenant=session.options.tenant)
    session.show(ApiKeySchema.of(revoked), lambda out: out.print(f"Key {key_id} is refused from now on."))


def _show_issued(session: CliSession, issued: IssuedKey) -> None:
    from ragstone.schemas.tenants import IssuedKeySchema

    session.show(IssuedKeySchema.of_issued(issued), lambda out: out.print(issued.token, soft_wrap=True))
    session.remark("note", "this is the only time that the key is shown")


def _draw_keys(out: Console, keys: Sequence[ApiKey]) -> None:
    if not keys:
        out.print("There are no API keys.")
        return
    rows = table("id", "name", "tenant", "scopes", "kbs", "per minute", "created", "state")
    for key in keys:
        rows.add_row(
            key.id,
            text(key.name),
            text(key.tenant or "(operator)"),
            ", ".join(key.scopes),
            text(", ".join(key.kbs) or "all"),
            "–" if key.per_minute is None else f"{key.per_minute:,}",
            moment(key.created_at),
            _state(key),
        )
    out.print(rows)


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return f"revoked {moment(key.revoked_at)}"
    return f"until {moment(key.expires_at)}" if key.expires_at else "valid"

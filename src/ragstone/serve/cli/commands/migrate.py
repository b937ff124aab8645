"""`ragstone migrate`: to another vector database, or to another ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.render.output import pluralize, text
from ragstone.serve.cli.render.progress import move_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.settings.tree import Adapter
    from ragstone.transfer.reports import MoveReport


async def migrate(
    session: CliSession,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="KIND",
            help="chroma, qdrant, milvus, weaviate, pinecone or memory; postgres, pgvector or sqlite.",
        ),
    ],
    url: Annotated[str | None, typer.Option("--url", help="Address of the vector database.")] = None,
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="DSN of the PostgreSQL database; '$NAME' reads it from the environment.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option("--api-key", help="Key of the vector database; '$NAME' reads it from the environment.")
    ] = None,
    path: Annotated[
        Path | None, typer.Option("--path", help="Folder of an embedded database, or of another SQLite ledger.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="Option of the store; may be repeated.")
    ] = None,
) -> int:
    """Build another store from this one while it is in use.

    Moves all tenants unless one is named, and compares every chunk. The origin is not changed; the settings for the
    switch are printed.
    """
    adapter = _adapter(to, url=url, dsn=dsn, api_key=api_key, path=path, option=option)
    tenant = session.options.tenant
    async with session.engine() as engine:
        with move_progress(session) as on_progress:
            report = await engine.migrate(
                adapter, tenants=None if tenant is None else [tenant], on_progress=on_progress
            )
    from ragstone.schemas.transfer import MoveSchema

    session.show(MoveSchema.of(report), lambda out: _draw(out, report))
    return OK if report.is_equal else FAILURE


def _adapter(kind: str, *, option: list[str] | None, **address: Any) -> Adapter:
    from ragstone.settings.tree import Adapter

    for secret in ("dsn", "api_key"):
        address[secret] = _secret(secret, address[secret])
    given = {name: value for name, value in address.items() if value is not None}
    options = dict(_option(pair) for pair in option or ())
    return Adapter.model_validate({"kind": kind, **given, **({"options": options} if options else {})})


def _secret(name: str, given: str | None) -> str | None:
    """Return a secret, or the value of the variable that is named instead: what is typed can be seen by others."""
    if not given or not given.startswith("$"):
        return given
    import os

    found = os.environ.get(given[1:])
    if not found:
        raise InputError(f"{name} refers to {given}, which is not set", hint=f"export {given[1:]}=…")
    return found


def _option(given: str) -> tuple[str, Any]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InputError(f"--option {given} is not KEY=VALUE", hint="such as --option timeout=30")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _draw(out: Console, report: MoveReport) -> None:
    for move in report.tenants:
        held = f"{pluralize(move.documents, 'document')}, {pluralize(move.chunks, 'chunk')}"
        out.print(
            text(
                f"{move.tenant}: {held} compared, {move.written:,} written; "
                f"sampled searches ({move.searches:,}) agree by {move.agreement:.1%}."
            )
        )
        for remark in move.remarks:
            out.print(text(f"  {remark}", "dim"))
        for said in move.differences.named:
            out.print(text(f"  {said}", "red"))
        if move.differences.count > len(move.differences.named):
            out.print(text(f"  … and {move.differences.count - len(move.differences.named):,} more", "red"))
    if not report.is_equal:
        out.print(text("The two differ. Go on with what is in use, and run the same again.", "red"))
        return
    import yaml

    out.print("Both are equal. To use the new one, set:")
    out.print(text(yaml.safe_dump(dict(report.settings), sort_keys=False).rstrip()))
    for secret in report.secrets:
        variable = f"RAGSTONE_{secret.upper().replace('.', '__')}"
        out.print(text(f"and {secret}, for example by {variable}"))

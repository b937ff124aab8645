"""`ragstone serve`: the HTTP service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.remedies import render_sentence, render_with
from ragstone.serve.cli.options import Log
from ragstone.serve.cli.render.output import write_json_line
from ragstone.serve.cli.session import CliSession
from ragstone.serve.cli.signals import until_signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragstone.core.keys import IssuedKey
    from ragstone.engine.engine import Engine

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all interfaces.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port; 0 selects a free one.")]
NoWorker = Annotated[bool, typer.Option("--no-worker", help="Leave queued jobs to `ragstone worker`.")]


async def serve(
    session: CliSession, host: Host = None, port: Port = None, no_worker: NoWorker = False, log: Log = None
) -> None:
    """Serve everything over HTTP, for all tenants with keys.

    The first start prints a key for the tenant of the settings and one for the operator.
    """
    from ragstone.schemas.installation import ServingSchema
    from ragstone.serve.http.app import build_app
    from ragstone.serve.logs import write_logs
    from ragstone.serve.server import run_app

    given = {"host": host, "port": port, "worker": False if no_worker else None, "log": log}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = session.settings(service=chosen) if chosen else session.settings()
    async with session.engine(settings, create=True) as engine:
        app = build_app(engine, worker=settings.service.worker)

        async def tell(at: int) -> None:
            # Not before it listens: keys are shown only once.
            first = await _create_first_keys(engine)
            address = f"http://{settings.service.host}:{at}"
            if session.options.json:
                write_json_line(ServingSchema.of(url=address, keys={_owner(made): made.token for made in first}))
            _tell_people(session, address, first)

        with write_logs(settings), render_with(render_sentence):  # callers have no shell
            if await until_signal(run_app(app, settings.service.host, settings.service.port, tell)):
                session.remark("note", "Stopped.")


async def _create_first_keys(engine: Engine) -> list[IssuedKey]:
    from ragstone.core.keys import SCOPES, NewApiKey

    tenant = engine.settings.tenant
    if await engine.tenants.get(tenant) is None:
        await engine.tenants.create(tenant)
    return await engine.keys.create_first([NewApiKey(tenant, SCOPES, "first"), NewApiKey("", ("admin",), "operator")])


def _tell_people(session: CliSession, address: str, first: Sequence[IssuedKey]) -> None:
    session.remark("note", f"serving {address}: ask at {address}/ask, documentation at {address}/docs")
    for made in first:
        session.remark("key", f"{_owner(made)}: {made.token}")
    if first:
        others = session.options.command("keys", "create")
        session.remark("note", f"these keys are shown only now; make others with: {others}")


def _owner(made: IssuedKey) -> str:
    return made.key.tenant or "(operator)"

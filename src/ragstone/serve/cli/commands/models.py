"""`ragstone models`: which models there are, which are here, and how to get the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.render.output import table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.models.installed import ModelEntry

COLOURS = {"installed": "green", "missing": "yellow", "remote": "cyan"}


async def list_models(session: CliSession) -> None:
    """List models, and how to get those that are missing."""
    from ragstone.engine import installation
    from ragstone.schemas.installation import ModelListSchema

    entries = installation.list_models(session.settings())
    session.show(ModelListSchema.of(models=entries), lambda out: _draw(out, entries))


async def pull_model(
    session: CliSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A hub name, such as BAAI/bge-small-en-v1.5.")],
    revision: Annotated[str | None, typer.Option("--revision", help="A branch, tag or commit of the model.")] = None,
) -> None:
    """Download a model from the hub. This is the only command that downloads anything."""
    from ragstone.engine import installation
    from ragstone.schemas.installation import PulledModelSchema

    async with session.slow_notice(f"downloading {name} …"):
        folder = await installation.pull_model(name, revision=revision)
    shape = PulledModelSchema.of(model=name, path=str(folder))
    session.show(shape, lambda out: out.print(f"{name} is in {folder}"))


def _draw(out: Console, entries: list[ModelEntry]) -> None:
    rows = table("", "model", "kind", "state", "dimension", "tokens", right=("dimension", "tokens"))
    for entry in entries:
        rows.add_row(
            "*" if entry.configured else "",
            text(entry.name),
            entry.kind,
            text(entry.state, COLOURS[entry.state]),
            str(entry.dimension or ""),
            f"{entry.max_tokens:,}" if entry.max_tokens else "",
        )
    out.print(rows)
    out.print()
    out.print("* is what the settings name. To get what is missing:")
    for entry in entries:
        if entry.state == "missing":
            out.print(text(f"  {entry.get}"), soft_wrap=True)

"""`ragstone golden`: questions that are kept with the documents that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.output import counted, one_line, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.activity import GoldenQuery


async def list_golden(session: Session) -> None:
    """List the golden queries of a knowledge base."""
    from ragstone.core.wire_activity import golden_json

    async with session.engine() as engine:
        kept = await engine.activity.golden()
    session.show({"golden": [golden_json(one) for one in kept]}, lambda out: _draw(out, kept))


async def make_golden(
    session: Session,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="From how many documents.")] = 50,
) -> None:
    """Make golden queries of the documents: by the LLM of the settings, or of their own words without one."""
    from ragstone.core.wire_activity import golden_json

    async with session.engine() as engine, session.patience("Making questions …"):
        made = await engine.activity.make_golden(count)
    session.show({"golden": [golden_json(one) for one in made]}, lambda out: _draw(out, made))


async def add_golden(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.")],
    document_ids: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT_ID…", help="What answers it, by id of `documents`.")
    ],
) -> None:
    """Keep a question of your own."""
    async with session.engine() as engine:
        await engine.activity.add_golden(query, document_ids)
    session.show({"added": query}, lambda out: out.print(text("kept")))


async def remove_golden(
    session: Session,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The question, as `golden` lists it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
) -> None:
    """Remove golden queries."""
    if (query is None) != everything:
        raise InputError("name a question, or all of them", hint="ragstone golden remove --all")
    async with session.engine() as engine:
        gone = await engine.activity.remove_golden(query)
    session.show({"removed": gone}, lambda out: out.print(text(f"{counted(gone, 'question')} removed")))


def _draw(out: Console, kept: list[GoldenQuery]) -> None:
    if not kept:
        out.print(text("There are no golden queries yet: ragstone golden make"))
        return
    drawn = table("query", "from", "documents")
    for one in kept:
        drawn.add_row(text(one_line(one.query)), one.origin, " ".join(one.document_ids))
    out.print(drawn)

"""`ragstone golden`: questions that are kept with the documents that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import one_line, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.activity import GoldenQuery


async def list_golden(session: CliSession) -> int:
    """List the golden queries of a knowledge base."""
    from ragstone.schemas.activity import GoldenQueriesSchema

    async with session.workspace() as workspace:
        kept = await workspace.feedback.golden()
    session.show(GoldenQueriesSchema.of(golden=kept), lambda out: _draw(out, kept))
    return OK if kept else NOTHING_FOUND


async def make_golden(
    session: CliSession,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="Number of documents to use.")] = 50,
) -> None:
    """Make golden queries from the documents: written by the configured LLM, or from their own words without one."""
    from ragstone.schemas.activity import MadeGoldenSchema

    async with session.workspace() as workspace, session.slow_notice("Making questions …"):
        made = await workspace.feedback.make_golden(count)
        degraded = _note_unasked(workspace.settings.llm.model, made)
    session.show(MadeGoldenSchema.of(golden=made, degraded=degraded), lambda out: _draw(out, made))
    session.warn(f"degraded: {note}" for note in degraded)


async def add_golden(
    session: CliSession,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.")],
    document_ids: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT_ID…", help="What answers it, by id of `documents`.")
    ],
) -> None:
    """Add a question of your own."""
    async with session.workspace() as workspace:
        await workspace.feedback.add_golden(query, document_ids)
    from ragstone.schemas.activity import AddedGoldenSchema

    session.show(AddedGoldenSchema.of(added=query), lambda out: out.print(text("kept")))


async def remove_golden(
    session: CliSession,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The question, as `golden` lists it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
) -> None:
    """Remove golden queries."""
    if (query is None) != everything:
        raise InputError("name a question, or all of them", remedy=Remedy(Action.REMOVE_GOLDEN))
    async with session.workspace() as workspace:
        gone = await workspace.feedback.remove_golden(query)
    if query is not None and not gone:
        raise NotFoundError(f"no golden query {query!r:.80}", remedy=Remedy(Action.LIST_GOLDEN))
    from ragstone.schemas.activity import RemovedSchema

    shape = RemovedSchema.of(removed=gone)
    session.show(shape, lambda out: out.print(text(f"{pluralize(gone, 'question')} removed")))


def _note_unasked(model: str | None, made: list[GoldenQuery]) -> list[str]:
    """Return a note when an LLM is set and questions were made without it all the same."""
    own = sum(query.origin == "extractive" for query in made)
    if not (model and own):
        return []
    return [f"llm: {model} gave no usable question for {own} of {len(made)}: they are the text's own words"]


def _draw(out: Console, kept: list[GoldenQuery]) -> None:
    if not kept:
        out.print(text(advise("There are no golden queries yet", Remedy(Action.MAKE_GOLDEN))))
        return
    drawn = table("query", "from", "documents")
    for query in kept:
        drawn.add_row(text(one_line(query.query)), query.origin, " ".join(query.document_ids))
    out.print(drawn)

"""`ragstone conversations`: what was asked under one name, and how to have it forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragstone.core.activity import Conversation, Turn

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the conversation.")]
LIST = Remedy(Action.LIST_CONVERSATIONS)


async def list_conversations(
    session: CliSession, limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most N.")] = 50
) -> int:
    """List, show and forget conversations."""
    from ragstone.schemas.activity import ConversationListSchema

    async with session.workspace() as workspace:
        found = await workspace.conversations.list(limit=limit)
    shape = ConversationListSchema.of(conversations=found)
    session.show(shape, lambda out: _draw_conversations(out, found))
    return OK if found else NOTHING_FOUND


async def show_conversation(session: CliSession, name: Name) -> None:
    """Show the questions and answers of a conversation, oldest first."""
    from ragstone.schemas.activity import TurnListSchema

    async with session.workspace() as workspace:
        turns = await workspace.conversations.turns(name)
    if not turns:
        raise NotFoundError(f"no conversation {name!r:.80}", remedy=LIST)
    shape = TurnListSchema.of(conversation=name, turns=turns)
    session.show(shape, lambda out: _draw_turns(out, turns))


async def forget_conversation(session: CliSession, name: Name) -> None:
    """Remove a conversation. Its searches stay in `feedback searches`."""
    from ragstone.schemas.activity import ForgottenConversationSchema

    async with session.workspace() as workspace:
        gone = await workspace.conversations.forget(name)
    if not gone:
        raise NotFoundError(f"no conversation {name!r:.80}", remedy=LIST)
    session.show(
        ForgottenConversationSchema.of(forgotten=name, turns=gone),
        lambda out: out.print(text(f"Forgot {pluralize(gone, 'turn')} of '{name}'.")),
    )


def _draw_conversations(out: Console, conversations: Sequence[Conversation]) -> None:
    if not conversations:
        out.print(text("No conversations: ragstone ask QUESTION --conversation NAME begins one."))
        return
    rows = table("name", "turns", "began", "last", right=("turns",))
    for conversation in conversations:
        rows.add_row(
            text(one_line(conversation.name)),
            f"{conversation.turns:,}",
            moment(conversation.began),
            moment(conversation.last),
        )
    out.print(rows)


def _draw_turns(out: Console, turns: Sequence[Turn]) -> None:
    for number, turn in enumerate(turns):
        if number:
            out.print()
        out.print(text(moment(turn.moment), "dim"))
        out.print(text(one_line(turn.question), "bold"))
        out.print(text(turn.answer) if turn.answer else text("(no answer)", "dim"))

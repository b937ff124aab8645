"""`ragstone ask`: an answer with the source of every sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.options import K, ModeOption, Where, read_where
from ragstone.serve.cli.output import one_line, place, text
from ragstone.serve.cli.search import MODEL_WAIT
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import Answer, Citation

Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in your own words.")]


async def ask(
    session: Session, question: Question, k: K = None, mode: ModeOption = None, where: Where = None
) -> int:
    """Answer a question, with the source of every sentence."""
    filters = read_where(where)
    async with session.engine(warm=True) as engine, session.patience(MODEL_WAIT):
        answer = await engine.ask(question, k=k, mode=mode, where=filters)
    from ragstone.core.wire import ask_json

    session.show(ask_json(answer), lambda out: draw_answer(out, answer))
    session.warn(f"degraded: {note}" for note in answer.degraded)
    return OK if answer.status == "answered" else NOTHING_FOUND


def draw_answer(out: Console, answer: Answer) -> None:
    """The sentences with their marks, then what each mark stands for."""
    out.print(text(answer.answer, "" if answer.citations else "yellow"))
    if answer.citations:
        out.print()
    for citation in answer.citations:
        draw_citation(out, citation)


def draw_citation(out: Console, citation: Citation) -> None:
    """Number and place, address, and the quote."""
    from rich.padding import Padding

    head = text(f"[{citation.n}] ", "cyan").append(
        place(citation.title, citation.section, citation.page), "bold"
    )
    out.print(head)
    out.print(Padding(text(one_line(citation.uri), "dim"), (0, 0, 0, 4), expand=False))
    out.print(Padding(text(f"“{one_line(citation.quote)}”", "italic"), (0, 0, 0, 4), expand=False))

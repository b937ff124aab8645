"""`ragstone ask`: an answer with the source of every sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.search import MODEL_WAIT, note_empty
from ragstone.serve.cli.exits import search_code
from ragstone.serve.cli.options import Conversation, K, ModeOption, Web, Where, read_where
from ragstone.serve.cli.render.output import console, one_line, place, text, write_json_line
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rich.console import Console

    from ragstone.core.answers import Answer, AnswerEvent, Citation, Contradiction

Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in your own words.")]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Print each sentence once it is checked (the default on a terminal); with --json, one event per line.",
    ),
]
ReceiptFile = Annotated[
    Path | None,
    typer.Option("--receipt", metavar="FILE", help="Write a receipt of the answer, for ragstone verify --receipt."),
]


async def ask(
    session: CliSession,
    question: Question,
    k: K = None,
    mode: ModeOption = None,
    where: Where = None,
    web: Web = None,
    conversation: Conversation = None,
    stream: Stream = False,
    receipt: ReceiptFile = None,
) -> int:
    """Answer a question, with the source of every sentence."""
    if receipt:
        check_writable(receipt)
    from ragstone.core.search import Question
    from ragstone.query.context import checked_query

    checked_query(question, None, "question")
    asked = Question(question, k, mode, read_where(where), web, conversation)
    live = stream or (sys.stdout.isatty() and not session.options.json)
    async with session.workspace(warm="answers") as workspace:
        sources = workspace.settings.answer.citation_style != "none"
        if live:
            answer = await _show_live(session, workspace.stream(asked), sources=sources)
        else:
            async with session.slow_notice(MODEL_WAIT):
                answer = await workspace.ask(asked)
        proof = await workspace.receipts.make(answer) if receipt else None
        note = await note_empty(workspace) if answer.status == "no_evidence" else ""
    if not live:
        from ragstone.schemas.answers import AnswerSchema

        session.show(AnswerSchema.of(answer), lambda out: draw_answer(out, answer, sources=sources))
    if note:
        session.remark("note", note)
    session.warn(f"degraded: {problem}" for problem in answer.degraded)
    if receipt:
        # After the answer is shown: a disk that is full must not cost it.
        receipt.write_text(json.dumps(proof, indent=2) + "\n", encoding="utf-8")
        check = session.options.command("verify", "--receipt", str(receipt))
        session.remark("receipt", f"written to {receipt}; check it with: {check}")
    return search_code(answer.status == "answered", answer.degraded)


def check_writable(file: Path) -> None:
    """Raise `InputError` where no file can be written, before anything is done that it would be lost for."""
    place = file if file.exists() else file.parent
    if file.is_dir():
        raise InputError(f"{file} is a folder", hint="name a file in it")
    if not place.exists():
        raise InputError(f"there is no folder {place}", hint="make it first, or name another file")
    if not os.access(place, os.W_OK):
        raise InputError(f"{place} cannot be written to", hint="name another file")


async def _show_live(session: CliSession, events: AsyncIterator[AnswerEvent], *, sources: bool) -> Answer:
    """Write each event as it comes; the answer that they end with."""
    from ragstone.core.answers import AnswerReady, SentenceReady
    from ragstone.schemas.answers import event_schema

    out, written = console(), list[str]()
    async with session.slow_notice(MODEL_WAIT):
        event: AnswerEvent = await anext(events)
    while not isinstance(event, AnswerReady):
        if session.options.json:
            write_json_line(event_schema(event))
        elif isinstance(event, SentenceReady):
            written.append(event.text)
            out.print(text(event.text))
        event = await anext(events)
    if session.options.json:
        write_json_line(event_schema(event))
    else:
        # Each sentence was ended by a line of its own.
        left = event.answer.answer.removeprefix(" ".join(written)).removeprefix("\n")
        draw_rest(out, event.answer, left, sources=sources)
    return event.answer


def draw_answer(out: Console, answer: Answer, *, sources: bool = True) -> None:
    """Draw the sentences with their marks, what each mark stands for, and what speaks against them."""
    draw_rest(out, answer, answer.answer, sources=sources)


def draw_rest(out: Console, answer: Answer, words: str, *, sources: bool = True) -> None:
    """Draw the rest of an answer after its sentences."""
    if words:
        out.print(text(words, "" if answer.outcome == "answered" else "yellow"))
    if answer.citations and sources:
        out.print()
        draw_citations(out, answer)
    if answer.contradictions:
        out.print()
        for contradiction in answer.contradictions:
            draw_contradiction(out, contradiction)


def draw_citations(out: Console, answer: Answer) -> None:
    """Draw each place once with the numbers that stand for it, and the quotes that the answer does not say itself."""
    said = one_line(answer.answer)
    places: dict[tuple[str, str], list[Citation]] = {}
    for citation in answer.citations:
        head = place(citation.title, citation.section, citation.page)
        places.setdefault((head, one_line(citation.uri)), []).append(citation)
    for (head, uri), citations in places.items():
        numbers = " ".join(f"[{citation.n}]" for citation in citations)
        out.print(text(f"{numbers} ", "cyan").append(head, "bold"))
        _draw_indented(out, uri, "dim")
        for quote in (one_line(citation.quote) for citation in citations):
            if not _is_said(quote, said):
                _draw_indented(out, f"“{quote}”", "italic")


def _is_said(quote: str, answer: str) -> bool:
    """Return whether an answer has a quote, or all cells of it if it is a row of a table."""
    cells = [cell.strip() for cell in quote.strip("|").split("|")] if quote.startswith("|") else [quote]
    return all(cell in answer for cell in cells)


def draw_contradiction(out: Console, contradiction: Contradiction) -> None:
    """Draw a source that contradicts an answer, and the sentence that it contradicts."""
    out.print(
        text("But ", "yellow").append(place(contradiction.title, contradiction.section, contradiction.page), "bold")
    )
    _draw_indented(out, one_line(contradiction.uri), "dim")
    _draw_indented(out, f"“{one_line(contradiction.quote)}”", "italic")
    _draw_indented(out, f"against “{one_line(contradiction.sentence)}”: {contradiction.reason}", "dim")


def _draw_indented(out: Console, words: str, style: str) -> None:
    from rich.padding import Padding

    out.print(Padding(text(words, style), (0, 0, 0, 4), expand=False))

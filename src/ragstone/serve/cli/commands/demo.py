"""`ragstone demo`: a sample corpus, three questions, and one that it cannot answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.commands.ask import draw_answer
from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.render.output import console, pluralize, text
from ragstone.serve.cli.render.progress import ingest_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import Answer
    from ragstone.core.documents import IngestReport
    from ragstone.settings.tree import Settings

KB = "demo"


async def demo(
    session: CliSession,
    shop: Annotated[
        bool,
        typer.Option("--shop", help="Show the customer-service agent of a fictional shop, in a tenant of its own."),
    ] = False,
) -> int:
    """Ingest a small sample corpus and ask it a few questions."""
    if shop:
        from ragstone.serve.cli.agents.shop_demo import play_shop

        return await play_shop(session)
    from ragstone import samples
    from ragstone.ingest.sources.files.read import survey_files
    from ragstone.schemas.installation import DemoSchema

    settings = session.settings(kb=session.options.kb or KB)
    out = None if session.options.json else console()
    corpus = samples.corpus_path()
    async with session.workspace(settings, create=True) as workspace:
        with ingest_progress(session) as progress:
            progress.expect(*survey_files([corpus]))
            report = await workspace.documents.ingest(corpus, on_progress=progress.show)
        if out:
            _draw_start(out, report, settings)
        answers = []
        for question in (*samples.QUESTIONS, samples.UNANSWERABLE):
            async with session.slow_notice(MODEL_WAIT):
                answers.append(await workspace.ask(question))
            if out:
                _draw_question(out, question, answers[-1])
    if out:
        _draw_next(out, replace(session.options, kb=settings.kb))
    else:
        session.show(DemoSchema.of(ingest=report, answers=answers), lambda _: None)
    session.warn([f"{failure.uri}: {failure.error}" for failure in report.failed])
    return FAILURE if report.failed else OK


def _draw_start(out: Console, report: IngestReport, settings: Settings) -> None:
    made = report.added + report.updated
    what = f"Ingested {pluralize(made, 'document')}" if made else "Everything is ingested already"
    out.print(
        f"{what} in {report.seconds:.1f} s: {pluralize(report.documents, 'document')}, "
        f"{pluralize(report.chunks, 'chunk')} in {settings.data_dir}, knowledge base '{settings.kb}'."
    )
    out.print("Every answer below is made of sentences of these documents, on this machine.")


def _draw_question(out: Console, question: str, answer: Answer) -> None:
    out.print()
    out.print(text("? ", "cyan").append(question, "bold"))
    draw_answer(out, answer)


def _draw_next(out: Console, options: Common) -> None:
    out.print()
    out.print(text("What to type next", "bold"))
    for line in (
        f'ragstone search "dogs on the ferry"{options.as_typed()}',
        f'ragstone ask "Who may travel for free?"{options.as_typed()}',
        f"ragstone ingest ~/Documents{replace(options, kb=None).as_typed()}",
    ):
        out.print(f"  {line}", soft_wrap=True)

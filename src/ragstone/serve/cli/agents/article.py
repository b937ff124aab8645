"""`ragstone article`: an article on a topic of the knowledge base, written by agents and checked against it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.agents.articles import GraphName
from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import OK, PARTIAL, Interrupted
from ragstone.serve.cli.render.output import console, pluralize, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from ragstone.core.agents.articles import ArticleRun, WrittenArticle

Topic = Annotated[str | None, typer.Argument(metavar="TOPIC", help="What to write about.", show_default=False)]
Graph = Annotated[
    GraphName | None,
    typer.Option("--graph", help="full checks every sentence (the default); writer only researches, writes and edits."),
]
Resume = Annotated[
    str | None, typer.Option("--resume", metavar="ID", help="Continue a run from where it stopped.", show_default=False)
]


async def article(session: CliSession, topic: Topic = None, graph: Graph = None, resume: Resume = None) -> int:
    """Write an article on a topic of the knowledge base.

    Every sentence of it is checked and cited.
    """
    if (topic is None) == (resume is None) or (resume and graph):
        raise InputError(
            "give a topic or a run to resume", hint="ragstone article TOPIC, or ragstone article --resume ID"
        )
    from ragstone.agents.article.run import require_setup, resume_article
    from ragstone.schemas.agents.articles import ArticleRunSchema

    settings = session.settings()
    if topic is not None:
        require_setup(settings)
    async with session.workspace(settings, warm="search") as workspace:
        run_id = resume or (await workspace.articles.start(topic or "", graph=graph or "full")).id
        session.remark("run", run_id)
        try:
            with _Progress(session) as progress:
                run = await resume_article(workspace, run_id, on_node=progress.show, on_text=progress.on_text)
        except BaseException as error:
            _say_how_to_go_on(session, run_id, error)
            raise
    session.show(ArticleRunSchema.of(run), lambda out: _draw(out, run))
    assert run.article is not None
    _report(session, run.article)
    return PARTIAL if run.article.status == "rejected" else OK


class _Progress:
    """Tells which node is at work and how much it has written, on a terminal while it does, else when it is done."""

    def __init__(self, session: CliSession) -> None:
        self._session = session
        self._status: Status | None = None
        self._node, self._began, self._words = "", 0.0, 0

    def __enter__(self) -> _Progress:
        if self._session.shows_progress:
            self._status = console(stderr=True).status("starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def show(self, node: str, event: str) -> None:
        """Take in that a node has begun, or has done its work."""
        if event == "started":
            self._node, self._began, self._words = node, time.monotonic(), 0
            if self._status:
                self._status.update(node)
        else:
            self._session.remark(node, f"{time.monotonic() - self._began:.1f} s")

    @property
    def on_text(self) -> Callable[[str], None] | None:
        """Return what hears the words of an agent, where somebody watches."""
        return self._count if self._status else None

    def _count(self, text: str) -> None:
        self._words += len(text.split())
        if self._status:
            self._status.update(f"{self._node}: {self._words} words")


def _say_how_to_go_on(session: CliSession, run_id: str, error: BaseException) -> None:
    from asyncio import CancelledError

    hint = session.options.command("article", "--resume", run_id)
    if isinstance(error, CancelledError | KeyboardInterrupt):
        raise Interrupted("what was done is kept", hint) from error
    session.remark("hint", f"go on with: {hint}")


def _draw(out: Console, run: ArticleRun) -> None:
    assert run.article is not None
    out.print(text(run.article.markdown.rstrip("\n")), soft_wrap=True)


def _report(session: CliSession, article: WrittenArticle) -> None:
    """Say how the article came out, and what each node took and cost."""
    session.warn(f"degraded: {note}" for note in article.degraded)
    for vote in article.votes:
        session.remark(vote.vote, f"{vote.member}: {vote.reason}")
    session.remark(
        article.status, f"{pluralize(article.cited, 'sentence')} cited, {pluralize(article.rounds, 'round')}"
    )
    if session.options.quiet or session.options.json:
        return
    turns = Counter(step.node for step in article.steps)
    for node, count in turns.items():
        steps = [step for step in article.steps if step.node == node]
        seconds, usd = sum(step.seconds for step in steps), sum(step.usd for step in steps)
        tokens = sum(step.tokens_read + step.tokens_written for step in steps)
        line = f"  {node:<15}{pluralize(count, 'turn'):>9}{seconds:>9.1f} s{tokens:>9} tokens{usd:>10.4f} USD"
        console(stderr=True).print(text(line, "dim"))

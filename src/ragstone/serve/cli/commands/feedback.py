"""`ragstone feedback`, `ragstone gaps` and `ragstone golden`: votes, missing answers, and queries to measure with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import moment, one_line, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.activity import Gap, GoldenQuery, LoggedSearch, PassageVote
    from ragstone.core.types import Json

Vote = Literal["up", "down", "used"]
Days = Annotated[int | None, typer.Option("--days", min=1, max=3650, help="Only the last N days.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most N.")]
HIT_NUMBER = re.compile("[0-9]{1,3}")
"""The number of a hit; a `chunk_id` is longer."""


async def add_feedback(
    session: CliSession,
    passages: Annotated[
        list[str],
        typer.Argument(
            metavar="NUMBER…",
            help="Hits of the last search by their numbers, or a query and the `chunk_id` of each passage.",
        ),
    ],
    vote: Annotated[Vote, typer.Option("--vote", help="Whether they helped, did not help, or were used.")] = "used",
    voter: Annotated[
        str, typer.Option("--voter", help="Name of the voter; a later vote replaces an earlier one.")
    ] = "",
) -> None:
    """Vote on the passages of a search.

    `ragstone feedback add 2 --vote up` is about the second hit of the last search.
    """
    from ragstone.schemas.activity import NotedVotesSchema

    async with session.workspace() as workspace:
        if all(HIT_NUMBER.fullmatch(word) for word in passages):
            query, chunk_ids = await workspace.feedback.last_passages([int(word) for word in passages])
        elif len(passages) > 1:
            query, *chunk_ids = passages
        else:
            raise InputError(f"{passages[0]!r:.80} names no passage", remedy=Remedy(Action.ADD_FEEDBACK))
        noted = await workspace.feedback.vote(query, chunk_ids, vote, voter=voter)
    said = f"{pluralize(noted, 'passage')} of the search for “{one_line(query)}” noted as {vote}"
    session.show(NotedVotesSchema.of(noted=noted, vote=vote), lambda out: out.print(text(said)))


async def list_feedback(session: CliSession, limit: Most = 100) -> int:
    """Vote on passages and see how search performs.

    Lists the votes, newest first.
    """
    from ragstone.schemas.activity import VoteListSchema

    async with session.workspace() as workspace:
        votes = await workspace.feedback.votes(limit=limit)
    session.show(VoteListSchema.of(feedback=votes), lambda out: _draw_votes(out, votes))
    return OK if votes else NOTHING_FOUND


async def list_searches(
    session: CliSession,
    days: Days = None,
    limit: Most = 100,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed.")] = False,
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="NAME", help="Only those of this conversation.")
    ] = None,
) -> int:
    """List searches, newest first.

    Shows the sources that each asked and what those returned.
    """
    from ragstone.schemas.activity import LoggedSearchesSchema, LoggedSearchSchema

    async with session.workspace() as workspace:
        found = await workspace.feedback.searches(
            days=days, limit=limit, success=False if failed else None, conversation=conversation
        )
        relevance = await workspace.feedback.relevance(found)
    rows = [
        LoggedSearchSchema.of(search, relevance=known, created_at=search.moment)
        for search, known in zip(found, relevance, strict=True)
    ]
    session.show(LoggedSearchesSchema.of(searches=rows), lambda out: _draw_searches(out, found))
    return OK if found else NOTHING_FOUND


async def report_feedback(session: CliSession, days: Days = None) -> None:
    """Report times and quality of the logged searches."""
    from ragstone.schemas.activity import SearchReportSchema

    async with session.workspace() as workspace:
        report = SearchReportSchema.of(await workspace.feedback.report(days=days))
    session.show(report, lambda out: _draw_report(out, report.as_json()))


async def learn_dictionary(
    session: CliSession,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, for `retrieval.dictionary`.")] = Path(
        "learnt.yaml"
    ),
) -> int:
    """Learn synonyms of query words from useful passages."""
    import yaml

    if output.exists():
        raise InputError(f"{output} exists already", hint="name another file with --output")
    async with session.workspace() as workspace:
        terms = await workspace.feedback.learnt_terms()
    if terms:
        output.write_text(yaml.safe_dump(terms, allow_unicode=True), encoding="utf-8")
    written = f"{pluralize(len(terms), 'term')} written to {output}" if terms else "nothing was learnt: vote on more"
    from ragstone.schemas.activity import LearntTermsSchema

    shape = LearntTermsSchema.of(terms=terms, written=str(output) if terms else None)
    session.show(shape, lambda out: out.print(text(written)))
    return OK if terms else NOTHING_FOUND


async def list_gaps(
    session: CliSession,
    days: Days = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most N.")] = 20,
) -> int:
    """List questions without a good result.

    The most frequent come first.
    """
    from ragstone.schemas.activity import GapListSchema

    async with session.workspace() as workspace:
        gaps = await workspace.feedback.gaps(days=days, limit=limit)
    session.show(GapListSchema.of(gaps=gaps), lambda out: _draw_gaps(out, gaps))
    return OK if gaps else NOTHING_FOUND


def _draw_votes(out: Console, votes: list[PassageVote]) -> None:
    if not votes:
        out.print(text(advise("Nobody has voted yet", Remedy(Action.ADD_FEEDBACK))))
        return
    drawn = table("when", "vote", "query", "chunk", "voter")
    for vote in votes:
        drawn.add_row(
            moment(vote.moment), vote.vote, text(one_line(vote.query)), vote.chunk_id, text(one_line(vote.voter))
        )
    out.print(drawn)


def _draw_searches(out: Console, searches: list[LoggedSearch]) -> None:
    if not searches:
        out.print(text("No search is remembered; `activity.searches` says whether any is."))
        return
    drawn = table("when", "query", "asked", "results", "ms", "conversation", "failed", right=["results", "ms"])
    for search in searches:
        drawn.add_row(
            moment(search.moment),
            text(one_line(search.query)),
            ", ".join(search.sources_queried),
            f"{search.total_results:,}",
            f"{search.retrieval_time_ms:,.0f}",
            text(one_line(search.conversation)),
            text(one_line(search.error_message), "red"),
        )
    out.print(drawn)


def _draw_report(out: Console, report: dict[str, Json]) -> None:
    drawn = table("what", "measured", right=["measured"])
    for name, value in report.items():
        shown = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
        drawn.add_row(name, shown)
    out.print(drawn)


def _draw_gaps(out: Console, gaps: list[Gap]) -> None:
    if not gaps:
        out.print(text("No gaps: every recorded search found something."))
        return
    drawn = table("times", "last", "asked for", "missing words", "why", right=["times"])
    for gap in gaps:
        drawn.add_row(
            f"{gap.times:,}",
            moment(gap.last),
            text(" / ".join(one_line(query) for query in gap.queries)),
            text(one_line(" ".join(gap.missing))),
            gap.reason,
        )
    out.print(drawn)


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
    """Make golden queries from the documents.

    The configured LLM writes them; without one they are made from words of the documents.
    """
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
        list[str],
        typer.Argument(metavar="DOCUMENT_ID…", help="Ids of the documents that answer it, as `documents` lists them."),
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

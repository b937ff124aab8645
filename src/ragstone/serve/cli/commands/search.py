"""`ragstone search`: the passages that matter for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.options import (
    Arms,
    Conversation,
    Fusion,
    K,
    ModeOption,
    Strategy,
    Web,
    Where,
    read_where,
)
from ragstone.serve.cli.render.output import one_line, place, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import Hit, SearchResult, Stage

MODEL_WAIT = "preparing the model (the first time takes longer) …"
Query = Annotated[str, typer.Argument(metavar="QUERY", help="The query, in your own words.")]


async def search(
    session: Session,
    query: Query,
    k: K = None,
    mode: ModeOption = None,
    where: Where = None,
    arms: Annotated[
        Arms | None, typer.Option("--arms", help="Search by meaning (dense), by keyword (lexical), or both.")
    ] = None,
    fusion: Annotated[Fusion | None, typer.Option("--fusion", help="How to merge the two lists.")] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", min=0, max=1, help="Drop passages below this score.")
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="Transform the query first, instead of as configured."),
    ] = None,
    web: Web = None,
    conversation: Conversation = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what each stage did.")] = False,
) -> int:
    """Find the passages relevant to a query."""
    from ragstone.core.queries import SearchQuery

    filters = read_where(where)
    settings = session.settings()
    by_meaning = (arms or settings.retrieval.arms) != "lexical"
    async with session.workspace(settings, warm=by_meaning) as workspace, session.patience(MODEL_WAIT):
        asked = SearchQuery(
            query,
            k=k,
            mode=mode,
            where=filters,
            arms=arms,
            fusion=fusion,
            min_score=min_score,
            strategy=strategy,
            web=web,
            conversation=conversation,
        )
        result = await workspace.search(asked)
    from ragstone.schemas.search import SearchSchema

    session.show(SearchSchema.of(result), lambda out: draw_result(out, result, trace=trace))
    session.warn(f"degraded: {note}" for note in result.degraded)
    return OK if result.hits or result.records or result.web else NOTHING_FOUND


def draw_result(out: Console, result: SearchResult, *, trace: bool) -> None:
    """The hits, best first, then rows, then what the web has to say; the stages under them when asked for."""
    from ragstone.core.web import web_hits

    if not (result.hits or result.records or result.web):
        out.print("Nothing was found.")
    for rank, hit in enumerate((*result.hits, *result.records), start=1):
        draw_hit(out, str(rank), hit, result.query)
    pages = web_hits(result.web)
    if pages:
        out.print(text("On the web", "bold"), end="\n\n")
    for rank, hit in enumerate(pages, start=1):
        draw_hit(out, f"w{rank}", hit, result.query)
    if trace:
        draw_trace(out, result.trace, result.took_ms)
        draw_analysis(out, result)


def draw_hit(out: Console, rank: str, hit: Hit, query: str) -> None:
    """Rank, score and place, then the address, then the words around what was looked for."""
    from rich.padding import Padding

    from ragstone.serve.cli.render.snippet import snippet

    head = text(f"{rank:>2}  ", "dim").append(f"{hit.score:.3f}  ", "cyan")
    out.print(head.append(place(hit.title, hit.section, hit.page), "bold"))
    out.print(Padding(text(one_line(hit.uri), "dim"), (0, 0, 0, 4), expand=False))
    short = snippet(hit.text, query, heading=hit.section.rpartition(" > ")[2])
    words = text(short.text)
    for start, end in short.marks:
        words.stylize("bold yellow", start, end)
    out.print(Padding(words, (0, 0, 0, 4), expand=False))
    out.print()


def draw_trace(out: Console, stages: tuple[Stage, ...], took_ms: float) -> None:
    """One row per stage, in the order they ended."""
    rows = table("stage", "ms", "in", "out", "skipped", right=("ms", "in", "out"))
    for stage in stages:
        rows.add_row(stage.stage, f"{stage.ms:.1f}", str(stage.entered), str(stage.left), text(stage.skipped))
    rows.add_row("all", f"{took_ms:.1f}", "", "", "")
    out.print(rows)


def draw_analysis(out: Console, result: SearchResult) -> None:
    """What the query was taken for, where that decided who was asked."""
    if result.analysis is None:
        return
    from ragstone.schemas.search import AnalysisSchema

    for name, value in AnalysisSchema.of(result.analysis).as_json().items():
        shown = ", ".join(value) if isinstance(value, list) else str(value or "")
        if shown:
            out.print(text(f"{name}: ", "dim").append(one_line(shown)))

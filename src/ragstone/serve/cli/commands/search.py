"""`ragstone search`, `ragstone explain` and `ragstone research`: passages for a query or a topic, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragstone.serve.cli.exits import search_code
from ragstone.serve.cli.options import Arms, Conversation, Fusion, K, ModeOption, Strategy, Web, Where, read_where
from ragstone.serve.cli.render.output import one_line, place, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import Finding, Research
    from ragstone.core.search import Explanation, SearchResult, Stage
    from ragstone.core.types import Hit
    from ragstone.engine.workspace import Workspace

MODEL_WAIT = "preparing the model (the first time takes longer) …"
Query = Annotated[str, typer.Argument(metavar="QUERY", help="The query, in your own words.")]


async def search(
    session: CliSession,
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
    min_relevance: Annotated[
        float | None, typer.Option("--min-relevance", min=0, max=1, help="Drop passages less relevant than this.")
    ] = None,
    strategy: Annotated[
        Strategy | None, typer.Option("--strategy", help="Transform the query first, instead of as configured.")
    ] = None,
    web: Web = None,
    conversation: Conversation = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what each stage did.")] = False,
) -> int:
    """Find the passages relevant to a query."""
    from ragstone.core.search import SearchQuery
    from ragstone.query.context import checked_query

    filters = read_where(where)
    checked_query(query, None)  # an empty one is refused before a model is loaded
    settings = session.settings()
    by_meaning = (arms or settings.retrieval.arms) != "lexical"
    async with (
        session.workspace(settings, warm="search" if by_meaning else None) as workspace,
        session.slow_notice(MODEL_WAIT),
    ):
        asked = SearchQuery(
            query,
            k=k,
            mode=mode,
            where=filters,
            arms=arms,
            fusion=fusion,
            min_score=min_score,
            min_relevance=min_relevance,
            strategy=strategy,
            web=web,
            conversation=conversation,
        )
        result = await workspace.search(asked)
        found = result.hits or result.records or result.web
        note = "" if found else await note_empty(workspace)
    from ragstone.schemas.search import SearchSchema

    session.show(SearchSchema.of(result), lambda out: draw_result(out, result, trace=trace))
    if note:
        session.remark("note", note)
    session.warn(f"degraded: {problem}" for problem in result.degraded)
    return search_code(found, result.degraded)


async def note_empty(workspace: Workspace) -> str:
    """Return that the knowledge base is empty, and which others are not; nothing if it holds documents."""
    kbs = workspace.knowledge_bases
    if (await kbs.stats()).documents:
        return ""
    held = {kb.name: (await kbs.stats(kb.name)).documents for kb in await kbs.list()}
    others = [f"'{name}' holds {pluralize(count, 'document')} (--kb {name})" for name, count in held.items() if count]
    return "; ".join([f"knowledge base '{workspace.settings.kb}' holds no documents", *others])


def draw_result(out: Console, result: SearchResult, *, trace: bool) -> None:
    """Draw the hits, best first, then rows, then what the web has to say; the stages under them when asked for."""
    from ragstone.core.search import web_hits

    if not (result.hits or result.records or result.web):
        out.print("Nothing was found in what could be searched." if result.degraded else "Nothing was found.")
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
    """Draw rank, relevance and place, then the address, then the words around what was looked for."""
    from rich.padding import Padding

    from ragstone.serve.cli.render.snippet import snippet

    # Rows of databases and pages of the web have no relevance.
    number = f"score {hit.score:.2f}" if hit.relevance is None else f"relevance {hit.relevance:.2f}"
    head = text(f"{rank:>2}  ", "dim").append(f"{number}  ", "cyan")
    out.print(head.append(place(hit.title, hit.section, hit.page), "bold"))
    out.print(Padding(text(one_line(hit.uri), "dim"), (0, 0, 0, 4), expand=False))
    short = snippet(hit.text, query, heading=hit.section.rpartition(" > ")[2])
    words = text(short.text)
    for start, end in short.marks:
        words.stylize("bold yellow", start, end)
    out.print(Padding(words, (0, 0, 0, 4), expand=False))
    out.print()


def draw_trace(out: Console, stages: tuple[Stage, ...], took_ms: float) -> None:
    """Draw one row per stage, in the order they ended."""
    rows = table("stage", "ms", "in", "out", "skipped", right=("ms", "in", "out"))
    for stage in stages:
        rows.add_row(stage.stage, f"{stage.ms:.1f}", str(stage.entered), str(stage.left), text(stage.skipped))
    rows.add_row("all", f"{took_ms:.1f}", "", "", "")
    out.print(rows)


def draw_analysis(out: Console, result: SearchResult) -> None:
    """Draw what the query was taken for, where that decided which sources were asked."""
    if result.analysis is None:
        return
    from ragstone.schemas.search import AnalysisSchema

    for name, value in AnalysisSchema.of(result.analysis).as_json().items():
        shown = ", ".join(value) if isinstance(value, list) else str(value or "")
        if shown:
            out.print(text(f"{name}: ", "dim").append(one_line(shown)))


SHOWN_APART = ("stage", "rank", "score")


async def explain(
    session: CliSession,
    query: Query,
    document: Annotated[
        str, typer.Option("--document", metavar="ID", help="Id of the document, as `documents` lists it.")
    ],
    k: K = None,
    mode: ModeOption = None,
    where: Where = None,
) -> None:
    """Explain why a query finds a document or does not.

    Shows the document's rank and score at each stage of the search, and the stage at which it was lost.
    """
    filters = read_where(where)
    from ragstone.core.search import SearchQuery
    from ragstone.query.context import checked_query

    asked = SearchQuery(checked_query(query, None), k=k, mode=mode, where=filters)
    async with session.workspace(warm="search") as workspace, session.slow_notice(MODEL_WAIT):
        explanation = await workspace.explain(asked, document)
    from ragstone.schemas.search import ExplanationSchema

    session.show(ExplanationSchema.of(explanation), lambda out: draw_explanation(out, explanation))


def draw_explanation(out: Console, explanation: Explanation) -> None:
    """Draw the verdict in a sentence, then a row per stage."""
    verdict = explanation.reason if explanation.found else f"lost at {explanation.lost_at}"
    reason = "" if explanation.found else f": {explanation.reason}"
    out.print(text(one_line(explanation.title), "bold").append(f" – {verdict}{reason}"))
    out.print()
    rows = table("stage", "rank", "score", "more", right=("rank", "score"))
    for stage in explanation.stages:
        score = stage.get("score")
        rows.add_row(
            text(str(stage["stage"])),
            "–" if stage.get("rank") is None else str(stage["rank"]),
            "" if score is None else f"{score:.3f}",
            text(_more(stage)),
        )
    out.print(rows)


def _more(stage: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key.replace('_', ' ').replace('terms', 'word stems')}: {_as_words(value)}"
        for key, value in stage.items()
        if key not in SHOWN_APART and value not in ([], None)
    )


def _as_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


# The same words as in `ragstone.core`, which costs too much to import for a help page.
Depth = Literal["quick", "medium", "deep"]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, in your own words.")]
DepthOption = Annotated[Depth, typer.Option("--depth", help="Keep 5, 15 or 30 passages.")]
Iterations = Annotated[int, typer.Option("--iterations", min=1, max=5, help="Maximum number of rounds of sub-queries.")]


async def research(
    session: CliSession, topic: Topic, depth: DepthOption = "medium", iterations: Iterations = 1, where: Where = None
) -> int:
    """Collect passages about a topic, grouped by source."""
    filters = read_where(where)
    from ragstone.query.context import checked_query

    checked_query(topic, None, "topic")
    async with session.workspace(warm="search") as workspace, session.slow_notice(MODEL_WAIT):
        found = await workspace.research(topic, depth=depth, iterations=iterations, where=filters)
    from ragstone.schemas.research import ResearchSchema

    session.show(ResearchSchema.of(found), lambda out: draw_research(out, found))
    session.warn(f"degraded: {note}" for note in found.degraded)
    return search_code(found.findings, found.degraded)


def draw_research(out: Console, found: Research) -> None:
    """Draw the findings under their sources, then what was looked for without finding it."""
    if not found.findings:
        where = " in what could be searched" if found.degraded else ""
        out.print(f"Nothing about this topic was found{where}.")
    for source, findings in found.by_source.items():
        out.print(text(source, "bold cyan"))
        for finding in findings:
            draw_finding(out, finding)
    out.print(text(f"{pluralize(len(found.findings), 'passage')} by {len(found.queries)} searches", "dim"))


def draw_finding(out: Console, finding: Finding) -> None:
    """Relevance and place, the address, and the first words."""
    from rich.padding import Padding

    from ragstone.serve.cli.render.snippet import snippet

    hit = finding.hit
    head = text(f"relevance {finding.relevance:.3f}  ", "cyan").append(place(hit.title, hit.section, hit.page), "bold")
    out.print(Padding(head, (0, 0, 0, 2), expand=False))
    out.print(Padding(text(one_line(hit.uri), "dim"), (0, 0, 0, 4), expand=False))
    words = snippet(hit.text, finding.queries[0], heading=hit.section.rpartition(" > ")[2]).text
    out.print(Padding(text(words), (0, 0, 0, 4), expand=False))
    out.print()

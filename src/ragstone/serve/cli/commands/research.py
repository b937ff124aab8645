"""`ragstone research`: what there is about a topic, from several sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.options import Where, read_where
from ragstone.serve.cli.render.output import counted, one_line, place, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import Finding, Research

# The same words as in `ragstone.core`, which costs too much to import for a help page.
Depth = Literal["quick", "medium", "deep"]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, in your own words.")]
DepthOption = Annotated[Depth, typer.Option("--depth", help="Keep 5, 15 or 30 passages.")]
Iterations = Annotated[
    int, typer.Option("--iterations", min=1, max=5, help="Maximum number of rounds of sub-queries.")
]


async def research(
    session: Session,
    topic: Topic,
    depth: DepthOption = "medium",
    iterations: Iterations = 1,
    where: Where = None,
) -> int:
    """Collect passages about a topic, grouped by source."""
    filters = read_where(where)
    async with session.workspace(warm=True) as workspace, session.patience(MODEL_WAIT):
        found = await workspace.research(topic, depth=depth, iterations=iterations, where=filters)
    from ragstone.schemas.research import ResearchSchema

    session.show(ResearchSchema.of(found), lambda out: draw_research(out, found))
    session.warn(f"degraded: {note}" for note in found.degraded)
    return OK if found.findings else NOTHING_FOUND


def draw_research(out: Console, found: Research) -> None:
    """The findings under their sources, then what was looked for without finding it."""
    if not found.findings:
        out.print("Nothing about this topic was found.")
    for source, findings in found.by_source.items():
        out.print(text(source, "bold cyan"))
        for finding in findings:
            draw_finding(out, finding)
    out.print(text(f"{counted(len(found.findings), 'passage')} by {len(found.queries)} searches", "dim"))


def draw_finding(out: Console, finding: Finding) -> None:
    """Relevance and place, the address, and the first words."""
    from rich.padding import Padding

    from ragstone.serve.cli.render.snippet import snippet

    hit = finding.hit
    head = text(f"{finding.relevance:.3f}  ", "cyan").append(place(hit.title, hit.section, hit.page), "bold")
    out.print(Padding(head, (0, 0, 0, 2), expand=False))
    out.print(Padding(text(one_line(hit.uri), "dim"), (0, 0, 0, 4), expand=False))
    words = snippet(hit.text, finding.queries[0], heading=hit.section.rpartition(" > ")[2]).text
    out.print(Padding(text(words), (0, 0, 0, 4), expand=False))
    out.print()

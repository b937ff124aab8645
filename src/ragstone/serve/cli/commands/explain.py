"""`ragstone explain`: why a document was found, or where it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.serve.cli.commands.search import MODEL_WAIT, Query
from ragstone.serve.cli.options import K, ModeOption, Where, read_where
from ragstone.serve.cli.render.output import one_line, table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import Explanation

SHOWN_APART = ("stage", "rank", "score")


async def explain(
    session: Session,
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
    from ragstone.core.queries import SearchQuery

    asked = SearchQuery(query, k=k, mode=mode, where=filters)
    async with session.workspace(warm=True) as workspace, session.patience(MODEL_WAIT):
        explanation = await workspace.explain(asked, document)
    from ragstone.schemas.search import ExplanationSchema

    session.show(ExplanationSchema.of(explanation), lambda out: draw_explanation(out, explanation))


def draw_explanation(out: Console, explanation: Explanation) -> None:
    """The verdict in a sentence, then a row per stage."""
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
        f"{key.replace('_', ' ')}: {' '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in stage.items()
        if key not in SHOWN_APART and value not in ([], None)
    )

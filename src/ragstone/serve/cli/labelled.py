"""Where labelled queries come from: a data set folder, votes, or golden queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.measuring import Measuring
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from ragstone.evaluate.dataset import Dataset

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."),
]
Split = Annotated[str, typer.Option("--split", help="Which judgements to use.")]
FromFeedback = Annotated[
    bool, typer.Option("--from-feedback", help="Use the votes on passages of the knowledge base.")
]
Golden = Annotated[bool, typer.Option("--golden", help="Use the golden queries of the knowledge base.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N queries.")]


async def labelled(
    session: Session, folder: Path | None, split: str, from_feedback: bool, golden: bool, limit: int | None
) -> Measuring:
    """The queries that were asked for, from the one place that was named."""
    from ragstone.evaluate.dataset import load_dataset

    if (folder is not None) + from_feedback + golden != 1:
        raise InputError(
            "name one place with labelled queries",
            hint="a data set folder, or --from-feedback, or --golden",
        )
    dataset = load_dataset(folder, split) if folder else await _kept(session, golden)
    if limit:
        dataset = replace(dataset, queries=dataset.queries[:limit])
    return Measuring(session, dataset, own_kb=folder is None)


async def _kept(session: Session, golden: bool) -> Dataset:
    async with session.engine() as engine:
        kept = await engine.activity.golden_dataset() if golden else await engine.activity.judged()
        kb = engine.settings.kb
    if kept is None:
        raise InputError(
            f"there are no golden queries of knowledge base '{kb}'"
            if golden
            else f"no passage of knowledge base '{kb}' was voted up or used",
            remedy=Remedy(Action.MAKE_GOLDEN if golden else Action.ADD_FEEDBACK),
        )
    return kept

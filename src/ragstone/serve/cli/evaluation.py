"""`ragstone eval`: how good search is on labelled queries."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.labelled import Folder, FromFeedback, Golden, Limit, Split, labelled
from ragstone.serve.cli.measuring import ARMS, MODES, SYSTEMS, Measuring, read_changes
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from ragstone.core.types import IngestReport
    from ragstone.evaluate.report import Comparison, Report
    from ragstone.evaluate.runner import Row
    from ragstone.settings.tree import Settings

READ_DOCUMENTS = 200
"""Documents whose chunks are looked at for whether a person could read them."""


async def evaluate(
    session: Session,
    folder: Folder = None,
    split: Split = "test",
    from_feedback: FromFeedback = False,
    golden: Golden = False,
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems", metavar="NAMES", help=f"Rows to measure, separated by commas: {', '.join(SYSTEMS)}."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="KEY=VALUE",
            help="Also measure with this setting and print the difference; may be repeated, "
            "commas join settings that change together.",
        ),
    ] = None,
    limit: Limit = None,
) -> int:
    """Measure search on labelled queries.

    Quality and time of each way to search, side by side. The documents of a data set are ingested into a
    separate knowledge base, so the first run takes longer.
    """
    from ragstone.evaluate.report import machine
    from ragstone.schemas.evaluation import EvaluationSchema

    measuring = await labelled(session, folder, split, from_feedback, golden, limit)
    changes = {text: read_changes(text) for text in compare or []}
    settings = measuring.settings()
    chosen = chosen_systems(systems, settings, comparing=bool(changes))
    others = {text: measuring.settings(change) for text, change in changes.items()}
    ingested = await measuring.ingest(settings)
    rows = [await measuring.row(settings, name) for name in chosen]
    comparisons = list(_comparisons(rows))
    for text, other in others.items():
        if other.kb != settings.kb:
            await measuring.ingest(other)
        for base in rows[: len(chosen)]:
            rows.append(await measuring.row(other, base.system, f"{base.system}, {text}"))
            comparisons += _against(rows[-1], base)
    report = await _report(measuring, settings, ingested, rows, comparisons)
    failed = ingested.failed if ingested else ()
    session.show(
        EvaluationSchema.of(report, machine=machine(), failed=failed), lambda out: _draw(out, report)
    )
    return PARTIAL if failed else OK


def chosen_systems(names: str | None, settings: Settings, *, comparing: bool = False) -> list[str]:
    """The systems that were asked for, or those that the settings can show."""
    if names is None and comparing:
        return [settings.retrieval.mode]
    if names is None:
        return [*ARMS, *(["reranked"] if settings.reranking.kind != "none" else []), *MODES]
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown or not chosen:
        raise InputError(
            f"--systems: there is no system {unknown[0]!r}" if unknown else "--systems names none",
            hint=f"choose from: {', '.join(SYSTEMS)}",
        )
    if "reranked" in chosen and settings.reranking.kind == "none":
        raise InputError(
            "--systems: 'reranked' needs a reranker", hint="set RAGSTONE_RERANKING__KIND=cross_encoder"
        )
    return chosen


async def _report(
    measuring: Measuring,
    settings: Settings,
    ingested: IngestReport | None,
    rows: list[Row],
    comparisons: list[Comparison],
) -> Report:
    from ragstone.evaluate.report import Report, judgements

    async with measuring.session.engine(settings) as engine:
        stats = await engine.stats()
    figures = await _figures(measuring, settings, ingested, rows) if settings.targets else {}
    reranks = settings.reranking.kind != "none" and any(
        SYSTEMS[row.system].reranks for row in rows if row.system in SYSTEMS
    )
    return Report(
        dataset=measuring.dataset.name,
        documents=ingested.documents if ingested else stats.documents,
        queries=len(measuring.dataset.queries),
        rows=tuple(rows),
        models={"embedding": stats.model or None, "reranker": settings.reranking.model if reranks else None},
        profile=settings.profile,
        comparisons=tuple(comparisons),
        targets=judgements(settings.targets, figures),
    )


async def _figures(
    measuring: Measuring, settings: Settings, ingested: IngestReport | None, rows: list[Row]
) -> Mapping[str, float]:
    """All that was measured, by the names that targets have."""
    import resource

    from ragstone.evaluate.report import figures_of_ingest, figures_of_rows, readable_share

    figures = figures_of_rows(rows, settings.retrieval.mode)
    figures |= figures_of_ingest(ingested) if ingested else {}
    figures["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    async with measuring.session.engine(settings) as engine:
        documents = await engine.documents(limit=READ_DOCUMENTS)
        texts = [one.chunk.text for document in documents for one in await engine.chunks(document.id)]
    readable = readable_share(texts)
    return figures if readable is None else {**figures, "chunks.readable": readable}


def _comparisons(rows: list[Row]) -> tuple[Comparison, ...]:
    """Hybrid against each arm, each mode against the one below it, and every other system against hybrid."""
    from ragstone.evaluate.report import compare

    by_name = {row.system: row for row in rows}
    hybrid = by_name.get("hybrid")
    modes = [by_name[name] for name in MODES if name in by_name]
    steps = [one for lower, higher in pairwise(modes) for one in compare(higher, [lower])]
    if hybrid is None:
        return tuple(steps) or compare(rows[-1], rows[:-1])
    arms = [by_name[name] for name in ("lexical", "dense") if name in by_name]
    others = [row for row in rows if row is not hybrid and row not in arms]
    return (*compare(hybrid, arms), *(one for row in others for one in compare(row, [hybrid])), *steps)


def _against(changed: Row, base: Row) -> tuple[Comparison, ...]:
    from ragstone.evaluate.report import compare

    return compare(changed, [base])


def _draw(out: Console, report: Report) -> None:
    from ragstone.evaluate.report import report_table, target_table

    for drawn in (report_table(report), *([target_table(report)] if report.targets else [])):
        if not out.is_terminal:
            drawn.box = None
        out.print(drawn)

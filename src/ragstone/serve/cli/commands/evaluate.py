"""`ragstone eval` and `ragstone tune`: measure search on labelled queries, and search for better settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.core.errors import InputError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.render.ingest import remarks
from ragstone.serve.cli.render.output import table, text
from ragstone.serve.cli.render.progress import ingest_progress, query_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.documents import IngestReport
    from ragstone.engine.experiments import Experiment
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.report import Report
    from ragstone.evaluate.tune import Tuning
    from ragstone.ingest.work import OnProgress
    from ragstone.serve.cli.render.progress import Advance
    from ragstone.settings.tree import Settings

Folder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv.")
]
Split = Annotated[str, typer.Option("--split", help="Which judgements to use.")]
FromFeedback = Annotated[bool, typer.Option("--from-feedback", help="Use the votes on passages of the knowledge base.")]
Golden = Annotated[bool, typer.Option("--golden", help="Use the golden queries of the knowledge base.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N queries.")]


async def open_experiment(
    session: CliSession, folder: Path | None, split: str, from_feedback: bool, golden: bool, limit: int | None
) -> Experiment:
    """Return an experiment with the labelled queries from the one place that was named."""
    from ragstone.engine.experiments import Experiment
    from ragstone.evaluate.dataset import load_dataset

    if (folder is not None) + from_feedback + golden != 1:
        raise InputError(
            "name one place with labelled queries", hint="a data set folder, or --from-feedback, or --golden"
        )
    dataset = load_dataset(folder, split) if folder else await _load_kept(session, golden)
    if limit:
        dataset = replace(dataset, queries=dataset.queries[:limit])
    uses_own_kb = folder is None
    # A kb that was named is where the documents are wanted.
    place = {} if uses_own_kb or session.options.kb else eval_place(session.settings())
    return Experiment(
        dataset,
        uses_own_kb=uses_own_kb,
        load_settings=lambda changes: session.settings(**place, **changes),
        open_engine=lambda settings: session.engine(settings, create=not uses_own_kb),
        watcher=SessionWatcher(session),
        kb=session.options.kb,
        keeps_kbs=bool(place or session.options.kb),
    )


def eval_place(settings: Settings) -> dict[str, Any]:
    """Return where the documents of data sets are kept for the next run: a folder of the cache for each model.

    Empty for a store on a server and for a tenant with settings of its own: these are measured where they are.
    """
    from ragstone.settings.tree import StoreSettings

    own, plain = settings.store, StoreSettings()
    is_local = (own.ledger, own.vectors, own.lexical) == (plain.ledger, plain.vectors, plain.lexical)
    if not is_local or settings.tenant != "default":
        return {}
    folder = re.sub(r"[^A-Za-z0-9._-]+", "_", settings.embedding.model).lstrip(".")
    return {"data_dir": eval_folder() / folder}


def eval_folder() -> Path:
    """Return the folder of the cache with the documents of data sets."""
    from ragstone.models.weights.artefacts import cache_folder

    return cache_folder() / "eval"


@dataclass(frozen=True, slots=True)
class SessionWatcher:
    """Shows an experiment on the terminal."""

    session: CliSession

    @contextmanager
    def watch_ingest(self, total: int) -> Iterator[OnProgress]:
        """Show how far the documents of a data set are."""
        with ingest_progress(self.session) as progress:
            progress.expect(total)
            yield progress.show

    def watch_queries(self, label: str) -> AbstractContextManager[Advance | None]:
        """Show how many queries a system has answered."""
        return query_progress(self.session, label)

    def report_ingest(self, report: IngestReport) -> None:
        """Warn of what could not be taken in."""
        self.session.warn(remarks(report))
        self.session.warn(f"{failure.uri}: {failure.error}" for failure in report.failed)


async def _load_kept(session: CliSession, golden: bool) -> Dataset:
    async with session.workspace() as workspace:
        kept = await workspace.feedback.golden_dataset() if golden else await workspace.feedback.judged()
        kb = workspace.settings.kb
    if kept is None:
        raise InputError(
            f"there are no golden queries of knowledge base '{kb}'"
            if golden
            else f"no passage of knowledge base '{kb}' was voted up or used",
            remedy=Remedy(Action.MAKE_GOLDEN if golden else Action.ADD_FEEDBACK),
        )
    return kept


ARMS = ("lexical", "dense", "hybrid")
MODES = ("fast", "balanced", "thorough")
SYSTEMS = ("lexical", "dense", "hybrid", "reranked", "fast", "balanced", "thorough")
# The same words as in `ragstone.evaluate`, which costs too much to import for a help page.
VALUES = re.compile(r",(?=[a-z_0-9.]+=)")
"""A comma before the next key, unlike one inside a list."""


async def evaluate(
    session: CliSession,
    folder: Folder = None,
    split: Split = "test",
    from_feedback: FromFeedback = False,
    golden: Golden = False,
    systems: Annotated[
        str | None,
        typer.Option("--systems", metavar="NAMES", help=f"Rows to measure, separated by commas: {', '.join(SYSTEMS)}."),
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

    Quality and time of each way to search, side by side. The documents of a data set are ingested into a folder of
    the cache, not into your data, so the first run takes longer.
    """
    from ragstone.evaluate.report import machine
    from ragstone.schemas.evaluation import EvaluationSchema

    experiment = await open_experiment(session, folder, split, from_feedback, golden, limit)
    changes = {text: read_changes(text) for text in compare or []}
    chosen = chosen_systems(systems, experiment.settings(), comparing=bool(changes))
    async with experiment.clean_up():
        report, ingested = await experiment.run(chosen, changes)
    failed = ingested.failed if ingested else ()
    session.show(EvaluationSchema.of(report, machine=machine(), failed=failed), lambda out: _draw(out, report))
    return PARTIAL if failed else OK


def chosen_systems(names: str | None, settings: Settings, *, comparing: bool = False) -> list[str]:
    """Return the systems that were asked for, or those that the settings can show."""
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
        raise InputError("--systems: 'reranked' needs a reranker", hint="set RAGSTONE_RERANKING__KIND=cross_encoder")
    return chosen


def read_changes(text: str) -> dict[str, Any]:
    """Return `KEY=VALUE[,KEY=VALUE]` as settings; a value is read as it would be in a settings file."""
    import yaml

    changes: dict[str, Any] = {}
    for part in VALUES.split(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{part!r:.80} is not a setting and its value", hint="such as retrieval.fusion=rrf")
        try:
            changes[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"{part!r:.80} has no value that can be read", hint="quote it") from error
    return changes


def _draw(out: Console, report: Report) -> None:
    from ragstone.evaluate.report import report_table, target_table

    for drawn in (report_table(report), *([target_table(report)] if report.targets else [])):
        if not out.is_terminal:
            drawn.box = None
        out.print(drawn)


async def tune(
    session: CliSession,
    folder: Folder = None,
    split: Split = "test",
    from_feedback: FromFeedback = False,
    golden: Golden = False,
    budget_ms: Annotated[
        float | None, typer.Option("--budget-ms", min=1, help="Maximum p95; by default that of the mode.")
    ] = None,
    chunk_sizes: Annotated[
        str | None, typer.Option("--chunk-sizes", metavar="SIZES", help="Also ingest with these sizes: 200,400,800.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Settings file to write, for --config.")] = Path(
        "tuned.yaml"
    ),
    limit: Limit = None,
) -> int:
    """Search for better settings and write them to a file.

    They are chosen by half of the labelled queries and judged by the other half. Settings that are not certainly
    better there, or too slow, are refused: nothing is written.
    """
    from ragstone.evaluate.tune import MODE_MS, knobs_for, settings_file
    from ragstone.evaluate.tune import tune as search
    from ragstone.schemas.evaluation import TuningSchema

    if output.exists():
        raise InputError(f"{output} exists already", hint="name another file with --output")
    experiment = await open_experiment(session, folder, split, from_feedback, golden, limit)
    settings = experiment.settings()
    budget = budget_ms or MODE_MS[settings.retrieval.mode]
    knobs = knobs_for(settings, read_sizes(chunk_sizes))
    async with experiment.clean_up():
        await experiment.ingest(settings)
        tuning = await search(experiment.try_changes, experiment.dataset, knobs, budget)
    if tuning.is_better:
        output.write_text(settings_file(tuning), encoding="utf-8")
    written = str(output) if tuning.is_better else None
    session.show(TuningSchema.of(tuning, written=written), lambda out: _draw_tuning(out, tuning, written))
    return OK if tuning.is_better else FAILURE


def read_sizes(sizes: str | None) -> tuple[int, ...]:
    """Chunk sizes as they were typed after `--chunk-sizes`."""
    parts = [part.strip() for part in (sizes or "").split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) >= 8 for part in parts):
        raise InputError(f"--chunk-sizes {sizes!r:.40} are not sizes", hint="such as --chunk-sizes 200,400")
    return tuple(int(part) for part in parts)


def _draw_tuning(out: Console, tuning: Tuning, written: str | None) -> None:
    drawn = table("settings", "nDCG@10", "p95 ms", "", right=["nDCG@10", "p95 ms"])
    for trial in tuning.trials:
        label = ", ".join(f"{key}={value}" for key, value in trial.changes.items()) or "as set"
        drawn.add_row(
            text(label), f"{trial.score:.3f}", f"{trial.p95_ms:.1f}", "" if trial.within_budget else "over budget"
        )
    out.print(drawn)
    interval = tuning.interval
    out.print(
        text(
            f"on {tuning.held_out} held-out queries: {interval.difference:+.3f} "
            f"({interval.low:+.3f} to {interval.high:+.3f}, {interval.confidence:.0%} confidence)"
        )
    )
    verdict = f"written to {written}" if written else f"{why_not(tuning)}: nothing was written"
    out.print(text(verdict, "green" if written else "yellow"))


def why_not(tuning: Tuning) -> str:
    """Why what was found is not to be used."""
    if not tuning.changes:
        return "no other settings found better than yours"
    if tuning.interval.low <= 0:
        return "the best other settings may be no better than yours on queries they were not chosen by"
    return (
        f"the best other settings find better but too slowly: p95 {tuning.after.latency_ms(95):.0f} ms "
        f"of {tuning.budget_ms:.0f} ms that are allowed (--budget-ms)"
    )

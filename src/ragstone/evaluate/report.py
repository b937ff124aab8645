"""Tables of evaluation results, and targets they are held against."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragstone.core.documents import IngestReport
from ragstone.core.types import Json
from ragstone.evaluate.metrics import Interval, paired_bootstrap
from ragstone.evaluate.runner import SystemScores
from ragstone.settings.targets import Target

if TYPE_CHECKING:
    from rich.table import Table


Verdict = Literal["met", "not met", "alert", "not measured"]
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
READABLE = 0.75
"""Share of letters, digits and blanks that text for people has, and tables of numbers or binary rests do not."""
FEWEST_CHARS = 20


@dataclass(frozen=True, slots=True)
class Judgement:
    """One target and how far it was reached."""

    name: str
    target: Target
    measured: float | None

    @property
    def verdict(self) -> Verdict:
        """In a word or two."""
        if self.measured is None:
            return "not measured"
        if self.target.alarms(self.measured):
            return "alert"
        return "met" if self.target.is_met(self.measured) else "not met"


def judgements(targets: Mapping[str, Target], measured: Mapping[str, float]) -> tuple[Judgement, ...]:
    """Return every target with its figure."""
    return tuple(Judgement(name, target, measured.get(name)) for name, target in targets.items())


def figures_of_rows(rows: Sequence[SystemScores], main: str) -> dict[str, float]:
    """Quality and times by system, such as `fast.p95_ms`; those of the main one also without its name."""
    figures: dict[str, float] = {}
    of_main: dict[str, float] = {}
    for row in rows:
        own = {
            **row.scores,
            **{name: row.latency_ms(percentile) for name, percentile in PERCENTILES.items()},
            **{f"{stage}.p95_ms": row.stage_ms(stage, 95) for stage in row.stages},
        }
        figures |= {f"{row.system}.{name}": value for name, value in own.items()}
        if row.system == main:
            of_main = own
    # A stage and a system may share a name, such as `dense`: then the whole search is meant.
    return {**of_main, **figures}


def figures_of_ingest(report: IngestReport) -> dict[str, float]:
    """Return the figures of an ingest run; few when everything was there already."""
    new, failed = report.added + report.updated, len(report.failed)
    tried = new + report.unchanged + failed
    figures = {"ingest.success": 1 - failed / tried} if tried else {}
    if new:
        of_model = sum(failure.code.startswith("model") for failure in report.failed)
        figures |= {
            "ingest.minutes": report.seconds / 60,
            "ingest.ms_per_document": report.seconds * 1000 / new,
            "embedding.errors": (of_model + report.skipped_chunks) / max(1, of_model + report.chunks),
        }
        if not report.unchanged and report.chunks:
            figures["ingest.minutes_per_10k_chunks"] = report.seconds / 60 * 10_000 / report.chunks
    return figures


def readable_share(texts: Iterable[str]) -> float | None:
    """Share of chunks that a person could read; None when there are none."""
    verdicts = [_is_readable(text) for text in texts]
    return sum(verdicts) / len(verdicts) if verdicts else None


def _is_readable(text: str) -> bool:
    kept = text.strip()
    legible = sum(character.isalnum() or character.isspace() for character in kept)
    return len(kept) >= FEWEST_CHARS and "\ufffd" not in kept and legible >= READABLE * len(kept)


LATENCIES = {"p50_ms": 50, "p95_ms": 95}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference of two systems under one metric."""

    system: str
    against: str
    metric: str
    interval: Interval


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation: the systems, on which data, with which models, on which machine."""

    dataset: str
    documents: int
    queries: int
    rows: tuple[SystemScores, ...]
    models: Mapping[str, str | None]
    profile: str
    comparisons: tuple[Comparison, ...] = ()
    targets: tuple[Judgement, ...] = ()


def compare(system: SystemScores, others: Sequence[SystemScores]) -> tuple[Comparison, ...]:
    """Paired bootstrap intervals of a system against each of the others, under every metric."""
    return tuple(
        Comparison(system.system, other.system, metric, paired_bootstrap(scores, other.per_query[metric]))
        for other in others
        for metric, scores in system.per_query.items()
    )


def machine() -> dict[str, Json]:
    """Return facts about the machine that the times were measured on."""
    return {
        "cores": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "processor": _processor(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def target_table(report: Report) -> Table:
    """Return the profile's targets with what was measured, on how much, and on which machine."""
    from rich.table import Table
    from rich.text import Text

    where = machine()
    caption = (
        f"{report.documents:,} documents, {report.queries:,} queries; "
        f"{where['processor']}, {where['cores']} cores, {where['memory_mb']:,} MB, Python {where['python']}"
    )
    table = Table(title=Text(f"Targets of profile {report.profile}"), caption=Text(caption))
    for name in ("target", "bound", "measured", "verdict"):
        table.add_column(name, justify="right" if name == "measured" else "left")
    for target in report.targets:
        measured = "–" if target.measured is None else f"{target.measured:,.3f}"
        table.add_row(Text(target.name), Text(str(target.target)), measured, target.verdict)
    return table


def report_table(report: Report) -> Table:
    """Return the rows for a terminal, with the nDCG intervals under them."""
    from rich.table import Table
    from rich.text import Text  # unlike plain strings, these do not take a name with [brackets] for markup

    title = f"{report.dataset}: {report.documents:,} documents, {report.queries:,} queries"
    table = Table(title=Text(title), caption=Text(_caption(report)))
    metrics = list(report.rows[0].scores) if report.rows else []
    table.add_column("system")
    for name in (*metrics, *LATENCIES):
        table.add_column(name, justify="right")
    for row in report.rows:
        scores = (f"{row.scores[name]:.3f}" for name in metrics)
        times = (f"{row.latency_ms(percentile):.1f}" for percentile in LATENCIES.values())
        table.add_row(Text(row.system), *scores, *times)
    return table


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caption(report: Report) -> str:
    lines = [
        f"{comparison.system} - {comparison.against}, {comparison.metric}: "
        f"{interval.difference:+.3f} ({interval.low:+.3f} to {interval.high:+.3f}, "
        f"{interval.confidence:.0%} confidence)"
        for comparison in report.comparisons
        if comparison.metric.startswith("ndcg")
        for interval in (comparison.interval,)
    ]
    lines += [f"{row.system} was degraded: {', '.join(row.degraded)}" for row in report.rows if row.degraded]
    return "\n".join(lines)

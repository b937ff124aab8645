"""Targets against what was measured: met, not met, alarming, or not measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import IngestReport, Json
from ragstone.evaluate.runner import Row
from ragstone.settings.targets import Target

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
    """Every target with its figure."""
    return tuple(Judgement(name, target, measured.get(name)) for name, target in targets.items())


def judgement_json(judgement: Judgement) -> dict[str, Json]:
    """The shape in which `ragstone eval --json` prints a target."""
    measured = judgement.measured
    return {
        "target": judgement.name,
        "bound": str(judgement.target),
        "alert": judgement.target.alert,
        "measured": None if measured is None else round(measured, 6),
        "verdict": judgement.verdict,
    }


def figures_of_rows(rows: Sequence[Row], main: str) -> dict[str, float]:
    """Quality and times by system, such as `fast.p95_ms`; those of the main one also without its name."""
    figures: dict[str, float] = {}
    for row in rows:
        own = {
            **row.scores,
            **{name: row.latency_ms(percentile) for name, percentile in PERCENTILES.items()},
            **{f"{stage}.p95_ms": row.stage_ms(stage, 95) for stage in row.stages},
        }
        figures |= {f"{row.system}.{name}": value for name, value in own.items()}
        if row.system == main:
            figures |= own
    return figures


def figures_of_ingest(report: IngestReport) -> dict[str, float]:
    """What taking in the collection says; of a run that found everything there already, next to nothing."""
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

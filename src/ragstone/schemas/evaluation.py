"""Evaluations and tuning: figures are rounded as they are printed."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from ragstone.core.types import Json
from ragstone.schemas.documents import FailureSchema
from ragstone.schemas.schema import Schema


class FiguresSchema(Schema):
    """The scores and the times of one system."""

    ndcg_at_10: float = Field(alias="ndcg@10")
    recall_at_10: float = Field(alias="recall@10")
    recall_at_100: float = Field(alias="recall@100")
    mrr_at_10: float = Field(alias="mrr@10")
    p_at_5: float = Field(alias="p@5")
    hit_at_10: float = Field(alias="hit@10")
    p50_ms: float
    p95_ms: float

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of an evaluated row."""
        scores = {name.replace("@", "_at_"): round(value, 6) for name, value in source.scores.items()}
        times = {f"p{percent}_ms": round(source.latency_ms(percent), 3) for percent in (50, 95)}
        return super().of(source, **scores, **times, **values)


class SystemSchema(Schema):
    """The name of a system."""

    system: str


class EvaluationRowSchema(FiguresSchema, SystemSchema):
    """The figures of a named system, and what it skipped."""

    degraded: list[str]


class ComparedSystemsSchema(Schema):
    """The difference between two systems under one metric."""

    system: str
    against: str
    metric: str
    difference: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a comparison."""
        return super().of(source, **interval_figures(source.interval), **values)


class TargetVerdictSchema(Schema):
    """A target of the profile and how far it was reached."""

    target: str
    bound: str
    alert: float | None
    measured: float | None
    verdict: Literal["met", "not met", "alert", "not measured"]

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a judgement."""
        measured = None if source.measured is None else round(source.measured, 6)
        bound = {"target": source.name, "bound": str(source.target), "alert": source.target.alert}
        return super().of(source, measured=measured, **bound, **values)


class EvaluationSchema(Schema):
    """An evaluation: the systems, on which data, with which models, on which machine."""

    dataset: str
    documents: int
    queries: int
    rows: list[EvaluationRowSchema]
    models: dict[str, str | None]
    profile: str
    comparisons: list[ComparedSystemsSchema] = Field(alias="compare")
    targets: list[TargetVerdictSchema]
    machine: dict[str, Json]
    failed: list[FailureSchema]


class TrialSchema(Schema):
    """Settings that were tried, and what they scored on the training queries."""

    changes: dict[str, Json]
    score: float = Field(alias="ndcg@10")
    p95_ms: float
    within_budget: bool

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a trial."""
        return super().of(source, score=round(source.score, 6), p95_ms=round(source.p95_ms, 3), **values)


class TuningSchema(Schema):
    """The best settings that were found, and whether they are better on held-out queries."""

    dataset: str
    trained_on: int
    held_out: int
    metric: str
    budget_ms: float
    changes: dict[str, Json]
    before: FiguresSchema
    after: FiguresSchema
    difference: float
    low: float
    high: float
    confidence: float
    is_better: bool = Field(alias="better")
    trials: list[TrialSchema]
    written: str | None

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a tuning run."""
        return super().of(source, **interval_figures(source.interval), **values)


def interval_figures(interval: Any) -> dict[str, float]:
    """Return the rounded bounds of a difference."""
    bounds = {name: round(getattr(interval, name), 6) for name in ("difference", "low", "high")}
    return {**bounds, "confidence": interval.confidence}

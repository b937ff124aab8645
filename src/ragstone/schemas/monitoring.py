"""Alerts, and analytics of a tenant."""

from __future__ import annotations

from typing import Literal

from ragstone.schemas.schema import Moment, Schema


class AlertSchema(Schema):
    """A rule that fires or has fired."""

    rule: str
    tenant: str
    """Empty for what concerns the whole service."""
    state: Literal["firing", "resolved"]
    value: float
    threshold: float
    since: Moment
    """The time at which its state began."""
    checked_at: Moment


class AlertListSchema(Schema):
    """Alerts: those that fire first, then the newest."""

    alerts: list[AlertSchema]


class LatencySchema(Schema):
    """Times of searches in milliseconds; null where there were none."""

    searches: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class SourceFiguresSchema(Schema):
    """Searches of one source: how often it was asked, had results, and failed."""

    asked: int
    helpful: int
    failed: int


class AnalyticsSchema(Schema):
    """The activity of a tenant in some days up to now."""

    since: Moment
    searches: int
    failed: int
    nothing: int
    success_rate: float | None
    no_result_rate: float | None
    degraded: int
    latency: LatencySchema
    latency_by_mode: dict[str, LatencySchema]
    embedding_ms: float | None
    sources: dict[str, SourceFiguresSchema]
    judged: int
    quality: dict[str, float]
    documents_completed: int
    documents_failed: int
    queued: int
    cost_month: float
    cost_by_kind: dict[str, float]


class DaySchema(Schema):
    """The searches of one day (UTC)."""

    day: str
    searches: int
    failed: int
    nothing: int
    latency: LatencySchema


class DayListSchema(Schema):
    """Days on which something was searched, oldest first."""

    days: list[DaySchema]

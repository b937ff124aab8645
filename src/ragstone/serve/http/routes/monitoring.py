"""Alerts, and analytics of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ragstone.engine.engine import Engine
from ragstone.schemas.activity import GapListSchema
from ragstone.schemas.monitoring import AlertListSchema, AnalyticsSchema, DayListSchema, DaySchema
from ragstone.serve.http.identity import Admin, Authenticated, KeyedRoute
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import Limit

router = APIRouter(route_class=KeyedRoute, prefix="/v1", tags=["monitoring"], responses=PROBLEMS)
Days = Annotated[int, Query(ge=1, le=3650)]


@router.get("/alerts", response_model=AlertListSchema)
async def list_alerts(request: Request, key: Authenticated) -> Response:
    """List the alerts of the tenant; with a key of the operator those of all tenants and of the service."""
    if "admin" not in key.scopes or key.kbs:
        raise HTTPException(403, "this needs a key with the scope admin for all knowledge bases")
    engine: Engine = request.app.state.engine
    found = await engine.alerts_of(key.tenant) if key.tenant else await engine.alerts()
    return reply(AlertListSchema.of(alerts=found))


@router.get("/analytics", response_model=AnalyticsSchema)
async def show_analytics(workspace: Admin, days: Days = 30, kb: str | None = None) -> Response:
    """Show volumes, times, sources, quality and costs of the last days."""
    return reply(AnalyticsSchema.of(await workspace.analytics.summary(days=days, kb=kb)))


@router.get("/analytics/days", response_model=DayListSchema)
async def list_days(workspace: Admin, days: Days = 30, kb: str | None = None) -> Response:
    """List the volumes and times of each of the last days."""
    found = await workspace.analytics.days(days=days, kb=kb)
    return reply(DayListSchema.of(days=[DaySchema.of(day, day=day.day.isoformat()) for day in found]))


@router.get("/analytics/gaps", response_model=GapListSchema)
async def list_gaps(workspace: Admin, days: Days = 30, limit: Limit = 20, kb: str | None = None) -> Response:
    """List what was asked and not found, the most frequent first."""
    return reply(GapListSchema.of(gaps=await workspace.feedback.gaps(limit=limit, days=days, kb=kb)))

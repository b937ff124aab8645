"""Tenants, for the operator, and health, for everybody."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ragstone.core.errors import NotFoundError
from ragstone.engine.engine import Engine
from ragstone.engine.monitoring.health import Readiness
from ragstone.engine.monitoring.instruments import CONTENT_TYPE
from ragstone.schemas.schema import Schema
from ragstone.schemas.tenants import TenantListSchema, TenantSchema
from ragstone.serve.http.identity import Credentials, KeyedRoute, Operator, authenticate, require_operator
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import TenantBody

router = APIRouter(route_class=KeyedRoute, responses=PROBLEMS)


class HealthSchema(Schema):
    """The state of the service, and of each part that it needs."""

    status: Literal["ok", "degraded", "unavailable"]
    """`degraded` while requests are served with less than is set up."""
    components: dict[str, str]
    """`ok`, or what is wrong with it; `index` is `empty` before the first document."""


@router.get("/healthz", response_model=HealthSchema, tags=["health"])
async def live() -> Response:
    """Say that the process answers."""
    return reply(HealthSchema.of(status="ok", components={}))


@router.get("/readyz", response_model=HealthSchema, tags=["health"], responses={503: {"model": HealthSchema}})
async def ready(request: Request) -> Response:
    """Say whether each part that requests need works now."""
    health = await request.app.state.engine.readiness()
    if worker := request.app.state.worker_state():
        health = Readiness({**health.components, "worker": worker})
    return reply(HealthSchema.of(health), 200 if health.is_ready else 503)


@router.get("/metrics", response_class=PlainTextResponse, tags=["health"])
async def show_metrics(request: Request, credentials: Credentials) -> Response:
    """Show the metrics of the service in the text format of Prometheus, to the operator."""
    engine: Engine = request.app.state.engine
    if not (engine.settings.service.metrics == "loopback" and is_local(request)):
        await require_operator(await authenticate(request, credentials))
    if worker := request.app.state.worker_state():
        engine.metrics.worker_up.set(value=float(worker == "ok"))
    return Response(await engine.measure(), media_type=CONTENT_TYPE)


def is_local(request: Request) -> bool:
    """Return whether a request comes from this machine, and not through a proxy that runs on it."""
    if any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip")) or not request.client:
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False


@router.get("/v1/tenants", response_model=TenantListSchema, tags=["operator"])
async def list_tenants(request: Request, key: Operator) -> Response:
    """List all tenants."""
    return reply(TenantListSchema.of(tenants=await request.app.state.engine.tenants.all()))


@router.post("/v1/tenants", status_code=201, response_model=TenantSchema, tags=["operator"])
async def create_tenant(body: TenantBody, request: Request, key: Operator) -> Response:
    """Create a tenant."""
    return reply(TenantSchema.of(await request.app.state.engine.tenants.create(body.name)), 201)


@router.get("/v1/tenants/{name}", response_model=TenantSchema, tags=["operator"])
async def show_tenant(name: str, request: Request, key: Operator) -> Response:
    """Show a tenant."""
    found = await request.app.state.engine.tenants.get(name)
    if found is None:
        raise NotFoundError(f"there is no tenant '{name:.63}'")
    return reply(TenantSchema.of(found))

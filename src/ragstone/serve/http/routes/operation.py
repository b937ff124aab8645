"""Tenants, for the operator, and health, for everybody."""

from __future__ import annotations

from ipaddress import ip_address

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ragstone.core.errors import NotFoundError, RagstoneError
from ragstone.engine.engine import Engine
from ragstone.engine.instruments import CONTENT_TYPE
from ragstone.schemas.schema import Schema
from ragstone.schemas.tenants import TenantListSchema, TenantSchema
from ragstone.serve.http.identity import Credentials, Operator, authenticate, require_operator
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import TenantBody

router = APIRouter()


class HealthSchema(Schema):
    """The state of the service, and of each part that it needs."""

    status: str
    components: dict[str, str]


@router.get("/healthz", response_model=HealthSchema, tags=["health"])
async def live() -> Response:
    """Say that the process answers."""
    return reply(HealthSchema.of(status="ok", components={}))


@router.get("/readyz", response_model=HealthSchema, tags=["health"], responses={503: {"model": HealthSchema}})
async def ready(request: Request) -> Response:
    """Say whether each part that requests need works now."""
    components = await _check(request.app.state.engine)
    if worker := request.app.state.worker_state():
        components["worker"] = worker
    works = all(state == "ok" for state in components.values())
    return reply(HealthSchema.of(status="ok" if works else "unavailable", components=components), 200 if works else 503)


async def _check(engine: Engine) -> dict[str, str]:
    states = {}
    for name, look in (("ledger", engine.tenants.all), ("embedder", engine.check_embedder)):
        try:
            await look()
            states[name] = "ok"
        except RagstoneError as error:
            states[name] = error.code
    return states


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

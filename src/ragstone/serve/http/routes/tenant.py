"""Usage, audit record and keys of a tenant, and the key of the caller."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.clock import now
from ragstone.core.keys import NewApiKey, read_scopes
from ragstone.schemas.tenants import ApiKeyListSchema, ApiKeySchema, AuditSchema, IssuedKeySchema, UsageSchema
from ragstone.serve.http.identity import Admin, Authenticated, KeyedRoute, Reader, TenantAdmin
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import KeyBody, Limit

router = APIRouter(route_class=KeyedRoute, prefix="/v1", responses=PROBLEMS)


@router.get("/usage", response_model=UsageSchema, tags=["tenant"])
async def show_usage(workspace: Reader) -> Response:
    """Show what the tenant has and has used."""
    return reply(UsageSchema.of(await workspace.usage()))


@router.get("/audit", response_model=AuditSchema, tags=["tenant"])
async def list_audit(workspace: Admin, action: str | None = None, limit: Limit = 100) -> Response:
    """List the audit record of the tenant, newest first."""
    return reply(AuditSchema.of(audit=await workspace.audit.list(action=action, limit=limit)))


@router.get("/key", response_model=ApiKeySchema, tags=["tenant"])
async def show_key(key: Authenticated) -> Response:
    """Show the key that this request came with: its tenant, scopes, knowledge bases and last day."""
    return reply(ApiKeySchema.of(key))


@router.get("/keys", response_model=ApiKeyListSchema, tags=["tenant"])
async def list_keys(workspace: TenantAdmin, request: Request) -> Response:
    """List the API keys of the tenant."""
    return reply(ApiKeyListSchema.of(keys=await request.app.state.engine.keys.all(workspace.tenant)))


@router.post("/keys", status_code=201, response_model=IssuedKeySchema, tags=["tenant"])
async def create_key(body: KeyBody, workspace: TenantAdmin, request: Request) -> Response:
    """Create an API key of the tenant. It is in this answer once and not stored."""
    expires = now() + timedelta(days=body.days) if body.days else None
    wanted = NewApiKey(workspace.tenant, read_scopes(body.scopes), body.name, tuple(body.kbs), expires, body.per_minute)
    return reply(IssuedKeySchema.of_issued(await request.app.state.engine.keys.create(wanted)), 201)


@router.delete("/keys/{key_id}", response_model=ApiKeySchema, tags=["tenant"])
async def revoke_key(key_id: str, workspace: TenantAdmin, request: Request) -> Response:
    """Have an API key of the tenant refused from now on."""
    return reply(ApiKeySchema.of(await request.app.state.engine.keys.revoke(key_id, tenant=workspace.tenant)))


@router.post("/keys/{key_id}/rotate", status_code=201, response_model=IssuedKeySchema, tags=["tenant"])
async def rotate_key(key_id: str, workspace: TenantAdmin, request: Request) -> Response:
    """Create a key with the same rights; the old one is refused after 24 hours."""
    issued = await request.app.state.engine.keys.rotate(key_id, tenant=workspace.tenant)
    return reply(IssuedKeySchema.of_issued(issued), 201)

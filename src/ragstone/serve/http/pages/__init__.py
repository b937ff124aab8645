"""Pages that the service shows to people: they load nothing from elsewhere, so they work without a network."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""A browser loads for these pages only what this service serves itself."""
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
PARTS = (
    "page.css",
    "reference.css",
    "reference.js",
    "ask.css",
    "ask.js",
    "answers.js",
    "documents.js",
    "dom.js",
    "findings.js",
    "service.js",
    "source.js",
)
"""The files that the pages load."""
router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def show_reference() -> Response:
    """Show every route of the service, with a form to try it."""
    return _send("reference.html")


@router.get("/ask")
async def show_questions() -> Response:
    """Let a person ask, search, check and upload."""
    return _send("ask.html")


@router.get("/pages/{name}")
async def show_part(name: str) -> Response:
    """Return a style or a program of the pages."""
    if name not in PARTS:
        raise HTTPException(404)
    return _send(name)


@router.get("/")
async def show_start(request: Request) -> dict[str, str]:
    """Tell a visitor what this is and where to go on."""
    return {
        "service": "ragstone",
        "version": str(request.app.version),
        "ask": "/ask",
        "docs": "/docs",
        "openapi": "/openapi.json",
        "health": "/readyz",
    }


def _send(name: str) -> Response:
    content = (files(__name__) / name).read_bytes()
    media_type = TYPES[name.rpartition(".")[2]]
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Response(content, media_type=f"{media_type}; charset=utf-8", headers=headers)

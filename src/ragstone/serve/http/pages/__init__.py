"""Pages that the service shows to people: they load nothing from elsewhere, so they work without a network."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""A browser loads for these pages only what this service serves itself."""
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def show_reference() -> Response:
    """Show every route of the service, with a form to try it."""
    return _page("reference.html")


@router.get("/docs/reference.css")
async def show_style() -> Response:
    """Return the style of the reference."""
    return _page("reference.css")


@router.get("/docs/reference.js")
async def show_script() -> Response:
    """Return the program of the reference."""
    return _page("reference.js")


@router.get("/")
async def show_start(request: Request) -> dict[str, str]:
    """Tell a visitor what this is and where to go on."""
    return {
        "service": "ragstone",
        "version": str(request.app.version),
        "docs": "/docs",
        "openapi": "/openapi.json",
        "health": "/readyz",
    }


def _page(name: str) -> Response:
    content = (files(__name__) / name).read_bytes()
    media_type = TYPES[name.rpartition(".")[2]]
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Response(content, media_type=f"{media_type}; charset=utf-8", headers=headers)

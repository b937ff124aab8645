"""Complete the OpenAPI document with what middleware does for every route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from ragstone.serve.http.entity_tags import PREFIX
from ragstone.serve.http.idempotency import HEADER

IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Makes the request safe to repeat: for a day, the same one gets the same reply.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"},
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of the version that the caller has.",
    "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
}


def complete_description(app: FastAPI) -> None:
    """Have the document of an application name the headers that all its routes take."""
    describe = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = describe()
            for path, item in document["paths"].items():
                if path.startswith(PREFIX):
                    _complete_item(item)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]


def _complete_item(item: dict[str, Any]) -> None:
    if operation := item.get("post"):
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    if operation := item.get("get"):
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
        operation["responses"]["304"] = {"description": "Nothing has changed."}

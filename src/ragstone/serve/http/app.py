"""The application: routes, errors, the worker in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.routing import Route

import ragstone
from ragstone.agents.article.task import add_article_task
from ragstone.core.errors import RagstoneError, SettingsError
from ragstone.engine.engine import Engine
from ragstone.serve.http import pages
from ragstone.serve.http.entity_tags import PREFIX, EntityTags
from ragstone.serve.http.idempotency import HEADER, IdempotencyKeys
from ragstone.serve.http.identity import KeyRing
from ragstone.serve.http.limits import RequestGuard
from ragstone.serve.http.mcp import McpMount
from ragstone.serve.http.oidc import TokenReader
from ragstone.serve.http.openai import routes as openai
from ragstone.serve.http.problems import handle_problems
from ragstone.serve.http.routes import (
    article,
    designs,
    documents,
    feedback,
    jobs,
    kbs,
    monitoring,
    operation,
    search,
    service,
    shop,
    sources,
    tenant,
)

if TYPE_CHECKING:
    from ragstone.serve.http.tracing import RequestTracing

logger = logging.getLogger(__name__)
MB = 1024 * 1024
RESTART_SECONDS = 5.0
FORM_BYTES = 1 * MB
"""Room for the other fields of an upload."""


def build_app(engine: Engine, *, worker: bool = True) -> FastAPI:
    """Return the service of an engine, which its owner closes; with `worker` it does queued jobs as well."""

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        working = KeptWorker(engine)
        running = asyncio.create_task(working.run()) if worker else None
        watching = asyncio.create_task(engine.keep_watch())
        app.state.worker_state = lambda: working.state if running else ""
        try:
            yield
        finally:
            watching.cancel()
            await mcp.close()
            await app.state.keys.close()
            if running:
                running.cancel()  # what it has claimed is handed back
            await asyncio.gather(*filter(None, (running, watching)), return_exceptions=True)
            if tracing:
                await tracing.close()

    add_article_task(engine)
    tracing = _open_tracing(engine)
    app = FastAPI(
        title="Ragstone",
        version=ragstone.__version__,
        summary="Knowledge for agents, with the source of every sentence.",
        lifespan=live,
        docs_url=None,  # FastAPI's own page loads its program from elsewhere
        redoc_url=None,
    )
    app.state.engine = engine
    oidc = engine.settings.service.oidc
    app.state.keys = KeyRing(engine.keys, tokens=TokenReader(oidc, engine.tenants) if oidc else None)
    handle_problems(app)
    own = (search, documents, kbs, sources, jobs, feedback, tenant, monitoring, operation)
    for part in (*own, article, service, shop, designs, openai, pages):
        app.router.routes.extend(part.router.routes)  # `include_router` would make each of them once more
    mcp = McpMount(engine, app.state.keys)
    app.router.routes.append(Route("/mcp", mcp))
    complete_description(app)
    app.add_middleware(IdempotencyKeys)
    app.add_middleware(EntityTags)
    most_bytes = engine.settings.limits.file_mb * MB + FORM_BYTES
    app.add_middleware(RequestGuard, most_bytes=most_bytes, metrics=engine.metrics, tracing=tracing)
    engine.metrics.build.set(ragstone.__version__, value=1)
    return app


def _open_tracing(engine: Engine) -> RequestTracing | None:
    settings = engine.settings.service.telemetry
    if settings is None:
        return None
    try:
        from ragstone.serve.http.tracing import RequestTracing
    except ImportError as error:
        hint = 'pip install "ragstone[telemetry]"'
        raise SettingsError(f"service.telemetry needs {error.name}, which is not installed", hint=hint) from error
    tracing = RequestTracing(settings)
    engine.metrics.on_search = tracing.add_search
    return tracing


class KeptWorker:
    """A worker that is started again when it ends, such as for want of a model."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.state = "ok"
        """`ok`, or the code of what ended it until it is started again."""

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self._engine.worker().run()
                self.state = "stopped"
            except RagstoneError as error:
                self.state = error.code
                logger.warning("the worker stopped, it is started again in %.0f s: %s", RESTART_SECONDS, error)
            except Exception:
                self.state = "internal"
                logger.exception("the worker failed, it is started again in %.0f s", RESTART_SECONDS)
            await asyncio.sleep(RESTART_SECONDS)
            self.state = "ok"


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

    app.openapi = complete  # type: ignore[method-assign]  # FastAPI is told this way


def _complete_item(item: dict[str, Any]) -> None:
    if operation := item.get("post"):
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    if operation := item.get("get"):
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
        operation["responses"]["304"] = {"description": "Nothing has changed."}

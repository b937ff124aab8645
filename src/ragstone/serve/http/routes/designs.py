"""The routes of the designs: `/ingest`, `/search` and `/health` of a collection, `/knowledge/{kbId}/search`.

The first three answer errors in the shape of their design (`problems.py` has the list), the last one as all others do.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.collections import COLLECTION, BuildRequest
from ragstone.core.errors import RagstoneError
from ragstone.core.keys import ApiKey
from ragstone.core.search import SearchQuery
from ragstone.core.types import Mode
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace
from ragstone.schemas.designs import (
    DesignErrorSchema,
    DocsSearchSchema,
    FoundChunksSchema,
    IngestedSchema,
    ServiceHealthSchema,
)
from ragstone.schemas.knowledge_bases import CorpusBuildSchema
from ragstone.serve.http.identity import Credentials, KeyedRoute, Reader, Writer, authenticate, open_reader
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import CollectionSearchBody, IngestBody, refuse_unknown_model
from ragstone.settings.tree import Settings

logger = logging.getLogger(__name__)
router = APIRouter(route_class=KeyedRoute, tags=["designs"], responses=PROBLEMS)
ERRORS: dict[int | str, dict[str, Any]] = {status: {"model": DesignErrorSchema} for status in ("4XX", "5XX")}
HEALTH_SECONDS = 5.0
"""The time that a store has to say that it is there."""


@router.post("/ingest", response_model=IngestedSchema, responses=ERRORS)
async def ingest(body: IngestBody, workspace: Writer, request: Request) -> Response:
    """Build a collection from a corpus file; the answer comes when it is complete and can be searched."""
    settings = workspace.settings
    refuse_unknown_model("embedding_model", body.embedding_model, settings)
    path = str(settings.ingestion.corpus_path) if body.corpus_path is None else body.corpus_path
    collection = _collection(request, body.collection_name)
    wanted = BuildRequest(path, collection, body.overwrite, body.chunk_size, body.chunk_overlap, body.embedding_model)
    built = await workspace.collections.build(wanted)
    result = CorpusBuildSchema.of(built, embedding_model=_name_of_model(body, settings, built.embedding_model))
    return reply(IngestedSchema.of(status="success", result=result))


@router.post("/search", response_model=FoundChunksSchema, responses=ERRORS)
async def search_collection(body: CollectionSearchBody, workspace: Reader, request: Request) -> Response:
    """Find the chunks of a collection that matter for a query, best first, with the score of each arm."""
    query = body.as_query(_collection(request, body.collection_name))
    return reply(FoundChunksSchema.of_result(await workspace.search(query)))


async def find_reader(request: Request, credentials: Credentials) -> Workspace | None:
    """Return the workspace of a caller that has sent a key of a tenant, None for any other caller."""
    if credentials is None:
        return None
    key = await authenticate(request, credentials)
    return open_reader(request, key) if key.tenant else None


@router.get(
    "/health",
    response_model=ServiceHealthSchema,
    responses={**ERRORS, 503: {"model": ServiceHealthSchema | DesignErrorSchema}},
    openapi_extra={"security": [{}]},  # a key may be left out
)
async def show_health(
    request: Request, workspace: Annotated[Workspace | None, Depends(find_reader)], collection_name: str | None = None
) -> Response:
    """Say whether the store answers and, to a caller with a key, what there is of the collection."""
    is_connected = await _is_connected(request.app.state.engine)
    health = None
    if workspace and is_connected:
        health = await workspace.collections.health(_collection(request, collection_name))
    shape = ServiceHealthSchema.of_state(health, is_connected=is_connected)
    return reply(shape, 200 if is_connected else 503)


@router.get("/knowledge/{kbId}/search", response_model=DocsSearchSchema)
async def search_docs(
    kb: Annotated[str, Path(alias="kbId")],
    q: str,
    workspace: Reader,
    thoroughness: Mode | None = None,
    limit: Annotated[int, Query(ge=1, le=20)] = 5,
) -> Response:
    """Find passages of a knowledge base, as the tool `searchDocs` does."""
    from ragstone.agents.results import docs_answer

    found = await workspace.search(SearchQuery(q, k=limit, mode=thoroughness, kb=kb))
    return reply(DocsSearchSchema.of(docs_answer(found), degraded=list(found.degraded)))


def _collection(request: Request, name: str | None) -> str:
    """Return the collection that is meant: by default the one that the key is limited to, or that of the settings."""
    key: ApiKey = request.state.key
    if name is not None:
        return name
    if len(key.kbs) == 1:
        return key.kbs[0]
    configured: str = request.app.state.engine.settings.kb
    return COLLECTION if configured == Settings.model_fields["kb"].default else configured


def _name_of_model(body: IngestBody, settings: Settings, used: str) -> str:
    """Return the name of the model that was used as the caller or the settings spell it."""
    from ragstone.models.weights.catalogue import canonical_name

    asked = body.embedding_model or settings.embedding.model
    return asked if canonical_name(asked) == used else used


async def _is_connected(engine: Engine) -> bool:
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await engine.check_stores()
    except (RagstoneError, TimeoutError) as error:
        logger.warning("the store does not answer: %s", error)
        return False
    return True

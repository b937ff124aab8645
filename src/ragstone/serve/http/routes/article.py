"""Articles: queued, written by a worker, read when they are done."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ragstone.agents.article.run import require_setup
from ragstone.core.jobs import Job
from ragstone.schemas.agents.articles import ArticleRunListSchema, ArticleRunSchema
from ragstone.schemas.jobs import JobSchema
from ragstone.serve.http.identity import KeyedRoute, Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import ArticleBody, Limit

router = APIRouter(route_class=KeyedRoute, prefix="/v1", tags=["articles"], responses=PROBLEMS)


@router.post("/articles", status_code=202, response_model=JobSchema)
async def write_article(body: ArticleBody, workspace: Writer) -> Response:
    """Queue an article on a topic of the knowledge base.

    The stages of the job are the nodes that are at work; `Location` is where to follow them, `Content-Location` where
    the article will be.
    """
    await asyncio.to_thread(require_setup, workspace.settings)
    return _queued(await workspace.tasks.write_article(body.topic, graph=body.graph, kb=body.kb))


@router.post("/articles/{run_id}/resume", status_code=202, response_model=JobSchema)
async def resume_article(run_id: str, workspace: Writer) -> Response:
    """Queue the rest of an article that was not finished; nothing is done twice."""
    await asyncio.to_thread(require_setup, workspace.settings)
    return _queued(await workspace.tasks.write_article(run_id=run_id))


@router.get("/articles", response_model=ArticleRunListSchema)
async def list_articles(workspace: Reader, limit: Limit = 100, kb: Annotated[str | None, Query()] = None) -> Response:
    """List the runs on a knowledge base, newest first, without their articles."""
    return reply(ArticleRunListSchema.of(runs=await workspace.articles.list(limit=limit, kb=kb)))


@router.get("/articles/{run_id}", response_model=ArticleRunSchema)
async def show_article(run_id: str, workspace: Reader) -> Response:
    """Show a run, with its article once it has completed."""
    return reply(ArticleRunSchema.of(await workspace.articles.get(run_id)))


def _queued(job: Job) -> Response:
    places = {"Location": f"/v1/jobs/{job.id}", "Content-Location": f"/v1/articles/{job.facts['run']}"}
    return reply(JobSchema.of(job), 202, places)

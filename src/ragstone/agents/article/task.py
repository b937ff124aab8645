"""Articles as tasks that workers do in the background."""

from __future__ import annotations

import json
from pathlib import Path

from ragstone.agents.article.run import resume_article
from ragstone.core.jobs import Job, JobProgress
from ragstone.engine.access import TenantScope
from ragstone.engine.engine import Engine
from ragstone.engine.tasks import ARTICLE, Tell
from ragstone.engine.workspace import Workspace
from ragstone.schemas.agents.articles import ArticleRunSchema

STEPS = {
    "research": 5,
    "writer": 15,
    "voice_validate": 30,
    "editor": 35,
    "style_enforce": 50,
    "critic": 60,
    "fact_verify": 70,
    "quality_gate": 95,
}
"""Percent that are done when a node begins."""


def add_article_task(engine: Engine) -> None:
    """Have the workers of an engine write the articles that are queued."""
    engine.add_task(ARTICLE, run_article_task)


async def run_article_task(scope: TenantScope, job: Job, folder: Path, tell: Tell) -> tuple[str, bytes]:
    """Write the article of a job, or go on with it; return what it came to, and the run as JSON."""

    def report(node: str, event: str) -> None:
        if event == "started":
            tell(JobProgress(stage=node, percent=STEPS.get(node, 50)))

    run = await resume_article(Workspace(scope), str(job.facts["run"]), on_node=report)
    assert run.article is not None
    said = f"the article is {run.article.status}: {run.article.cited} cited sentences"
    return said, json.dumps(ArticleRunSchema.of(run).as_json()).encode()

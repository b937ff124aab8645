"""An article by a real model: it completes, every citation resolves, and nothing is said without a source."""

from __future__ import annotations

from pathlib import Path

from bench.live.service import NAME
from ragstone.agents.article.run import write_article
from ragstone.answer.verify.statements import find_statements
from ragstone.core.agents.articles import WrittenArticle
from ragstone.engine.engine import open_engine
from ragstone.engine.workspace import Workspace
from ragstone.samples import corpus_path
from ragstone.settings.load import load_settings

TOPIC = "Travelling with animals on the ferries"
FEWEST_CITED = 5
MOST_TOKENS = 160


async def write(url: str, folder: Path) -> tuple[WrittenArticle, list[str]]:
    """Write an article on the sample corpus; return it, and what is wrong with it."""
    llm = {"model": NAME, "base_url": url, "timeout": 1800.0, "max_tokens": MOST_TOKENS, "retries": 0}
    settings = load_settings(overrides={"data_dir": folder / "data", "llm": llm})
    async with open_engine(settings) as engine:
        workspace = engine.workspace(settings.tenant)
        await workspace.documents.ingest(corpus_path())
        run = await write_article(workspace, TOPIC, on_node=lambda node, event: print(f"{node} {event}", flush=True))
        assert run.article is not None
        return run.article, await _find_faults(workspace, run.article)


async def _find_faults(workspace: Workspace, article: WrittenArticle) -> list[str]:
    """Return the citations that do not resolve and the sentences that stand on none."""
    faults = []
    for citation in article.citations:
        text = await workspace.documents.text(citation.document_id)
        if text[citation.start : citation.end] != citation.quote:
            faults.append(f"citation {citation.n} does not stand in {citation.uri}")
    body = article.markdown.partition("\n## Sources\n")[0]
    faults += [
        f"no citation: {body[sentence.start : sentence.end]}"
        for sentence in find_statements(body).found
        if not body[sentence.end :].lstrip(" ").startswith("[")
    ]
    if article.cited < FEWEST_CITED:
        faults.append(f"{article.cited} sentences are cited, fewer than {FEWEST_CITED}")
    return faults

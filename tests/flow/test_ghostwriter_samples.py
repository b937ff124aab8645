"""The sample calls and validation queries of the article design, on mail and feeds about what they ask for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.agents.toolbox import Toolbox
from ragstone.core.search import SearchQuery
from ragstone.settings.tree import EmbeddingSettings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

TEXTS = {
    "caching": ("gmail", "Anthropic offers prompt caching for Claude. Prompt caching keeps a prefix for five minutes."),
    "context": ("rss", "Claude 4.6 supports a context of 1M tokens. It was announced in February."),
    "tools": ("rss", "LangGraph tools are functions that a node of the graph calls."),
    "agentic": ("gmail", "Agentic RAG with LangGraph lets an agent decide when to retrieve."),
    "vectors": ("gmail", "Vector databases store embeddings and find the nearest ones."),
    "garden": ("rss", "Roses are cut back in March."),
}
QUERIES = {"prompt caching": "caching", "LangGraph tools": "tools", "vector databases": "vectors"}


@pytest.fixture
async def engine(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda chosen: FakeEmbedder(name=chosen.model))
    async with open_engine(Settings(data_dir=data_dir, embedding=EmbeddingSettings(model="old"))) as opened:
        items = [
            Item("files", name, f"{name}.txt", text, title="Note", metadata={"source_type": source})
            for name, (source, text) in TEXTS.items()
        ]
        await workspace_of(opened).documents.ingest_items(items)
        yield opened


async def call(engine: Engine, tool: str, **arguments: str) -> Any:
    return json.loads(await Toolbox(workspace_of(engine), [tool]).call(tool, arguments))


@pytest.mark.req("R-TST-51")
async def test_the_sample_calls_of_the_design(engine: Engine) -> None:
    found = await call(engine, "search_knowledge", query="Anthropic Claude prompt caching")
    assert TEXTS["caching"][1] in found[0]["text"]
    verdict = await call(engine, "verify_claim", claim="Claude 4.6 supports 2M token context")
    assert verdict["status"] not in ("VERIFIED", "LIKELY")
    assert any("1M tokens" in item["text"] for item in verdict["evidence"])
    topic = await call(engine, "research_topic", topic="LangGraph agentic RAG")
    texts = [finding["text"] for source, findings in topic.items() if source != "degraded" for finding in findings]
    assert TEXTS["agentic"][1] in texts[0]


@pytest.mark.req("R-TST-50")
async def test_a_re_embedding_is_validated_by_the_queries_of_the_design(engine: Engine, tmp_path: Path) -> None:
    lines = [json.dumps({"query": query, "relevant": [f"{name}.txt"]}) for query, name in QUERIES.items()]
    (tmp_path / "golden.jsonl").write_text("\n".join(lines))

    async def find() -> dict[str, str]:
        found = {query: await workspace_of(engine).search(SearchQuery(query, k=3)) for query in QUERIES}
        return {query: Path(result.hits[0].uri).stem for query, result in found.items()}

    assert await find() == QUERIES
    report = await workspace_of(engine).embeddings.reembed("new", queries=tmp_path / "golden.jsonl", force=True)
    assert (report.outcome, report.comparison and report.comparison.queries) == ("promoted", 3)
    assert await find() == QUERIES

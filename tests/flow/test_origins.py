"""Where passages are from: the word of their connector, a path or a site; and by which connector they came."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.web import WebDouble, html, json_reply, xml
from tests.unit.ingest.sources.test_git import commit, git

from ragstone import Ragstone
from ragstone.agents.budget import Budget
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import TOOLS
from ragstone.core.types import Item
from ragstone.testing.fakes import FakeEmbedder

FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>The News</title><link>http://news.example/</link>'
    "<item><title>Lighthouse</title><guid>urn:1</guid><description>The lighthouse of the feed.</description></item>"
    "</channel></rss>"
)
STORY = {
    "id": 7,
    "type": "story",
    "title": "Lighthouse",
    "text": "The lighthouse of a story.",
    "by": "pg",
    "time": 1_700_000_000,
    "score": 3,
    "descendants": 0,
}
PAPER = {"source_type": "paper"}
MAIL = (
    b"From 1790@xxx Tue May 05 10:00:00 +0000 2026\nX-GM-THRID: 1790\nX-Gmail-Labels: Inbox\n"
    b"From: anna@harbour.example\nDate: Tue, 5 May 2026 10:00:00 +0000\nSubject: Lighthouse\n\n"
    b"The lighthouse of a letter.\n"
)
SOURCES = {
    "letters": "gmail",
    "news": "The News",
    "stories": "Hacker News",
    "manual": "docs/setup.md",
    "shelf": "shelf/guide.md",
    "site": "127.0.0.1",
    "shop": "shop",
    "files": "lamp.py",
    "upload": "upload.txt",
    "arxiv": "arxiv",
}
"""The `source` of the document of each connector: what it says of it, a path, a site, or its own name."""
QUERY = "lighthouse"


def write_sources(folder: Path, web: WebDouble) -> dict[str, tuple[str, dict[str, Any]]]:
    """Kind and configuration of each connector, by name; each has one document about the lighthouse."""
    (folder / "manual" / "docs").mkdir(parents=True)
    (folder / "manual" / "docs" / "setup.md").write_text("# Setup\n\nThe lighthouse of the repository.")
    git(folder / "manual", "init", "--quiet", "--initial-branch", "main")
    commit(folder / "manual")
    (folder / "shelf").mkdir()
    (folder / "shelf" / "guide.md").write_text("# Guide\n\nThe lighthouse of the guide.")
    (folder / "takeout.mbox").write_bytes(MAIL)
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.execute("CREATE TABLE faq (id INTEGER, answer TEXT)")
        shop.execute("INSERT INTO faq VALUES (1, 'The lighthouse of the database.')")
        shop.commit()
    web.on("/feed", xml(FEED))
    web.on("/topstories.json", json_reply([7]))
    web.on("/item/7.json", json_reply(STORY))
    web.on("/page", html("<html><body><main><h1>Page</h1><p>The lighthouse of the site.</p></main></body></html>"))
    return {
        "letters": ("mbox", {"path": str(folder / "takeout.mbox")}),
        "news": ("feeds", {"urls": [web.url("/feed")]}),
        "stories": ("hacker_news", {"base_url": web.url("/")}),
        "manual": ("git", {"path": str(folder / "manual")}),
        "shelf": ("files", {"path": str(folder / "shelf")}),
        "site": ("web", {"urls": [web.url("/page")]}),
        "shop": ("database", {"database": "shop", "query": "SELECT * FROM faq", "key": "id", "text": "{answer}"}),
    }


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ragstone]:
    """The documents of all connectors, a file of code, an upload and a paper."""
    folder = tmp_path_factory.mktemp("origins")
    options = {"fetch": {"allow": ["127.0.0.1"]}, "databases": {"shop": f"sqlite:///{folder / 'shop.db'}"}}
    with pytest.MonkeyPatch.context() as patch, WebDouble() as web:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        patch.chdir(folder)  # paths are shown from the working folder
        with Ragstone(data_dir=folder / "data", **options) as stone:
            for name, (kind, config) in write_sources(folder, web).items():
                stone.sources.add(kind, name, config)
                stone.sources.sync(name)
            (folder / "lamp.py").write_text('"""The lighthouse of the code."""\n\nLAMP = 1\n')
            stone.ingest(folder / "lamp.py")
            stone.upload(b"The lighthouse of an upload.", "upload.txt")
            stone.ingest_items([Item("arxiv", "1", "1", "The lighthouse of a paper.", metadata=PAPER)])
            stone.work()
            yield stone


def found(stone: Ragstone, **where: Any) -> dict[str, str]:
    """The sources of what a filter finds, by connector."""
    hits = stone.search(QUERY, k=20, where=where).hits
    assert {hit.document_id for hit in hits} == {document.id for document in stone.documents(where=where)}
    return {hit.metadata["connector"]: hit.metadata["source"] for hit in hits}


async def call(stone: Ragstone, tool: str, **arguments: Any) -> Any:
    """The answer of a tool that has not been used before."""
    return json.loads(await Toolbox(stone, tuple(TOOLS), budget=Budget(low_confidence=0)).call(tool, arguments))


@pytest.mark.req("R-ING-46")
def test_a_passage_says_where_it_is_from_and_by_which_connector_it_came(harbour: Ragstone) -> None:
    assert found(harbour) == SOURCES
    for connector, source in SOURCES.items():
        assert found(harbour, source=source) == found(harbour, connector=connector) == {connector: source}


def test_the_name_of_a_connector_that_is_no_source_still_finds_its_documents(harbour: Ragstone) -> None:
    assert found(harbour, source="letters") == {"letters": "gmail"}
    assert found(harbour, source={"in": ["shelf", "gmail"]}) == {"letters": "gmail", "shelf": "shelf/guide.md"}
    others = {name: source for name, source in SOURCES.items() if name not in ("shelf", "letters")}
    assert found(harbour, **{"not": {"source": {"in": ["shelf", "gmail"]}}}) == others
    assert found(harbour, source="nobody") == {}


async def test_tools_name_the_source_and_research_is_grouped_by_it(harbour: Ragstone) -> None:
    passages = await call(harbour, "search_knowledge", query=QUERY, top_k=20)
    assert {passage["source"] for passage in passages} == set(SOURCES.values())
    assert set(await call(harbour, "research_topic", topic=QUERY, depth="deep")) == set(SOURCES.values())
    claim = await call(harbour, "verify_claim", claim="The lighthouse of a letter.")
    assert claim["evidence"][0]["source"] == "gmail"


@pytest.mark.req("R-TOL-02")
@pytest.mark.parametrize(
    ("source_type", "sources"),
    [
        ("emails", {"gmail"}),
        ("papers", {"arxiv"}),
        ("rss", {"The News", "Hacker News"}),
        ("web", {"127.0.0.1"}),
        ("files", {"shelf/guide.md", "lamp.py"}),
        ("docs", {"docs/setup.md", "shelf/guide.md"}),
        ("uploads", {"upload.txt"}),
        ("corpus", set()),
        ("database", {"shop"}),
        ("all", set(SOURCES.values())),
    ],
)
async def test_a_source_type_finds_the_documents_of_its_connectors(
    harbour: Ragstone, source_type: str, sources: set[str]
) -> None:
    passages = await call(harbour, "search_knowledge", query=QUERY, source_type=source_type, top_k=20)
    assert {passage["source"] for passage in passages} == sources

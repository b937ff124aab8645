"""Semantic Scholar's Graph API: GET /paper/search/bulk answers {total, token, data}; the token asks for the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from tests.doubles.web import Reply, Request, json_reply, redirect
from tests.unit.ingest.sources.web_kit import Site, open_site

from ragstone.core.errors import FetchError, SourceError
from ragstone.ingest.sources import papers
from ragstone.ingest.sources.papers import SemanticScholarConfig, SemanticScholarSource

PATH = "/graph/v1/paper/search/bulk"
KEY = "canary-key-91"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as site:
        yield site


def source(site: Site, **options: object) -> SemanticScholarSource:
    config = SemanticScholarConfig(**{"query": "dense retrieval", "base_url": site.url("/graph/v1")} | options)
    return SemanticScholarSource(config, "papers", site.context)


def paper(number: int, **fields: object) -> dict[str, object]:
    return {
        "paperId": f"p{number}",
        "title": f"Paper {number}",
        "abstract": f"We study {number}.",
        "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": None, "name": "Alan Turing"}],
        "citationCount": 12,
        "venue": "SIGIR",
        "year": 2024,
        "publicationDate": "2024-07-14",
        "externalIds": {"DOI": "10.1/x", "CorpusId": 5},
        "url": f"https://www.semanticscholar.org/paper/p{number}",
    } | fields


def paged(request: Request) -> Reply:
    """Three pages of two papers."""
    place = int(request.query.get("token", "t0").removeprefix("t"))
    data = [paper(2 * place), paper(2 * place + 1)]
    return json_reply({"total": 6, "token": f"t{place + 1}" if place < 2 else None, "data": data})


@pytest.mark.req("R-ING-03", "R-ING-47")
async def test_a_paper_is_its_abstract_and_its_facts(site: Site) -> None:
    site.web.on(PATH, json_reply({"total": 1, "token": None, "data": [paper(1)]}))
    run = await site.run(source(site, year="2020-2024", api_key=KEY))
    (item,) = run.items
    assert (item.external_id, item.title, item.content) == ("p1", "Paper 1", "We study 1.")
    assert item.uri == "https://www.semanticscholar.org/paper/p1"
    assert item.metadata == {
        "source_type": "paper",
        "url": "https://www.semanticscholar.org/paper/p1",
        "paper_id": "p1",
        "authors": ["Ada Lovelace", "Alan Turing"],
        "citations": 12,
        "venue": "SIGIR",
        "year": 2024,
        "doi": "10.1/x",
        "published_date": "2024-07-14",
    }
    assert item.modified_at == datetime(2024, 7, 14, tzinfo=UTC)
    (request,) = site.web.requests
    assert request.query["query"] == "dense retrieval"
    assert request.query["year"] == "2020-2024"
    assert {"abstract", "authors", "citationCount", "venue", "year"} <= set(request.query["fields"].split(","))
    assert request.headers["x-api-key"] == KEY


async def test_tokens_lead_from_page_to_page_with_time_between(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert papers.SECONDS == 1.0
    monkeypatch.setattr(papers, "SECONDS", 1000.0)
    site.web.on(PATH, paged)
    run = await site.run(source(site))
    assert run.ids == ["p0", "p1", "p2", "p3", "p4", "p5"]
    assert [request.query.get("token") for request in site.web.requests] == [None, "t1", "t2"]
    assert [round(wait, -3) for wait in site.waits] == [1000, 2000]
    assert run.cursor == {}


async def test_an_interrupted_run_goes_on_at_its_page(site: Site) -> None:
    site.web.on(PATH, paged)
    first = await site.run(source(site))
    resumed = await site.run(source(site), first.pages[0].cursor)
    assert resumed.ids == ["p2", "p3", "p4", "p5"]
    assert (await site.run(source(site), resumed.cursor)).ids == first.ids


async def test_a_token_that_is_too_old_begins_again(site: Site) -> None:
    site.web.on(PATH, Reply(status=400), paged)
    assert len((await site.run(source(site), {"token": "old", "count": 4})).ids) == 6


async def test_no_more_than_wanted_are_read(site: Site) -> None:
    site.web.on(PATH, paged)
    assert (await site.run(source(site, limit=3))).ids == ["p0", "p1", "p2"]
    assert len(site.web.requests) == 2


async def test_a_token_that_stays_the_same_comes_to_an_end(site: Site) -> None:
    site.web.on(PATH, json_reply({"total": 9, "token": "same", "data": [paper(1)]}))
    assert len((await site.run(source(site))).ids) == 2


async def test_a_paper_without_an_abstract_is_found_by_its_authors(site: Site) -> None:
    data = [paper(1, abstract=None), paper(2, abstract=" ", authors=None, venue="", year=None)]
    site.web.on(PATH, json_reply({"data": data}))
    first, second = (await site.run(source(site))).items
    assert first.content == "Ada Lovelace, Alan Turing. SIGIR. 2024"
    assert second.content == "Paper 2"


async def test_a_busy_service_is_waited_for(site: Site) -> None:
    site.web.on(PATH, Reply(status=429, headers={"retry-after": "5"}), Reply(status=503), paged)
    assert len((await site.run(source(site))).ids) == 6
    assert site.waits[:2] == [5.0, 1.0]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=429), FetchError),
        (Reply(status=500), FetchError),
        (Reply(status=403), FetchError),
        (Reply(b'{"data": [', cut=True), FetchError),
        (Reply(b"<html>"), SourceError),
        (json_reply({"message": "no"}), SourceError),
        (json_reply([]), SourceError),
    ],
)
async def test_a_service_that_fails_is_an_error(site: Site, reply: Reply, error: type[Exception]) -> None:
    site.web.on(PATH, reply)
    with pytest.raises(error):
        await site.run(source(site))


@pytest.mark.req("R-SEC-20")
async def test_the_key_is_neither_sent_on_nor_shown(site: Site) -> None:
    async with open_site(allow=("127.0.0.1",)) as other:
        other.web.on("/steal", json_reply({"data": []}))
        site.web.on(PATH, redirect(other.url("/steal")))
        await site.run(source(site, api_key=KEY))
        assert KEY not in other.web.requests[0].headers.values()
    site.web.on(PATH, Reply(status=403))
    with pytest.raises(FetchError) as failed:
        await site.run(source(site, api_key=KEY))
    assert KEY not in f"{failed.value!r} {source(site, api_key=KEY)._config!r}"


async def test_strange_papers_do_no_harm(site: Site) -> None:
    strange = [
        None,
        "x",
        {},
        {"paperId": "a"},
        paper(1, authors="x", citationCount="many", year="MMXX", externalIds=[], publicationDate="soon", venue=None),
    ]
    site.web.on(PATH, json_reply({"data": strange}))
    run = await site.run(source(site))
    assert run.ids == ["p1"]
    assert len(run.failures) == 4
    assert run.items[0].metadata["citations"] == 0
    assert "year" not in run.items[0].metadata


@pytest.mark.parametrize("options", [{"query": ""}, {"query": "x", "year": "20x"}, {"query": "x", "limit": 0}])
def test_wrong_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SemanticScholarConfig(**options)

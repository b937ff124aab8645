"""Documents, rows of a database and a language model's own knowledge in one engine."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.answers import AnswerReady
from ragstone.core.errors import InputError, SettingsError, TenantSuspended
from ragstone.core.search import Question, SearchQuery
from ragstone.query.routing.federation import passages_of, source_kind
from ragstone.schemas.search import SearchSchema
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM
from ragstone.testing.workspaces import workspace_of

GUIDE = Item(
    "files",
    "1",
    "guide.md",
    "Oriental Spice is a perfume with oud. The shop opens at nine. Parking is free. Dogs may come in. "
    "Bread is sold next door. The owner is called Anna.",
    title="Guide",
)
PRODUCTS = {
    "database": "shop",
    "query": "SELECT id, shop, name, price FROM products",
    "key": "id",
    "tenant": "shop",
    "words": "name",
    "text": "The price of {name} is {price} USD.",
    "title": "{name}",
    "about": "product",
}
PRICE = "What is the price of Oriental Spice?"


def settings(data_dir: Path, **more: Any) -> Settings:
    return Settings(
        **{
            "data_dir": data_dir,
            "databases": {"shop": f"sqlite:///{data_dir.parent / 'shop.db'}"},
            "records": {"seconds": 20, "sets": {"products": PRODUCTS}},
            "retrieval": {"routing": "auto"},
        }
        | more
    )


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    with closing(sqlite3.connect(data_dir.parent / "shop.db")) as shop:
        shop.execute("CREATE TABLE products (id, shop, name, price)")
        shop.execute("INSERT INTO products VALUES (1, 'default', 'Oriental Spice', 42)")
        shop.commit()
    async with open_engine(settings(data_dir)) as opened:
        await workspace_of(opened).documents.ingest_items([GUIDE])
        yield opened


@pytest.mark.req("R-QRY-15")
async def test_a_price_is_read_from_the_database_and_cited(engine: Engine) -> None:
    found = await workspace_of(engine).search(PRICE)
    assert [hit.text for hit in found.records] == ["The price of Oriental Spice is 42 USD."]
    assert SearchSchema.of(found).as_json()["analysis"] == {
        "type": "product",
        "entities": ["Oriental Spice"],
        "dates": [],
        "sources": ["documents", "database"],
        "mode": None,
        "reason": "",
    }
    assert SearchSchema.of(found).as_json()["records"][0]["uri"] == "database:shop/products#1"
    answer = await workspace_of(engine).ask(PRICE)
    assert answer.status == "answered"
    assert "database:shop/products#1" in {citation.uri for citation in answer.citations}
    await engine.workspace("globex").documents.ingest_items([GUIDE])
    assert (await engine.workspace("globex").search(PRICE)).records == ()


async def test_a_caller_that_is_limited_to_a_kb_gets_no_rows(engine: Engine) -> None:
    """A row is in no kb, and whatever else is of the whole tenant is refused to such a caller."""
    limited = engine.workspace("default", kbs=["default"])
    found = await limited.search(SearchQuery(PRICE))
    assert found.records == ()
    assert [hit.title for hit in found.hits] == ["Guide"]
    assert found.analysis is not None
    assert "database" not in found.analysis.sources
    assert "database" not in str((await limited.explain(SearchQuery(PRICE), found.hits[0].document_id)).stages)
    assert "42" not in (await limited.ask(Question(PRICE))).answer
    assert "42" not in str((await limited.research("the price of Oriental Spice")).findings)
    assert (await limited.verify("The price of Oriental Spice is 42 USD.")).status == "UNVERIFIED"


async def test_answers_with_and_without_rows_are_kept_apart(engine: Engine) -> None:
    async with open_engine(settings(engine.settings.data_dir, cache={"answers": True})) as keeping:
        everyone, limited = workspace_of(keeping), keeping.workspace("default", kbs=["default"])
        for asked in range(2):
            assert "42" not in (await limited.ask(Question(PRICE))).answer, asked
            assert "42" in (await everyone.ask(Question(PRICE))).answer, asked


@pytest.mark.req("R-TST-32", "R-MOD-20")
async def test_documents_rows_and_the_web_are_searched_together_and_each_is_named(
    engine: Engine, data_dir: Path, tmp_path: Path
) -> None:
    page = {"title": "Perfumes", "url": "https://scent.example/", "snippet": "Oriental Spice has a base of amber."}
    others = [{"title": str(n), "url": f"https://other.example/{n}", "snippet": "A page."} for n in range(5)]
    (tmp_path / "web.json").write_text(json.dumps({"*": [page, *others]}), encoding="utf-8")
    with_web = settings(data_dir, web={"kind": "fixture", "path": tmp_path / "web.json"})
    async with open_engine(with_web) as opened:
        found = await workspace_of(opened).search(SearchQuery(PRICE, web=True))
        answer = await workspace_of(opened).ask(Question("Is Oriental Spice a perfume with a base of amber?", web=True))
    assert [hit.uri for hit in (*found.hits, *found.records)] == ["guide.md", "database:shop/products#1"]
    # The engine knows six pages; three are taken.
    assert [result.url for result in found.web] == ["https://scent.example/", *(other["url"] for other in others[:2])]
    ranked = passages_of(found)
    assert {source_kind(hit) for hit in ranked} == {"documents", "database", "internet"}
    assert source_kind(ranked[0]) == "database"
    assert {"guide.md", "https://scent.example/"} <= {citation.uri for citation in answer.citations}


@pytest.mark.req("R-REL-02")
async def test_without_its_database_the_documents_answer(
    engine: Engine, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data_dir.parent / "shop.db").unlink()
    found = await workspace_of(engine).search(PRICE)
    assert [hit.title for hit in found.hits] == ["Guide"]
    assert found.records == ()
    assert [note.partition(":")[0] for note in found.degraded] == ["database"]
    assert [one for one in caplog.messages if one.startswith("Database unavailable: ")] != []
    assert (await workspace_of(engine).ask("Is Oriental Spice a perfume with oud?")).status == "answered"


@pytest.mark.req("R-QRY-15")
async def test_a_tenant_has_words_of_its_own(engine: Engine) -> None:
    await engine.workspace("acme").documents.ingest_items([GUIDE])
    asked = "tell me about the gift box of the shop"
    before = await engine.workspace("acme").search(asked)
    own = {"retrieval.vocabulary": {"product": ["gift box"]}}
    await engine.tenants.set_settings("acme", own)
    after = await engine.workspace("acme").search(asked)
    assert [one.analysis.type for one in (before, after) if one.analysis] == ["general", "product"]
    await engine.tenants.suspend("acme")
    with pytest.raises(TenantSuspended):
        await engine.workspace("acme").search(PRICE)


@pytest.mark.req("R-QRY-15")
async def test_explain_shows_what_the_query_was_taken_for(engine: Engine) -> None:
    (document,) = await workspace_of(engine).documents.list()
    told = await workspace_of(engine).explain(PRICE, document.id)
    assert told.found
    assert (told.stages[0]["stage"], told.stages[0]["type"]) == ("analyse", "product")
    await engine.tenants.set_settings("default", {"retrieval.routing": "off"})
    assert (await workspace_of(engine).explain(PRICE, document.id)).stages[0]["stage"] != "analyse"


@pytest.mark.req("R-QRY-16")
async def test_compressed_passages_still_prove(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(settings(data_dir, retrieval={"compress": "words"}, records={})) as engine:
        await workspace_of(engine).documents.ingest_items([GUIDE])
        (document,) = await workspace_of(engine).documents.list()
        text = await workspace_of(engine).documents.text(document.id)
        found = await workspace_of(engine).search("When does the shop open?")
        assert [hit.text for hit in found.hits] == ["The shop opens at nine."]
        assert [text[hit.start : hit.end] for hit in found.hits] == ["The shop opens at nine."]
        answer = await workspace_of(engine).ask("When does the shop open?")
        (citation,) = answer.citations
        assert text[citation.start : citation.end] == citation.quote == "The shop opens at nine."
        report = await workspace_of(engine).receipts.check(await workspace_of(engine).receipts.make(answer))
        assert report.holds


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> FakeLLM:
    said = {"confidence": 0.99, "answer": "Water boils at 100 °C."}
    llm = FakeLLM([json.dumps(said)] * 2)
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    return llm


@pytest.mark.req("R-MOD-11")
async def test_nothing_is_looked_up_for_what_an_llm_is_sure_of(
    data_dir: Path, fake_model: FakeEmbedder, sure: FakeLLM
) -> None:
    confident = load_settings(overrides={"profile": "ghostwriter"}, environment={}).answer.confident
    async with open_engine(settings(data_dir, answer={"confident": confident})) as engine:
        await workspace_of(engine).documents.ingest_items([GUIDE])
        asked = len(fake_model.calls)
        answer = await workspace_of(engine).ask("When does water boil?")
        events = [event async for event in workspace_of(engine).stream("When does water boil?")]
        assert (answer.status, answer.citations) == ("without_sources", ())
        assert isinstance(events[-1], AnswerReady)
        assert events[-1].answer == answer
        assert len(fake_model.calls) == asked, "no query was embedded"
        with pytest.raises(InputError):
            await workspace_of(engine).receipts.make(answer)
        # Who names the documents to look at wants them looked at; the fake has no further reply, so it is quoted.
        looked_up = await workspace_of(engine).ask(
            Question("Is Oriental Spice a perfume with oud?", where={"source": "files"})
        )
        assert looked_up.status == "answered"
        assert looked_up.citations[0].uri == "guide.md"


async def test_without_the_setting_an_llm_is_never_asked_that(
    data_dir: Path, fake_model: FakeEmbedder, sure: FakeLLM
) -> None:
    async with open_engine(settings(data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items([GUIDE])
        answer = await workspace_of(engine).ask("Is Oriental Spice a perfume with oud?")
    assert answer.status == "answered"
    assert "confidence" not in sure.requests[0][0].content


def test_rows_of_an_unknown_database_are_refused_at_once(data_dir: Path) -> None:
    with pytest.raises(SettingsError, match="names the database 'shop', which is not there"):
        open_engine(settings(data_dir, databases={}))


@pytest.mark.req("R-QRY-05")
async def test_a_search_that_names_its_transform(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM(["hours when the shop is open"])
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    async with open_engine(settings(data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items([GUIDE])
        found = await workspace_of(engine).search(SearchQuery("hours", strategy="rewrite", arms="lexical"))
        plain = await workspace_of(engine).search(SearchQuery("hours", arms="lexical"))
    assert (found.query, found.rewritten_query) == ("hours", "hours when the shop is open")
    assert [hit.uri for hit in found.hits] == ["guide.md"]
    assert (plain.rewritten_query, plain.hits, len(llm.requests)) == ("hours", (), 1)

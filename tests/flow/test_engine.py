"""The async engine with a fake model: what it does when models fail, settings change and work is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.core.errors import InputError, ModelError, ModelMismatch, NotFoundError, SettingsError, StoreError
from ragstone.core.model_types import Embeddings
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import Question, SearchQuery
from ragstone.core.types import Role
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.settings.retrieval import RerankingSettings
from ragstone.settings.tree import EmbeddingSettings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, FakeReranker
from ragstone.testing.workspaces import workspace_of

LETTERS = [
    Item("letters", "1", "letters/1", "The ferry leaves at nine."),
    Item("letters", "2", "letters/2", "Dogs travel for two crowns."),
]


@pytest.fixture
def settings(data_dir: Path) -> Settings:
    return Settings(data_dir=data_dir)


async def test_opening_an_engine_costs_nothing(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings):
        pass
    assert not settings.data_dir.exists()
    assert fake_model.calls == []


async def test_a_path_that_does_not_exist_makes_no_kb(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings) as engine:
        with pytest.raises(InputError, match="missing does not exist"):
            await workspace_of(engine).documents.ingest("missing")
        assert list(await workspace_of(engine).knowledge_bases.list()) == []


async def test_tenant_and_kb_default_to_the_settings(fake_model: FakeEmbedder, data_dir: Path) -> None:
    async with open_engine(Settings(data_dir=data_dir, tenant="acme", kb="wiki")) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        assert (await engine.workspace("acme").knowledge_bases.stats(kb="wiki")).documents == 2
        assert [kb.name for kb in await workspace_of(engine).knowledge_bases.list()] == ["wiki"]
        with pytest.raises(NotFoundError, match="there is no knowledge base 'default' yet"):
            await engine.workspace("other").search(SearchQuery("ferry", kb="default"))


async def test_a_configured_model_that_changed_is_refused_with_the_way_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ragstone.engine.components.build_embedder", lambda chosen: FakeEmbedder(name=chosen.model.partition("@")[0])
    )
    async with open_engine(settings.model_copy(update={"embedding": EmbeddingSettings(model="old")})) as old:
        await workspace_of(old).documents.ingest_items(LETTERS)
    async with open_engine(settings.model_copy(update={"embedding": EmbeddingSettings(model="new")})) as new:
        with pytest.raises(ModelMismatch) as caught:
            await workspace_of(new).documents.ingest_items(LETTERS)
        assert str(caught.value) == "knowledge base 'default' was built with old@1, not with new@1"
        assert caught.value.remedy == Remedy(Action.REEMBED, model="new", kb="default", current_model="old")
        assert (await workspace_of(new).documents.ingest_items(LETTERS, kb="other")).added == 2


@pytest.mark.req("R-EMB-27")
async def test_a_kb_of_another_model_is_searched_with_that_model(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, FakeEmbedder] = {}

    def build(chosen: EmbeddingSettings) -> FakeEmbedder:
        return made.setdefault(chosen.model, FakeEmbedder(name=chosen.model))

    monkeypatch.setattr("ragstone.engine.components.build_embedder", build)
    async with open_engine(settings.model_copy(update={"embedding": EmbeddingSettings(model="old")})) as old:
        await workspace_of(old).documents.ingest_items(LETTERS)
    made["old"].calls.clear()
    async with open_engine(settings.model_copy(update={"embedding": EmbeddingSettings(model="new")})) as new:
        result = await workspace_of(new).search(SearchQuery("ferry", arms="dense"))
    assert result.degraded == ()
    assert result.hits[0].text == "The ferry leaves at nine."
    assert made["old"].queries == [("ferry",)]
    assert made["new"].calls == []
    assert made["old"].closed
    assert made["new"].closed


@pytest.mark.req("R-EMB-27", "R-REL-10")
async def test_other_weights_under_the_same_name_are_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
    replaced = FakeEmbedder()
    object.__setattr__(replaced.model, "revision", "2")
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: replaced)
    async with open_engine(settings) as engine:
        result = await workspace_of(engine).search("ferry")
    assert result.degraded == ("dense: this index was built with fake@1; fake@2 is what is installed",)
    assert result.hits[0].text == "The ferry leaves at nine."
    assert "dense" not in result.hits[0].scores


@pytest.mark.req("R-EMB-18")
async def test_after_a_fallback_took_over_a_kb_of_the_first_model_goes_on_by_word(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = FakeEmbedder(name="first"), FakeEmbedder(name="second", dimension=32)
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FallbackEmbedder(first, second))
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS[:1])
        first.errors = [ModelError("the model fell over")]
        result = await workspace_of(engine).search("ferry")
        assert result.degraded == ("dense: second@1 answered instead of first@1",)
        assert [hit.text for hit in result.hits] == ["The ferry leaves at nine."]
        report = await workspace_of(engine).documents.ingest_items(LETTERS)
        assert (report.added, report.unchanged) == (1, 1)
        assert report.degraded == ("embedding: second@1 answered, but this index is of first@1",)
        assert (await workspace_of(engine).knowledge_bases.stats()).model == "first@1"
        assert (await workspace_of(engine).search("dogs")).hits[0].text == "Dogs travel for two crowns."


async def test_a_reranker_puts_its_order_on_the_result(
    fake_model: FakeEmbedder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeReranker()
    monkeypatch.setattr("ragstone.engine.components.build_reranker", lambda _: judge)
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        result = await workspace_of(engine).search("two crowns")
    assert [hit.scores["rerank"] for hit in result.hits] == [1.0, 0.0]
    assert judge.closed


async def test_an_llm_answers_from_the_passages(
    fake_model: FakeEmbedder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM(["The ferry leaves at nine. [1]"])
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS[:1])
        answer = await workspace_of(engine).ask("When does the ferry leave?")
        assert answer.status == "answered"
        citation = answer.citations[0]
        text = await workspace_of(engine).documents.text(citation.document_id)
        assert text[citation.start : citation.end] == citation.quote
    assert "The ferry leaves at nine." in llm.requests[0][-1].content
    assert llm.closed


class Gate(FakeEmbedder):
    """Holds the documents back until it is opened; queries go through."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if role == "document":
            self.reached.set()
            await self.open.wait()
        return await super().embed(texts, role)


async def test_an_ingest_that_is_cancelled_leaves_the_engine_usable(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: gate)
    async with open_engine(settings) as engine:
        run = asyncio.create_task(workspace_of(engine).documents.ingest_items(LETTERS))
        await gate.reached.wait()
        assert (await workspace_of(engine).search("ferry")).hits == ()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        gate.open.set()
        assert (await workspace_of(engine).knowledge_bases.stats()).documents == 0
        assert (await workspace_of(engine).documents.ingest_items(LETTERS)).added == 2
        assert (await workspace_of(engine).search("ferry")).hits[0].text == "The ferry leaves at nine."


async def test_twenty_ingests_of_the_same_thing_at_once_make_one_document(
    fake_model: FakeEmbedder, settings: Settings
) -> None:
    async with open_engine(settings) as engine:
        await asyncio.gather(*(workspace_of(engine).documents.ingest_items(LETTERS[:1]) for _ in range(20)))
        assert (await workspace_of(engine).knowledge_bases.stats()).documents == 1
        assert [hit.text for hit in (await workspace_of(engine).search("ferry")).hits] == ["The ferry leaves at nine."]


async def test_searches_run_beside_an_ingest(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        more = [Item("more", str(n), f"more/{n}", f"Notice {n} of the harbour.") for n in range(200)]
        run = asyncio.create_task(workspace_of(engine).documents.ingest_items(more))
        while not run.done():
            result = await workspace_of(engine).search(SearchQuery("ferry", k=1))
            assert result.hits[0].text == "The ferry leaves at nine."
        assert (await run).added == 200


async def test_a_reranker_reads_what_an_answer_quotes(
    fake_model: FakeEmbedder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeReranker()
    monkeypatch.setattr("ragstone.engine.components.build_reranker", lambda _: judge)
    reranking = RerankingSettings(kind="cross_encoder")
    async with open_engine(settings.model_copy(update={"reranking": reranking})) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        judge.calls.clear()
        answer = await workspace_of(engine).ask("When does the ferry leave?")
    assert "The ferry leaves at nine" in answer.answer
    _, (asked, read) = judge.calls  # the first reads passages for the search
    assert asked == "When does the ferry leave?"
    assert "The ferry leaves at nine." in read


async def test_what_fails_to_close_keeps_nothing_else_open(
    fake_model: FakeEmbedder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sticky(FakeReranker):
        async def close(self) -> None:
            raise RuntimeError("stuck")

    monkeypatch.setattr("ragstone.engine.components.build_reranker", lambda _: Sticky())
    engine: Engine = open_engine(settings)
    await workspace_of(engine).documents.ingest_items(LETTERS)
    with pytest.raises(RuntimeError, match="stuck"):
        await engine.close()
    assert fake_model.closed


@pytest.mark.req("R-TEN-16")
async def test_an_empty_tenant_is_not_the_default_one(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        for work in (
            engine.workspace("").search("ferry"),
            engine.workspace("").knowledge_bases.list(),
            engine.workspace("").documents.delete("x"),
        ):
            with pytest.raises(InputError, match="tenant '' is not a valid name"):
                await work
        with pytest.raises(InputError, match="knowledge base '' is not a valid name"):
            await workspace_of(engine).documents.ingest_items(LETTERS, kb="")


async def test_deleting_for_an_unknown_tenant_makes_nothing(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings) as engine:
        assert await engine.workspace("typo").documents.delete("0" * 32) is False
        assert await engine.workspace("typo").knowledge_bases.delete("default") == 0
    assert not settings.data_dir.exists()


async def test_numbers_and_words_out_of_range_are_refused(fake_model: FakeEmbedder, settings: Settings) -> None:
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        for count in (0, -1, 1001):
            with pytest.raises(InputError, match=f"k is {count}; it must be from 1 to 1000"):
                await workspace_of(engine).search(SearchQuery("ferry", k=count))
        with pytest.raises(InputError, match="limit is 0"):
            await workspace_of(engine).documents.list(limit=0)
        with pytest.raises(InputError, match="mode is 'slow'; it must be one of: fast, balanced, thorough"):
            await workspace_of(engine).search(SearchQuery("ferry", mode="slow"))  # type: ignore[arg-type]
        with pytest.raises(InputError, match="fusion is 'sum'"):
            await workspace_of(engine).search(SearchQuery("ferry", fusion="sum"))  # type: ignore[arg-type]


async def test_an_answer_is_made_from_as_many_passages_as_were_asked_for(
    fake_model: FakeEmbedder, settings: Settings
) -> None:
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(LETTERS)
        for question, parts in (
            ("What of the ferry and the dogs?", 1),
            ("When does the ferry leave and do dogs travel for crowns?", 2),
        ):
            answer = await workspace_of(engine).ask(Question(question, k=1))
            assert len({citation.document_id for citation in answer.citations}) <= parts
        assert (await workspace_of(engine).search(SearchQuery("ferry dogs", k=1))).hits


async def test_the_embedded_store_takes_no_address(settings: Settings) -> None:
    chosen = Settings(data_dir=settings.data_dir, store={"vectors": {"kind": "sqlite", "url": "http://127.0.0.1"}})
    with pytest.raises(SettingsError, match=r"store\.vectors\.url means nothing to the sqlite store"):
        open_engine(chosen)


def test_settings_and_keywords_do_not_mix(settings: Settings) -> None:
    with pytest.raises(InputError, match="give Settings or keywords, not both"):
        Ragstone(settings, kb="other")


async def test_a_closed_engine_says_so(fake_model: FakeEmbedder, settings: Settings) -> None:
    engine = open_engine(settings)
    await workspace_of(engine).documents.ingest_items(LETTERS)
    assert (await workspace_of(engine).search("ferry")).hits
    await engine.close()
    for work in (
        workspace_of(engine).search("ferry"),
        workspace_of(engine).search("nine lamps"),
        workspace_of(engine).documents.list(),
        workspace_of(engine).knowledge_bases.list(),
    ):
        with pytest.raises(StoreError, match=r"^the engine is closed$"):
            await work

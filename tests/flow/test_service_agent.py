"""The customer-service agent without a language model: each kind of message, its sources, and what it keeps."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.flow.shop_kit import MASSAGE, NOON, SPICE, TODAY, WEB_QUERY, fill_shop, shop_settings
from tests.stocks import fill_stock

from ragstone import Engine, open_engine
from ragstone.agents.service.agent import ServiceAgent, change_agent, read_agent
from ragstone.agents.service.enrichment import InternetSearch, build_search_query
from ragstone.agents.service.retrieval import ServiceRetriever
from ragstone.agents.service.settings import AgentConfiguration
from ragstone.agents.service.synthesis import ContextSynthesizer
from ragstone.core.agents.replies import CustomerReply, ReplyReady
from ragstone.core.answers import SentenceReady
from ragstone.core.errors import AccessDenied, InputError, QuotaExceeded
from ragstone.core.search import Exchange
from ragstone.core.tenants import Quotas
from ragstone.query.routing.federation import source_kind
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of
from ragstone.websearch.engines import Fixture

WITH_WEB = AgentConfiguration(enable_internet_enrichment=True)
ABOUT = "Tell me about the Oriental Spice perfume"


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_stock(shop_settings(tmp_path_factory.mktemp("stock") / "data"), fill_shop)


@pytest.fixture
async def engine(stock: Path, data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    shutil.copytree(stock, data_dir)
    async with open_engine(shop_settings(data_dir)) as opened:
        yield opened


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The queries that left for the web, and how many results each asked for."""
    sent: list[tuple[str, int]] = []
    search = Fixture.search

    async def record(self: Fixture, query: str, k: int) -> Any:
        sent.append((query, k))
        return await search(self, query, k)

    monkeypatch.setattr(Fixture, "search", record)
    return sent


def agent_of(engine: Engine, configuration: AgentConfiguration | None = None, tenant: str = "default") -> ServiceAgent:
    patient = {"documents": 30.0, "database": 30.0, "internet": 30.0}
    return ServiceAgent(engine.workspace(tenant), configuration, seconds=patient, clock=lambda: NOON)


async def ask(engine: Engine, message: str, configuration: AgentConfiguration | None = None) -> CustomerReply:
    return await agent_of(engine, configuration).reply(message)


@pytest.mark.req("R-CSA-22", "R-CSA-23", "R-CSA-02", "R-CSA-03")
@pytest.mark.parametrize(
    ("message", "sources", "said"),
    [
        ("What is your return policy?", ("documents",), "You can return unopened products within 30 days of purchase"),
        ("How much is Oriental Spice?", ("database",), "Oriental Spice by Maison Rive costs $42, and 12 are in stock"),
        ("Is Citrus Morning in stock?", ("database",), "Citrus Morning costs $29.50 and is out of stock"),
        ("What services do you offer?", ("database",), "Swedish massage costs $60 and takes 60 minutes"),
        ("Do you have candles?", ("database",), "Beeswax Candle costs $9"),
        (
            "When can I book a massage?",
            ("database",),
            "Swedish massage is free on Monday 07 January 2030 at 09:00 and 10:00; on Tuesday 08 January 2030",
        ),
        ("Is there a massage on Sunday?", ("database",), "Swedish massage"),
        ("What candles do you sell?", ("database",), "Beeswax Candle costs $9"),
        ("Wie teuer ist Oriental Spice?", ("database",), "Oriental Spice by Maison Rive costs $42"),
    ],
)
async def test_a_reply_and_its_source(engine: Engine, message: str, sources: tuple[str, ...], said: str) -> None:
    reply = await ask(engine, message)
    assert (reply.status, reply.sources) == ("answered", sources)
    assert said in reply.reply
    assert all(sentence.citations for sentence in reply.sentences)
    by_number = {citation.n: citation for citation in reply.citations}
    for sentence in reply.sentences:
        assert sentence.text == by_number[sentence.citations[0]].quote


@pytest.mark.req("R-CSA-36", "R-CSA-04", "R-CSA-11", "R-ANS-06", "R-CSA-19", "R-CSA-37")
async def test_catalogue_and_internet_are_combined_and_the_shop_is_right(engine: Engine) -> None:
    reply = await ask(engine, ABOUT, WITH_WEB)
    assert reply.sources == ("database", "internet")
    assert reply.reply == (
        "Oriental Spice by Maison Rive costs $42, and 12 are in stock [Source: Product Catalog]. "
        "Warm, sensual notes perfect for evening occasions [Source: Product Catalog]. "
        "Oriental Spice features oud and amber base notes [Source: Internet - FragranceNet]. "
        "Oriental Spice lasts for eight hours [Source: Internet - scents.example]."
    )
    # A page that has another price is not quoted, and is shown.
    assert [(one.quote, one.reason) for one in reply.conflicts] == [
        ("Oriental Spice sells for $55.", "it gives another price")
    ]
    assert reply.enrichment.specifications == (
        "Oriental Spice features oud and amber base notes.",
        "Oriental Spice sells for $55.",
    )


@pytest.mark.req("R-CSA-01")
async def test_all_sources_are_asked_in_the_light_of_earlier_turns(engine: Engine) -> None:
    retriever = ServiceRetriever(workspace_of(engine), WITH_WEB, clock=lambda: NOON)
    found = await retriever.retrieve("How long does it last?", [Exchange(ABOUT, "It is a perfume.")], max_results=1)
    assert (len(found.documents), [one.id for one in found.database.products]) == (1, ["spice"])
    assert found.analysis.sources == ("documents", "database", "internet")
    alone = await retriever.retrieve("How long does it last?")
    assert alone.database.products == ()


@pytest.mark.req("R-TST-29", "R-CSA-18", "R-CSA-20", "R-HYB-33")
async def test_a_context_has_the_shops_own_data_first_and_nothing_that_speaks_against_them(engine: Engine) -> None:
    found = await ServiceRetriever(workspace_of(engine), WITH_WEB, clock=lambda: NOON).retrieve(ABOUT)
    synthesizer = ContextSynthesizer(workspace_of(engine).dialogue)
    context = await synthesizer.synthesize(found, ABOUT)
    kinds = [source_kind(hit) for hit in context.hits]
    assert kinds == sorted(kinds, key=["database", "documents", "internet"].index)
    assert set(kinds) == {"database", "documents", "internet"}
    shown = synthesizer.format_for_llm(context)
    assert shown.startswith('<passage number="1" title="Product Catalog" section="Oriental Spice product details"')
    assert "oud and amber" in shown
    assert "$55" not in shown
    assert [conflict.quote for conflict in context.conflicts] == ["Oriental Spice sells for $55."]


@pytest.mark.req("R-SEC-16", "R-CSA-12", "R-CSA-13", "R-CSA-25")
async def test_only_name_category_and_brand_leave_and_two_of_three_pages_are_used(
    engine: Engine, searched: list[tuple[str, int]]
) -> None:
    secret = f"{ABOUT}, my card number is 4111111111111111"
    await ask(engine, secret, WITH_WEB)
    assert searched == [(WEB_QUERY, 3)]
    found = await ServiceRetriever(workspace_of(engine), WITH_WEB).retrieve_from_internet("?", SPICE)
    assert [result.url for result in found.results] == [
        "https://www.fragrancenet.example/oriental-spice",
        "https://scents.example/1",
    ]
    assert build_search_query("Oriental Spice", "Perfumes", "Maison Rive") == WEB_QUERY
    assert build_search_query("Lamp") == "Lamp specifications features"


@pytest.mark.req("R-CSA-11", "R-CSA-10", "R-CSA-29", "R-TST-49")
async def test_the_web_is_asked_only_where_the_rules_say_so(engine: Engine, searched: list[tuple[str, int]]) -> None:
    await ask(engine, ABOUT)  # not enabled
    await ask(engine, "How much is Oriental Spice?", WITH_WEB)  # the catalogue suffices
    await ask(engine, "What is your return policy?", WITH_WEB)  # about no product
    assert searched == []
    shop = workspace_of(engine).shop
    long = "A lamp of brass with a shade of linen that stands on a table, made by hand in the north of the country."
    await shop.put_product(replace(SPICE, id="lamp", name="Brass Lamp", category="Lamps", brand="", description=long))
    await ask(engine, "Tell me about the Brass Lamp", WITH_WEB)
    assert searched == []
    await ask(engine, "Which bulb socket does the Brass Lamp have?", WITH_WEB)  # not in the catalogue
    await shop.put_product(
        replace(SPICE, id="vase", name="Blue Vase", category="Vases", brand="", description="A vase.")
    )
    await ask(engine, "Tell me about the Blue Vase", WITH_WEB)  # says too little
    assert [query for query, _ in searched] == [
        "Brass Lamp Lamps specifications features",
        "Blue Vase Vases specifications features",
    ]


@pytest.mark.req("R-CSA-15", "R-CSA-16", "R-CSA-17")
async def test_pages_are_kept_until_the_product_changes(
    engine: Engine, searched: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    internet, shop = InternetSearch(workspace_of(engine).dialogue), workspace_of(engine).shop
    product = await shop.product("spice")
    long_ago = replace(product, updated_at=product.updated_at.replace(year=2020))
    assert not await internet.is_cached(WEB_QUERY)
    first = await internet.find_pages(long_ago, 2)
    assert await internet.is_cached(WEB_QUERY)
    assert [result.title for result in await internet.get_cached_results(WEB_QUERY) or ()][1:] == [
        "A review",
        "Bottles",
    ]
    again = await internet.find_pages(long_ago, 2)
    assert (first.cached, again.cached, len(searched)) == (False, True, 1)
    changed = replace(product, updated_at=product.updated_at.replace(year=2099))
    assert not (await internet.find_pages(changed, 2)).cached
    assert len(searched) == 2
    web = engine._components.web
    assert web is not None
    assert web.hit_rate == pytest.approx(1 / 3)


@pytest.mark.req("R-CSA-08", "R-TST-44")
async def test_free_times_change_with_a_booking(engine: Engine) -> None:
    before = await ask(engine, "When can I book a massage tomorrow?")
    assert before.reply.startswith("Swedish massage is free on Tuesday 08 January 2030 at 09:00 and 10:00 [")
    shop = workspace_of(engine).shop
    slots = await shop.free_slots("massage", TODAY.replace(day=8), TODAY.replace(day=8))
    await shop.book("massage", slots[0].starts_at, "Ada")
    after = await ask(engine, "When can I book a massage tomorrow?")
    assert after.reply.startswith("Swedish massage is free on Tuesday 08 January 2030 at 10:00 [")
    await shop.book("massage", slots[1].starts_at, "Ben")
    full = await ask(engine, "When can I book a massage tomorrow?")
    assert full.reply.startswith("Swedish massage has no free time on Tuesday, 08 January 2030 [")


@pytest.mark.req("R-CSA-08")
@pytest.mark.parametrize(
    ("asked_at", "message", "in_california", "in_auckland"),
    [
        ("2030-01-08T02:00Z", "Any massage slots today?", "Monday{} 07", "Tuesday{} 08"),
        ("2030-01-07T21:00Z", "Any massage slots tomorrow?", "Tuesday{} 08", "Wednesday{} 09"),
        ("2030-01-08T02:00Z", "Any massage slots on 2030-01-09?", "Wednesday{} 09", "Wednesday{} 09"),
    ],
)
async def test_days_are_those_of_each_service(
    engine: Engine, asked_at: str, message: str, in_california: str, in_auckland: str
) -> None:
    shop = workspace_of(engine).shop
    here = replace(MASSAGE, timezone="America/Los_Angeles")
    there = replace(MASSAGE, id="harbour", name="Harbour massage", timezone="Pacific/Auckland")
    await shop.put_services([here, there])
    agent = agent_of(engine)
    agent.clock = lambda: datetime.fromisoformat(asked_at)
    said = (await agent.reply(message)).reply
    assert f"Swedish massage is free on {in_california.format('')} January 2030 at 09:00 and 10:00 [" in said
    assert f"Harbour massage is free on {in_auckland.format('')} January 2030 at 09:00 and 10:00 [" in said
    await shop.put_services([replace(here, windows=()), replace(there, windows=())])
    said = (await agent.reply(message)).reply
    assert f"Swedish massage has no free time on {in_california.format(',')} January 2030 [" in said
    assert f"Harbour massage has no free time on {in_auckland.format(',')} January 2030 [" in said


@pytest.mark.req("R-CSA-06", "R-CSA-07")
async def test_rows_are_those_of_now(engine: Engine) -> None:
    shop = workspace_of(engine).shop
    (found,) = await shop.get_product_context("Oriental Spice", 1)
    assert (found.product.price, found.product.stock) == (SPICE.price, 12)
    await shop.put_product(replace(SPICE, price=Decimal("39.5"), stock=1))
    (found,) = await shop.get_product_context("Oriental Spice", 1)
    assert (found.product.price, found.product.stock) == (Decimal("39.5"), 1)
    assert "costs $39.50, and 1 is in stock" in (await ask(engine, "How much is Oriental Spice?")).reply
    (offered,) = await shop.get_service_context("Swedish massage", 1)
    assert offered.service.windows == MASSAGE.windows


@pytest.mark.req("R-CSA-40")
async def test_what_the_agent_must_not_do_is_declined(engine: Engine) -> None:
    configuration = AgentConfiguration(agent_cannot_do="Do not give medical advice.")
    declined = await ask(engine, "I need medical advice, which perfume is good for my rash?", configuration)
    assert (declined.status, declined.sources, declined.citations) == ("declined", (), ())
    assert declined.reply == "I am sorry, I cannot help with that. I have passed your question on to our team."
    assert (await ask(engine, "How much is Oriental Spice?", configuration)).status == "answered"
    (notice,) = await workspace_of(engine).jobs.notices()
    assert (notice.uri, notice.message) == (
        f"conversation:{declined.conversation}",
        "A customer asked for what the agent must not do.",
    )


async def test_a_message_that_asks_for_two_things_gets_both(engine: Engine) -> None:
    both = await ask(engine, "How much is Oriental Spice and what is your return policy?")
    assert "Oriental Spice by Maison Rive costs $42" in both.reply
    assert "You can return unopened products within 30 days of purchase" in both.reply
    assert both.sources == ("documents", "database")
    compared = await ask(engine, "What is the difference between Oriental Spice and Citrus Morning?")
    assert "Warm, sensual notes" in compared.reply
    assert "Lemon and bergamot" in compared.reply


async def test_what_the_agent_does_not_know_goes_to_a_person(engine: Engine) -> None:
    own = AgentConfiguration(handover_message="We will call you back.")
    first = await ask(engine, "How many moons has Mars?", own)
    assert (first.status, first.reply) == ("handed_over", "I do not have an answer to that. We will call you back.")
    await agent_of(engine).reply("How many moons has Saturn?", first.conversation)
    assert len(await workspace_of(engine).jobs.notices()) == 1, "one notice an hour for a conversation"


@pytest.mark.req("R-CSA-32", "R-DOM-22", "R-DOM-23")
async def test_every_retrieval_is_in_the_log(engine: Engine) -> None:
    reply = await ask(engine, ABOUT, WITH_WEB)
    await agent_of(engine).reply("Hi!", reply.conversation)
    talk, logged = await workspace_of(engine).feedback.searches(conversation=reply.conversation)
    assert (talk.query, talk.sources_queried) == ("Hi!", ())
    assert (logged.query, logged.query_type, logged.success) == (ABOUT, "product", True)
    assert logged.sources_queried == ("documents", "database", "internet")
    assert (logged.database_results_count, logged.internet_results_count) == (1, 2)
    assert logged.document_results_count > 0
    assert (await workspace_of(engine).analytics.summary()).sources["internet"].asked == 1
    assert {one.action for one in await workspace_of(engine).audit.list(limit=5)} >= {"chat", "web"}


@pytest.mark.req("R-CSA-29")
async def test_switched_off_sources_are_neither_asked_nor_logged(engine: Engine) -> None:
    reply = await ask(engine, "How much is Oriental Spice?", AgentConfiguration(enable_document_retrieval=False))
    (logged,) = await workspace_of(engine).feedback.searches(conversation=reply.conversation)
    assert (logged.sources_queried, logged.document_results_count) == (("database",), 0)
    reply = await ask(engine, "How much is Oriental Spice?", AgentConfiguration(enable_database_retrieval=False))
    assert "$42" not in reply.reply
    (logged,) = await workspace_of(engine).feedback.searches(conversation=reply.conversation)
    assert logged.sources_queried == ("documents",)


@pytest.mark.req("R-DOM-37", "R-CSA-21")
async def test_a_conversation_goes_on(engine: Engine) -> None:
    agent = agent_of(engine)
    first = await agent.reply(ABOUT)
    second = await agent.reply("How much is it?", first.conversation)
    assert second.reply.startswith("Oriental Spice by Maison Rive costs $42")
    turns = await workspace_of(engine).conversations.turns(first.conversation)
    assert [(turn.question, turn.answer) for turn in turns] == [(ABOUT, first.reply), ("How much is it?", second.reply)]
    forgetful = agent_of(engine, AgentConfiguration(history_turns=0))
    assert "$42" not in (await forgetful.reply("How much is it?", first.conversation)).reply
    assert await workspace_of(engine).conversations.forget(first.conversation) == 3


async def test_a_reply_comes_sentence_by_sentence(engine: Engine) -> None:
    events = [event async for event in agent_of(engine).stream(ABOUT)]
    assert isinstance(events[-1], ReplyReady)
    sentences = [event.text for event in events if isinstance(event, SentenceReady)]
    assert len(sentences) == 2
    assert " ".join(sentences) == events[-1].reply.reply


@pytest.mark.req("R-DOM-26", "R-CLI-36")
async def test_the_configuration_is_kept_for_each_tenant_and_rolled_out(engine: Engine) -> None:
    own = workspace_of(engine)
    assert await read_agent(own) == AgentConfiguration()
    await change_agent(own, {"citation_style": "endnote", "max_document_results": "4"})
    assert await read_agent(own) == AgentConfiguration(citation_style="endnote", max_document_results=4)
    assert await read_agent(engine.workspace("other")) == AgentConfiguration()
    with pytest.raises(InputError, match="max_document_results"):
        await change_agent(own, {"max_document_results": 0})
    assert "\n\nSources:\n1. Product Catalog - Oriental Spice product details" in (await ask(engine, ABOUT)).reply
    await engine.tenants.set_settings("default", {"flags.service_agent": False})
    with pytest.raises(AccessDenied):
        await ask(engine, ABOUT)


@pytest.mark.req("R-TEN-13", "R-SEC-10")
async def test_a_message_counts_as_one_question(engine: Engine) -> None:
    await engine.tenants.set_quotas("default", Quotas(queries_per_minute=2))
    await ask(engine, ABOUT, WITH_WEB)
    await ask(engine, "Hi!")
    with pytest.raises(QuotaExceeded):
        await ask(engine, ABOUT)


@pytest.mark.req("R-TST-33", "R-TEN-18")
async def test_a_shop_knows_nothing_of_another(engine: Engine) -> None:
    other = engine.workspace("other")
    await fill_shop(engine, "other")
    await other.shop.put_product(replace(SPICE, id="canary", name="Canary Lamp", description="Only the other has it."))
    talk = await agent_of(engine, tenant="other").reply("Tell me about the Canary Lamp")
    assert "Canary Lamp" in talk.reply
    mine = await agent_of(engine).reply("Tell me about the Canary Lamp", talk.conversation)
    assert (mine.status, mine.sources) == ("handed_over", ())
    assert len(await workspace_of(engine).conversations.turns(talk.conversation)) == 1


async def test_a_shop_without_documents_answers_from_its_data(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(shop_settings(data_dir)) as engine:
        await workspace_of(engine).shop.put_product(SPICE)
        reply = await ask(engine, "How much is Oriental Spice?")
        assert (reply.status, reply.sources, reply.degraded) == ("answered", ("database",), ())
        again = await agent_of(engine).reply("Is it in stock?", reply.conversation)
        assert again.reply.startswith("Oriental Spice by Maison Rive costs $42")
        assert len(await workspace_of(engine).conversations.turns(reply.conversation)) == 2
        logged = await workspace_of(engine).feedback.searches(conversation=reply.conversation)
        assert [one.query for one in logged] == ["Is it in stock?", "How much is Oriental Spice?"]

"""Tenants through the engine: limits, suspension, names, settings, retention and the end."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.answer.receipts.make import make_receipt
from ragstone.core.answers import Answer, Citation, Sentence
from ragstone.core.clock import now
from ragstone.core.collections import BuildRequest
from ragstone.core.errors import InputError, NotFoundError, TenantSuspended
from ragstone.core.jobs import SourceRecord
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.shop import Product, Service
from ragstone.core.tenants import Quotas
from ragstone.core.types import Json
from ragstone.engine.archive import Archive
from ragstone.engine.articles import Articles
from ragstone.engine.audit import Audit
from ragstone.engine.collections import Collections
from ragstone.engine.conversations import Conversations
from ragstone.engine.dialogue import Dialogue
from ragstone.engine.documents import Documents
from ragstone.engine.embeddings.embeddings import KbEmbeddings
from ragstone.engine.feedback import Feedback
from ragstone.engine.jobs import Jobs
from ragstone.engine.knowledge_bases import KnowledgeBases
from ragstone.engine.monitoring.analytics import Analytics
from ragstone.engine.receipts import Receipts
from ragstone.engine.search import Talk
from ragstone.engine.shop.shop import TenantShop
from ragstone.engine.sources import Sources
from ragstone.engine.tasks import Tasks
from ragstone.engine.workspace import Workspace
from ragstone.stores.control.tenant_rows import REST_SECONDS
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


def let_names_rest(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on it is so much later that every name let go before is free."""
    for place in (engine.tenants, engine._components.ledger):
        monkeypatch.setattr(place, "_clock", lambda: now() + timedelta(seconds=REST_SECONDS))


def item(name: str, text: str = "") -> Item:
    return Item("test", name, f"test/{name}", text or f"The {name} is here.")


def reasons(failed: Sequence[Any]) -> list[tuple[str, str]]:
    return [(one.uri, one.code) for one in failed]


async def names(engine: Engine, tenant: str = "default") -> list[str]:
    return sorted(one.external_id for one in await engine.workspace(tenant).documents.list())


@pytest.mark.req("R-TEN-11")
async def test_one_tenant_becomes_many_step_by_step(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([item("ferry")])
    assert [one.name for one in await engine.tenants.all()] == ["default"]
    await engine.workspace("acme").documents.ingest_items([item("train")])
    assert (await names(engine), await names(engine, "acme")) == (["ferry"], ["train"])
    assert {hit.title for hit in (await engine.workspace("acme").search("here")).hits} == {"train"}
    await engine.tenants.set_quotas("acme", Quotas(documents=1))
    refused = await engine.workspace("acme").documents.ingest_items([item("bus")])
    assert reasons(refused.failed) == [("test/bus", "quota_exceeded")]
    assert (await workspace_of(engine).documents.ingest_items([item("bus")])).added == 1


NOTHING_FOUND = SearchResult("ferry", "ferry", "fast", (), (), (), 0.0)
NO_ANSWER = Answer("ferry?", "", (), (), "no_evidence")


def receipt_of(document_id: str) -> dict[str, Json]:
    quote = Citation(1, "ferry", "chunk", document_id, "", "", None, "", 0, 5)
    answer = Answer("ferry?", "A ferry [1].", (Sentence("A ferry.", "quoted", (1,)),), (quote,), "answered")
    return make_receipt(answer, engine="1", moment=now(), tenant="acme", kb="default", profile="default", models={})


Call = Callable[[Workspace, str], Awaitable[Any]]
ADDED = SourceRecord("1", "default", "w", "files", {"path": "."}, "manual", None, False, None, None, "", now())


PRODUCT = Product("x", "Ticket", "", "", "", None, "USD", None, now())
SERVICE = Service("x", "Crossing", "", None, "USD", 30, (), "UTC", now())
TALK = Talk("ferry?", "ferry?", "ferry?", "talk")


async def enter(context: AbstractAsyncContextManager[None]) -> None:
    """Do nothing within a context."""
    async with context:
        pass


async def do_nothing() -> None:
    """Stand for the work on queued syncs."""


CALLS: dict[str, Call] = {
    "verify_web": lambda acme, _: acme.verify_web("The ferry leaves."),
    "tasks.write_article": lambda acme, _: acme.tasks.write_article("Ferries"),
    "articles.start": lambda acme, _: acme.articles.start("Ferries"),
    "articles.get": lambda acme, _: acme.articles.get("x"),
    "articles.list": lambda acme, _: acme.articles.list(),
    "articles.take": lambda acme, _: acme.articles.take("x"),
    "articles.checkpoint": lambda acme, _: acme.articles.checkpoint("x"),
    "articles.save": lambda acme, _: acme.articles.save("x", 1, {}),
    "articles.finish": lambda acme, _: acme.articles.finish("x", 1, None),
    "articles.paying": lambda acme, _: enter(acme.articles.paying()),
    "dialogue.turn": lambda acme, _: enter(acme.dialogue.turn("ferry?")),
    "dialogue.begin": lambda acme, _: acme.dialogue.begin("ferry?", "talk", turns=1),
    "dialogue.find": lambda acme, _: acme.dialogue.find("ferry", k=1, dense_weight=0.5),
    "dialogue.web": lambda acme, _: acme.dialogue.web("ferry", k=1),
    "dialogue.find_cached": lambda acme, _: acme.dialogue.find_cached("ferry", k=1),
    "dialogue.complete_once": lambda acme, _: acme.dialogue.complete_once([], bool),
    "dialogue.compose": lambda acme, _: acme.dialogue.compose([]),
    "dialogue.quote": lambda acme, _: acme.dialogue.quote("ferry?", []),
    "dialogue.log": lambda acme, _: acme.dialogue.log(TALK, NOTHING_FOUND),
    "dialogue.keep": lambda acme, _: acme.dialogue.keep(TALK, "A ferry.", []),
    "dialogue.read_settings": lambda acme, _: acme.dialogue.read_settings("service"),
    "dialogue.write_settings": lambda acme, _: acme.dialogue.write_settings("service", {}),
    "dialogue.tell_shop": lambda acme, _: acme.dialogue.tell_shop("talk", "why"),
    "shop.find_products": lambda acme, _: acme.shop.find_products("ferry"),
    "shop.find_services": lambda acme, _: acme.shop.find_services("ferry"),
    "shop.get_product_context": lambda acme, _: acme.shop.get_product_context("ferry"),
    "shop.get_service_context": lambda acme, _: acme.shop.get_service_context("ferry"),
    "shop.get_appointment_availability": lambda acme, _: acme.shop.get_appointment_availability("x"),
    "shop.product": lambda acme, _: acme.shop.product("x"),
    "shop.service": lambda acme, _: acme.shop.service("x"),
    "shop.list_products": lambda acme, _: acme.shop.list_products(),
    "shop.list_services": lambda acme, _: acme.shop.list_services(),
    "shop.put_product": lambda acme, _: acme.shop.put_product(PRODUCT),
    "shop.put_products": lambda acme, _: acme.shop.put_products([PRODUCT]),
    "shop.remove_product": lambda acme, _: acme.shop.remove_product("x"),
    "shop.put_service": lambda acme, _: acme.shop.put_service(SERVICE),
    "shop.put_services": lambda acme, _: acme.shop.put_services([SERVICE]),
    "shop.remove_service": lambda acme, _: acme.shop.remove_service("x"),
    "shop.import_table": lambda acme, _: acme.shop.import_table(b"id,name\nx,X\n"),
    "shop.free_slots": lambda acme, _: acme.shop.free_slots("x", now().date(), now().date()),
    "shop.book": lambda acme, _: acme.shop.book("x", now(), "Ada"),
    "shop.cancel": lambda acme, _: acme.shop.cancel("x"),
    "shop.appointment": lambda acme, _: acme.shop.appointment("x"),
    "shop.appointments": lambda acme, _: acme.shop.appointments(),
    "audit.list": lambda acme, _: acme.audit.list(),
    "conversations.list": lambda acme, _: acme.conversations.list(),
    "conversations.turns": lambda acme, _: acme.conversations.turns("talk"),
    "conversations.forget": lambda acme, _: acme.conversations.forget("talk"),
    "feedback.relevance": lambda acme, _: acme.feedback.relevance([]),
    "search": lambda acme, _: acme.search("ferry"),
    "ask": lambda acme, _: acme.ask("ferry?"),
    "stream": lambda acme, _: anext(acme.stream("ferry?")),
    "verify": lambda acme, _: acme.verify("The ferry leaves."),
    "research": lambda acme, _: acme.research("ferry"),
    "confidence": lambda acme, _: acme.confidence(NOTHING_FOUND),
    "session": lambda acme, _: acme.session().search("ferry"),
    "web": lambda acme, _: acme.web("ferry"),
    "verify_text": lambda acme, _: acme.verify_text("The ferry leaves."),
    "verify_file": lambda acme, _: acme.verify_file(__file__),
    "embed": lambda acme, _: acme.embed(["ferry"]),
    "embeddings.queue": lambda acme, _: acme.embeddings.queue("other"),
    "documents.original": lambda acme, one: acme.documents.original(one),
    "documents.versions": lambda acme, one: acme.documents.versions(one),
    "tasks.export": lambda acme, _: acme.tasks.export(),
    "tasks.import_archive": lambda acme, _: acme.tasks.import_archive(b"x"),
    "tasks.evaluate": lambda acme, _: acme.tasks.evaluate(),
    "tasks.tune": lambda acme, _: acme.tasks.tune(),
    "tasks.result": lambda acme, _: acme.tasks.result("x"),
    "receipts.make": lambda acme, _: acme.receipts.make(NO_ANSWER),
    "receipts.check": lambda acme, one: acme.receipts.check(receipt_of(one)),
    "feedback.vote": lambda acme, _: acme.feedback.vote("ferry", ["x"]),
    "explain": lambda acme, one: acme.explain("ferry", one),
    "documents.ingest": lambda acme, _: acme.documents.ingest("."),
    "documents.ingest_items": lambda acme, _: acme.documents.ingest_items([item("x")]),
    "documents.ingest_urls": lambda acme, _: acme.documents.ingest_urls("https://example.org/"),
    "documents.dry_run": lambda acme, _: acme.documents.dry_run("."),
    "documents.list": lambda acme, _: acme.documents.list(),
    "documents.get": lambda acme, one: acme.documents.get(one),
    "documents.text": lambda acme, one: acme.documents.text(one),
    "documents.chunks": lambda acme, one: acme.documents.chunks(one),
    "documents.chunk_records": lambda acme, one: acme.documents.chunk_records(one),
    "documents.delete": lambda acme, one: acme.documents.delete(one),
    "documents.delete_many": lambda acme, one: acme.documents.delete_many(one),
    "erase": lambda acme, one: acme.erase("document", one),
    "knowledge_bases.delete": lambda acme, _: acme.knowledge_bases.delete("default"),
    "knowledge_bases.list": lambda acme, _: acme.knowledge_bases.list(),
    "knowledge_bases.reindex": lambda acme, _: acme.knowledge_bases.reindex(),
    "knowledge_bases.source_types": lambda acme, _: acme.knowledge_bases.source_types(),
    "knowledge_bases.stats": lambda acme, _: acme.knowledge_bases.stats(),
    "embeddings.reembed": lambda acme, _: acme.embeddings.reembed("other"),
    "embeddings.resync": lambda acme, _: acme.embeddings.resync(),
    "embeddings.refresh": lambda acme, _: acme.embeddings.refresh(),
    "embeddings.status": lambda acme, _: acme.embeddings.status(),
    "collections.build": lambda acme, _: acme.collections.build(BuildRequest("corpus.txt")),
    "collections.health": lambda acme, _: acme.collections.health(),
    "collections.chunk": lambda acme, _: acme.collections.chunk("x"),
    "knowledge_bases.rename": lambda acme, _: acme.knowledge_bases.rename("default", "other"),
    "embeddings.rollback": lambda acme, _: acme.embeddings.rollback(),
    "embeddings.spaces": lambda acme, _: acme.embeddings.spaces(),
    "embeddings.clean": lambda acme, _: acme.embeddings.clean(),
    "feedback.votes": lambda acme, _: acme.feedback.votes(),
    "feedback.searches": lambda acme, _: acme.feedback.searches(),
    "feedback.last_passages": lambda acme, _: acme.feedback.last_passages([1]),
    "feedback.report": lambda acme, _: acme.feedback.report(),
    "feedback.gaps": lambda acme, _: acme.feedback.gaps(),
    "feedback.judged": lambda acme, _: acme.feedback.judged(),
    "feedback.learnt_terms": lambda acme, _: acme.feedback.learnt_terms(),
    "feedback.golden": lambda acme, _: acme.feedback.golden(),
    "feedback.golden_dataset": lambda acme, _: acme.feedback.golden_dataset(),
    "feedback.make_golden": lambda acme, _: acme.feedback.make_golden(),
    "feedback.add_golden": lambda acme, one: acme.feedback.add_golden("ferry", [one]),
    "feedback.remove_golden": lambda acme, _: acme.feedback.remove_golden("ferry"),
    "documents.upload": lambda acme, _: acme.documents.upload(b"x", "x.txt"),
    "documents.queue": lambda acme, _: acme.documents.queue("."),
    "documents.status": lambda acme, one: acme.documents.status(one),
    "jobs.list": lambda acme, _: acme.jobs.list(),
    "jobs.get": lambda acme, _: acme.jobs.get("x"),
    "jobs.cancel": lambda acme, _: acme.jobs.cancel("x"),
    "jobs.retry": lambda acme, _: acme.jobs.retry("x"),
    "jobs.counts": lambda acme, _: acme.jobs.counts(),
    "jobs.notices": lambda acme, _: acme.jobs.notices(),
    "jobs.mark_read": lambda acme, _: acme.jobs.mark_read([1]),
    "sources.add": lambda acme, _: acme.sources.add("web", "w", {"urls": []}),
    "sources.list": lambda acme, _: acme.sources.list(),
    "sources.get": lambda acme, _: acme.sources.get("w"),
    "sources.sync": lambda acme, _: acme.sources.sync("w"),
    "sources.sync_all": lambda acme, _: acme.sources.sync_all(),
    "sources.pause": lambda acme, _: acme.sources.pause("w"),
    "sources.remove": lambda acme, _: acme.sources.remove("w"),
    "sources.overlaps": lambda acme, _: acme.sources.overlaps(ADDED),
    "sources.work_and_report": lambda acme, _: acme.sources.work_and_report([], do_nothing),
    "sources.resume": lambda acme, _: acme.sources.resume("w"),
    "knowledge_bases.get": lambda acme, _: acme.knowledge_bases.get(),
    "archive.export": lambda acme, _: acme.archive.export("x.zip"),
    "archive.restore": lambda acme, _: acme.archive.restore("x.zip"),
    "analytics.summary": lambda acme, _: acme.analytics.summary(),
    "analytics.days": lambda acme, _: acme.analytics.days(),
    "usage": lambda acme, _: acme.usage(),
}


OWN_BUSINESS = {"is_on"}
"""What a suspended tenant may be asked as well."""
PARTS = (
    Analytics,
    Archive,
    Articles,
    Audit,
    Collections,
    Conversations,
    Dialogue,
    Documents,
    KbEmbeddings,
    Feedback,
    Jobs,
    KnowledgeBases,
    Receipts,
    Sources,
    Tasks,
    TenantShop,
)


def test_nothing_that_is_done_for_a_tenant_is_left_out() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"}

    parts = {inspect.getmodule(part).__name__.rpartition(".")[2]: part for part in PARTS}  # type: ignore[union-attr]
    known = methods(Workspace) | {f"{name}.{method}" for name, part in parts.items() for method in methods(part)}
    assert parts.keys() == {name for name in vars(Workspace) if isinstance(vars(Workspace)[name], cached_property)} - {
        "_answers"
    }
    assert known - OWN_BUSINESS == CALLS.keys()


async def test_a_suspended_tenant_is_refused_everywhere(engine: Engine, fake_model: FakeEmbedder) -> None:
    await engine.workspace("acme").documents.ingest_items([item("ferry")])
    (document,) = await engine.workspace("acme").documents.list()
    await engine.tenants.suspend("acme")
    fake_model.calls.clear()
    refused = {}
    for name, call in CALLS.items():
        try:
            refused[name] = repr(await call(engine.workspace("acme"), document.id))
        except TenantSuspended:
            refused[name] = "refused"
    assert {name: how for name, how in refused.items() if how != "refused"} == {}
    with pytest.raises(TenantSuspended):
        await engine.warm("acme")
    assert fake_model.calls == []
    await engine.tenants.resume("acme")
    assert await names(engine, "acme") == ["ferry"]


async def test_jobs_of_a_suspended_tenant_rest(engine: Engine) -> None:
    taken = await engine.workspace("acme").documents.upload(b"The ferry.", "ferry.txt")
    await engine.tenants.suspend("acme")
    await work(engine)
    await engine.tenants.resume("acme")
    assert (await engine.workspace("acme").documents.status(taken.document_id)).status == "pending"
    await work(engine)
    assert (await engine.workspace("acme").documents.status(taken.document_id)).status == "completed"


async def test_a_job_that_was_taken_before_the_suspension_is_put_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await engine.workspace("acme").documents.upload(b"The ferry.", "ferry.txt")
    pipeline = engine._components.pipeline
    run = pipeline.run

    async def suspended(tenant: str, *arguments: Any, **options: Any) -> Any:
        await engine.tenants.suspend(tenant)
        return await run(tenant, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "run", suspended)
        await work(engine)
    await engine.tenants.resume("acme")
    status = await engine.workspace("acme").documents.status(taken.document_id)
    assert status.job is not None
    assert (status.status, status.job.attempts) == ("pending", 0)
    await work(engine)
    assert (await engine.workspace("acme").documents.status(taken.document_id)).status == "completed"


async def test_a_renamed_tenant_keeps_its_documents_and_their_ids(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.workspace("acme").documents.ingest_items([item("a"), item("b")])
    taken = await engine.workspace("acme").documents.upload(b"The ferry.", "ferry.txt")
    await work(engine)
    before = {one.id for one in await engine.workspace("acme").documents.list()}
    await engine.tenants.rename("acme", "apex")
    report = await engine.workspace("apex").documents.ingest_items([item("a"), item("b", "Other words.")])
    assert (report.added, report.updated, report.unchanged) == (0, 1, 1)
    again = await engine.workspace("apex").documents.upload(b"The ferry.", "ferry.txt")
    assert (again.document_id, again.status) == (taken.document_id, "completed")
    assert {one.id for one in await engine.workspace("apex").documents.list()} == before
    let_names_rest(engine, monkeypatch)
    await engine.workspace("acme").documents.ingest_items([item("a"), item("c")])
    await engine.workspace("apex").documents.ingest_items([item("c")])
    others = {one.id for one in await engine.workspace("acme").documents.list()}
    assert others & {one.id for one in await engine.workspace("apex").documents.list()} == set()


async def test_an_ingest_does_not_go_on_under_a_name_that_was_given_away(engine: Engine) -> None:
    async def rename() -> None:
        await engine.tenants.rename("acme", "apex")

    renamed = False
    loop = asyncio.get_running_loop()

    def items() -> Any:
        nonlocal renamed
        yield item("first")
        if not renamed:
            renamed = True
            asyncio.run_coroutine_threadsafe(rename(), loop).result(10)
        yield item("second")

    await engine.tenants.create("acme")
    with pytest.raises(NotFoundError, match="tenant 'acme'"):
        await engine.workspace("acme").documents.ingest_items(items())
    assert [one.name for one in await engine.tenants.all()] == ["apex"]


Work = Callable[[Workspace], Awaitable[Any]]


@pytest.mark.parametrize(
    "work",
    [
        lambda acme: acme.search(SearchQuery("salary globex", arms="dense")),
        lambda acme: acme.documents.ingest_items([item("late", "A salary of acme.")]),
    ],
    ids=["search", "ingest"],
)
@pytest.mark.parametrize("goes", ["rename", "delete"])
async def test_what_runs_while_its_tenant_goes_meets_no_other(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, work: Work, goes: str
) -> None:
    for name in ("acme", "globex"):
        await engine.workspace(name).documents.ingest_items([item("own", f"The salary of {name}.")])
    embed, refused = fake_model.embed, []

    async def embed_meanwhile(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(fake_model, "embed", embed)
        await (engine.tenants.delete("acme") if goes == "delete" else engine.tenants.rename("acme", "old"))
        with pytest.raises(InputError, match="is given to nobody else until") as caught:
            await engine.tenants.rename("globex", "acme")
        refused.append(caught.value)
        return await embed(*arguments, **named)

    monkeypatch.setattr(fake_model, "embed", embed_meanwhile)
    with pytest.raises(NotFoundError, match="tenant 'acme'"):
        await work(engine.workspace("acme"))
    assert len(refused) == 1
    left = ["globex"] if goes == "delete" else ["globex", "old"]
    assert [one.name for one in await engine.tenants.all()] == left
    assert [await names(engine, one) for one in left] == [["own"]] * len(left)


@pytest.mark.req("R-TEN-15")
async def test_a_deleted_tenant_is_gone_and_its_name_is_free_once_it_has_rested(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.workspace("acme").documents.ingest_items([item("a", "A secret canary.")])
    await engine.workspace("acme").documents.upload(b"Another canary.", "canary.txt")
    await workspace_of(engine).documents.ingest_items([item("b")])
    await engine.tenants.delete("acme")
    assert _files_with(data_dir, b"canary") == []
    with pytest.raises(NotFoundError):
        await engine.workspace("acme").search("canary")
    let_names_rest(engine, monkeypatch)
    await engine.workspace("acme").documents.ingest_items([item("new")])
    assert {hit.title for hit in (await engine.workspace("acme").search("canary here")).hits} == {"new"}
    assert await names(engine) == ["b"]


def _files_with(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


async def test_a_worker_finishes_deletions(engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish, finished = engine.tenants.finish_deletions, asyncio.Event()

    async def finishing() -> list[str]:
        names = await finish()
        finished.set()
        return names

    monkeypatch.setattr(engine.tenants, "finish_deletions", finishing)
    await engine.workspace("acme").documents.ingest_items([item("a")])
    with closing(sqlite3.connect(data_dir / "control.db")) as control, control:
        control.execute("UPDATE tenants SET state = 'deleting'")
    working = asyncio.create_task(engine.worker().run())
    await asyncio.wait_for(finished.wait(), 240)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert await engine.tenants.all() == []
    assert list((data_dir / "tenants").iterdir()) == []


@pytest.mark.req("R-SEC-12")
async def test_documents_are_kept_as_long_as_the_tenant_wants(
    engine: Engine, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.workspace("acme").documents.ingest_items([item("old"), item("new")])
    await workspace_of(engine).documents.ingest_items([item("old")])
    await engine.tenants.set_retention("acme", 30)
    for path in (data_dir / "tenants").glob("*/ledger.db"):
        with closing(sqlite3.connect(path)) as rows, rows:
            rows.execute("UPDATE documents SET updated_at = '2020-01-01T00:00:00+00:00' WHERE external_id = 'old'")
    (old,) = [one.id for one in await engine.workspace("acme").documents.list() if one.external_id == "old"]
    upkeep = engine._components.maintenance
    with caplog.at_level(logging.INFO, "ragstone"):
        await upkeep.maintain("acme")
        await upkeep.maintain("default")
    assert await names(engine, "acme") == ["new"]
    assert await names(engine) == ["old"]  # nobody has said how long
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("retention:")]
    assert line == f"retention: document {old} of tenant 'acme' was not updated for 30 days and is deleted"


async def test_a_tenant_searches_its_own_way(engine: Engine) -> None:
    for tenant in ("acme", "default"):
        await engine.workspace(tenant).documents.ingest_items([item(name) for name in "abc"])
    await engine.tenants.set_settings("acme", {"retrieval.k": 1, "retrieval.arms": "lexical"})
    own = await engine.workspace("acme").search("here")
    assert len(own.hits) == 1
    assert "dense" not in {stage.stage for stage in own.trace}
    assert len((await workspace_of(engine).search("here")).hits) == 3
    assert len((await engine.workspace("acme").search(SearchQuery("here", k=2))).hits) == 2
    await engine.tenants.set_settings("acme", {"profile": "kosmos", "flags.new": True})
    assert (await engine.workspace("acme").is_on("new"), await workspace_of(engine).is_on("new")) == (True, False)
    (document, *_) = await engine.workspace("acme").documents.list()
    explained = await engine.workspace("acme").explain("here", document.id)
    assert explained.document_id == document.id


@pytest.mark.req("R-EMB-20")
async def test_a_tenant_embeds_with_a_model_of_its_own(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def build(settings: Any) -> FakeEmbedder:
        built.append(settings.model)
        return FakeEmbedder(name=settings.model)

    monkeypatch.setattr("ragstone.engine.components.build_embedder", build)
    async with open_engine(Settings(data_dir=data_dir, embedding={"model": "first"})) as engine:
        await engine.workspace("acme").documents.ingest_items([item("ferry")], kb="before")
        await engine.tenants.set_settings("acme", {"embedding.model": "second"})
        for tenant in ("acme", "default"):
            await engine.workspace(tenant).documents.ingest_items([item("ferry")])
        await engine.workspace("acme").documents.ingest_items([item("train")], kb="before")  # goes on as it was made
        await engine.workspace("acme").documents.ingest_items([item("train")])
        models = {kb.name: kb.space.model for kb in await engine.workspace("acme").knowledge_bases.list() if kb.space}
        assert models == {"before": "first@1", "default": "second@1"}
        assert [kb.space.model for kb in await workspace_of(engine).knowledge_bases.list() if kb.space] == ["first@1"]
        for kb in models:
            found = await engine.workspace("acme").search(SearchQuery("ferry", arms="dense", kb=kb))
            assert (found.hits[0].title, found.degraded) == ("ferry", ())
    assert sorted(built) == ["first", "second"]


def test_scripts_have_tenants_too(data_dir: Path, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        made = stone.tenants.create("acme", Quotas(documents=1))
        assert stone.tenants.all() == [made]
        stone.workspace("acme").ingest_items([item("a")])
        assert stone.tenants.usage("acme").stock.documents == 1
        assert stone.tenants.set_quotas("acme", Quotas()).quotas == Quotas()
        assert stone.tenants.set_retention("acme", 5).retention_days == 5
        assert stone.tenants.set_settings("acme", {"flags.new": True}).settings == {"flags.new": True}
        assert stone.workspace("acme").is_on("new")
        assert stone.tenants.rename("acme", "apex").id == made.id
        assert stone.tenants.suspend("apex").state == "suspended"
        assert stone.tenants.resume("apex").state == "active"
        assert stone.tenants.get("acme") is None
        assert stone.tenants.delete("apex").id == made.id


async def test_collections_are_named_by_source_type_and_tenant(engine: Engine) -> None:
    items = [
        Item("mail", "a", "a", "Words of a letter.", metadata={"source_type": "email"}),
        Item("feed", "b", "b", "Words of a feed.", metadata={"source_type": "rss"}),
        Item("plain", "c", "c", "Words of nowhere."),
    ]
    await engine.workspace("acme").documents.ingest_items(items)
    await engine.workspace("other").documents.ingest_items(items[:1])
    found = await engine.workspace("acme").knowledge_bases.source_types()
    assert [(one.name, one.documents, one.chunks) for one in found] == [("emails_acme", 1, 1), ("rss_acme", 1, 1)]
    assert await engine.workspace("nobody").knowledge_bases.source_types() == []

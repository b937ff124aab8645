"""Tenants through the engine: limits, suspension, names, settings, retention and the end."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.activity import Activity
from ragstone.answer.receipts.make import make_receipt
from ragstone.core.answers import Answer, Citation, Sentence
from ragstone.core.clock import now
from ragstone.core.collections import BuildRequest
from ragstone.core.errors import InputError, NotFoundError, TenantSuspended
from ragstone.core.tenants import Quotas
from ragstone.core.types import Json, SearchResult
from ragstone.corpora.builder import CorpusBuilder
from ragstone.intake import Intake
from ragstone.stores.control.tenant_rows import REST_SECONDS
from ragstone.testing.fakes import FakeEmbedder


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.intake.worker().run(until_idle=True), 60)


def let_names_rest(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on it is so much later that every name let go before is free."""
    for place in (engine.tenants, engine._parts.ledger):
        monkeypatch.setattr(place, "_clock", lambda: now() + timedelta(seconds=REST_SECONDS))


def item(name: str, text: str = "") -> Item:
    return Item("test", name, f"test/{name}", text or f"The {name} is here.")


def reasons(failed: Sequence[Any]) -> list[tuple[str, str]]:
    return [(one.uri, one.code) for one in failed]


async def names(engine: Engine, tenant: str = "default") -> list[str]:
    return sorted(one.external_id for one in await engine.documents(tenant=tenant))


@pytest.mark.req("R-TEN-11")
async def test_one_tenant_becomes_many_step_by_step(engine: Engine) -> None:
    await engine.ingest_items([item("ferry")])
    assert [one.name for one in await engine.tenants.all()] == ["default"]
    await engine.ingest_items([item("train")], tenant="acme")
    assert (await names(engine), await names(engine, "acme")) == (["ferry"], ["train"])
    assert {hit.title for hit in (await engine.search("here", tenant="acme")).hits} == {"train"}
    await engine.tenants.set_quotas("acme", Quotas(documents=1))
    refused = await engine.ingest_items([item("bus")], tenant="acme")
    assert reasons(refused.failed) == [("test/bus", "quota_exceeded")]
    assert (await engine.ingest_items([item("bus")])).added == 1


NOTHING_FOUND = SearchResult("ferry", "ferry", "fast", (), (), (), 0.0)
NO_ANSWER = Answer("ferry?", "", (), (), "no_evidence")


def receipt_of(document_id: str) -> dict[str, Json]:
    quote = Citation(1, "ferry", "chunk", document_id, "", "", None, "", 0, 5)
    answer = Answer("ferry?", "A ferry [1].", (Sentence("A ferry.", "quoted", (1,)),), (quote,), "answered")
    return make_receipt(
        answer, engine="1", moment=now(), tenant="acme", kb="default", profile="default", models={}
    )


Call = Callable[[Engine, str], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "audit": lambda engine, _: engine.audit(tenant="acme"),
    "activity.list_conversations": lambda engine, _: engine.activity.list_conversations(tenant="acme"),
    "activity.turns": lambda engine, _: engine.activity.turns("talk", tenant="acme"),
    "activity.forget_conversation": lambda engine, _: engine.activity.forget_conversation(
        "talk", tenant="acme"
    ),
    "activity.relevance": lambda engine, _: engine.activity.relevance([], tenant="acme"),
    "warm": lambda engine, _: engine.warm(tenant="acme"),
    "search": lambda engine, _: engine.search("ferry", tenant="acme"),
    "ask": lambda engine, _: engine.ask("ferry?", tenant="acme"),
    "stream": lambda engine, _: anext(engine.stream("ferry?", tenant="acme")),
    "verify": lambda engine, _: engine.verify("The ferry leaves.", tenant="acme"),
    "research": lambda engine, _: engine.research("ferry", tenant="acme"),
    "confidence": lambda engine, _: engine.confidence(NOTHING_FOUND, tenant="acme"),
    "session": lambda engine, _: engine.session(tenant="acme").search("ferry"),
    "web": lambda engine, _: engine.web("ferry", tenant="acme"),
    "receipt": lambda engine, _: engine.receipt(NO_ANSWER, tenant="acme"),
    "check_receipt": lambda engine, one: engine.check_receipt(receipt_of(one), tenant="acme"),
    "feedback": lambda engine, _: engine.feedback("ferry", ["x"], tenant="acme"),
    "explain": lambda engine, one: engine.explain("ferry", one, tenant="acme"),
    "ingest": lambda engine, _: engine.ingest(".", tenant="acme"),
    "ingest_items": lambda engine, _: engine.ingest_items([item("x")], tenant="acme"),
    "ingest_urls": lambda engine, _: engine.ingest_urls("https://example.org/", tenant="acme"),
    "preview": lambda engine, _: engine.preview(".", tenant="acme"),
    "documents": lambda engine, _: engine.documents(tenant="acme"),
    "document": lambda engine, one: engine.document(one, tenant="acme"),
    "text": lambda engine, one: engine.text(one, tenant="acme"),
    "chunks": lambda engine, one: engine.chunks(one, tenant="acme"),
    "chunk_records": lambda engine, one: engine.chunk_records(one, tenant="acme"),
    "delete": lambda engine, one: engine.delete(one, tenant="acme"),
    "erase": lambda engine, one: engine.erase("document", one, tenant="acme"),
    "delete_kb": lambda engine, _: engine.delete_kb("default", tenant="acme"),
    "kbs": lambda engine, _: engine.kbs(tenant="acme"),
    "reindex": lambda engine, _: engine.reindex(tenant="acme"),
    "collections": lambda engine, _: engine.collections(tenant="acme"),
    "stats": lambda engine, _: engine.stats(tenant="acme"),
    "reembed": lambda engine, _: engine.reembed("other", tenant="acme"),
    "refresh": lambda engine, _: engine.refresh(tenant="acme"),
    "refresh_status": lambda engine, _: engine.refresh_status(tenant="acme"),
    "corpora.build": lambda engine, _: engine.corpora.build(BuildRequest("corpus.txt"), tenant="acme"),
    "corpora.health": lambda engine, _: engine.corpora.health(tenant="acme"),
    "corpora.chunk": lambda engine, _: engine.corpora.chunk("x", tenant="acme"),
    "corpora.rename": lambda engine, _: engine.corpora.rename("default", "other", tenant="acme"),
    "rollback_space": lambda engine, _: engine.rollback_space(tenant="acme"),
    "spaces": lambda engine, _: engine.spaces(tenant="acme"),
    "clean_spaces": lambda engine, _: engine.clean_spaces(tenant="acme"),
    "activity.vote": lambda engine, _: engine.activity.vote("ferry", ["x"], tenant="acme"),
    "activity.votes": lambda engine, _: engine.activity.votes(tenant="acme"),
    "activity.searches": lambda engine, _: engine.activity.searches(tenant="acme"),
    "activity.report": lambda engine, _: engine.activity.report(tenant="acme"),
    "activity.gaps": lambda engine, _: engine.activity.gaps(tenant="acme"),
    "activity.judged": lambda engine, _: engine.activity.judged(tenant="acme"),
    "activity.learnt_terms": lambda engine, _: engine.activity.learnt_terms(tenant="acme"),
    "activity.golden": lambda engine, _: engine.activity.golden(tenant="acme"),
    "activity.golden_dataset": lambda engine, _: engine.activity.golden_dataset(tenant="acme"),
    "activity.make_golden": lambda engine, _: engine.activity.make_golden(tenant="acme"),
    "activity.add_golden": lambda engine, one: engine.activity.add_golden("ferry", [one], tenant="acme"),
    "activity.remove_golden": lambda engine, _: engine.activity.remove_golden("ferry", tenant="acme"),
    "intake.upload": lambda engine, _: engine.intake.upload(b"x", "x.txt", tenant="acme"),
    "intake.queue": lambda engine, _: engine.intake.queue(".", tenant="acme"),
    "intake.status": lambda engine, one: engine.intake.status(one, tenant="acme"),
    "intake.jobs": lambda engine, _: engine.intake.jobs(tenant="acme"),
    "intake.job": lambda engine, _: engine.intake.job("x", tenant="acme"),
    "intake.cancel": lambda engine, _: engine.intake.cancel("x", tenant="acme"),
    "intake.retry": lambda engine, _: engine.intake.retry("x", tenant="acme"),
    "intake.counts": lambda engine, _: engine.intake.counts(tenant="acme"),
    "intake.notices": lambda engine, _: engine.intake.notices(tenant="acme"),
    "intake.mark_read": lambda engine, _: engine.intake.mark_read([1], tenant="acme"),
    "intake.add_source": lambda engine, _: engine.intake.add_source("web", "w", {"urls": []}, tenant="acme"),
    "intake.sources": lambda engine, _: engine.intake.sources(tenant="acme"),
    "intake.source": lambda engine, _: engine.intake.source("w", tenant="acme"),
    "intake.sync": lambda engine, _: engine.intake.sync("w", tenant="acme"),
    "intake.sync_all": lambda engine, _: engine.intake.sync_all(tenant="acme"),
    "intake.pause": lambda engine, _: engine.intake.pause("w", tenant="acme"),
    "intake.remove_source": lambda engine, _: engine.intake.remove_source("w", tenant="acme"),
}


OWN_BUSINESS = {"is_on", "corpora.refresh"} | {f"activity.{name}" for name in ("note",)}
"""What only the engine itself calls, after it has looked at the tenant."""


def test_nothing_that_is_done_for_a_tenant_is_left_out() -> None:
    methods = dict(inspect.getmembers(Engine, inspect.isfunction))
    methods |= {f"intake.{name}": one for name, one in vars(Intake).items() if inspect.isfunction(one)}
    methods |= {f"activity.{name}": one for name, one in vars(Activity).items() if inspect.isfunction(one)}
    methods |= {
        f"corpora.{name}": one for name, one in vars(CorpusBuilder).items() if inspect.isfunction(one)
    }
    asked = {
        name
        for name, method in methods.items()
        if "tenant" in inspect.signature(method).parameters and "_" not in (name[0], name.split(".")[-1][0])
    }
    assert asked - OWN_BUSINESS == CALLS.keys()


async def test_a_suspended_tenant_is_refused_everywhere(engine: Engine, fake_model: FakeEmbedder) -> None:
    await engine.ingest_items([item("ferry")], tenant="acme")
    (document,) = await engine.documents(tenant="acme")
    await engine.tenants.suspend("acme")
    fake_model.calls.clear()
    refused = {}
    for name, call in CALLS.items():
        try:
            refused[name] = repr(await call(engine, document.id))
        except TenantSuspended:
            refused[name] = "refused"
    assert {name: how for name, how in refused.items() if how != "refused"} == {}
    assert fake_model.calls == []
    await engine.tenants.resume("acme")
    assert await names(engine, "acme") == ["ferry"]


async def test_jobs_of_a_suspended_tenant_rest(engine: Engine) -> None:
    taken = await engine.intake.upload(b"The ferry.", "ferry.txt", tenant="acme")
    await engine.tenants.suspend("acme")
    await work(engine)
    await engine.tenants.resume("acme")
    assert (await engine.intake.status(taken.document_id, tenant="acme")).status == "pending"
    await work(engine)
    assert (await engine.intake.status(taken.document_id, tenant="acme")).status == "completed"


async def test_a_job_that_was_taken_before_the_suspension_is_put_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await engine.intake.upload(b"The ferry.", "ferry.txt", tenant="acme")
    pipeline = engine._parts.pipeline(engine._model)
    run = pipeline.run

    async def suspended(tenant: str, *arguments: Any, **options: Any) -> Any:
        await engine.tenants.suspend(tenant)
        return await run(tenant, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "run", suspended)
        await work(engine)
    await engine.tenants.resume("acme")
    status = await engine.intake.status(taken.document_id, tenant="acme")
    assert status.job is not None
    assert (status.status, status.job.attempts) == ("pending", 0)
    await work(engine)
    assert (await engine.intake.status(taken.document_id, tenant="acme")).status == "completed"


async def test_a_renamed_tenant_keeps_its_documents_and_their_ids(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.ingest_items([item("a"), item("b")], tenant="acme")
    taken = await engine.intake.upload(b"The ferry.", "ferry.txt", tenant="acme")
    await work(engine)
    before = {one.id for one in await engine.documents(tenant="acme")}
    await engine.tenants.rename("acme", "apex")
    report = await engine.ingest_items([item("a"), item("b", "Other words.")], tenant="apex")
    assert (report.added, report.updated, report.unchanged) == (0, 1, 1)
    again = await engine.intake.upload(b"The ferry.", "ferry.txt", tenant="apex")
    assert (again.document_id, again.status) == (taken.document_id, "completed")
    assert {one.id for one in await engine.documents(tenant="apex")} == before
    let_names_rest(engine, monkeypatch)
    await engine.ingest_items([item("a"), item("c")], tenant="acme")
    await engine.ingest_items([item("c")], tenant="apex")
    others = {one.id for one in await engine.documents(tenant="acme")}
    assert others & {one.id for one in await engine.documents(tenant="apex")} == set()


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
        await engine.ingest_items(items(), tenant="acme")
    assert [one.name for one in await engine.tenants.all()] == ["apex"]


Work = Callable[[Engine], Awaitable[Any]]


@pytest.mark.parametrize(
    "work",
    [
        lambda engine: engine.search("salary globex", arms="dense", tenant="acme"),
        lambda engine: engine.ingest_items([item("late", "A salary of acme.")], tenant="acme"),
    ],
    ids=["search", "ingest"],
)
@pytest.mark.parametrize("goes", ["rename", "delete"])
async def test_what_runs_while_its_tenant_goes_meets_no_other(
    engine: Engine, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, work: Work, goes: str
) -> None:
    for name in ("acme", "globex"):
        await engine.ingest_items([item("own", f"The salary of {name}.")], tenant=name)
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
        await work(engine)
    assert len(refused) == 1
    left = ["globex"] if goes == "delete" else ["globex", "old"]
    assert [one.name for one in await engine.tenants.all()] == left
    assert [await names(engine, one) for one in left] == [["own"]] * len(left)


@pytest.mark.req("R-TEN-15")
async def test_a_deleted_tenant_is_gone_and_its_name_is_free_once_it_has_rested(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.ingest_items([item("a", "A secret canary.")], tenant="acme")
    await engine.intake.upload(b"Another canary.", "canary.txt", tenant="acme")
    await engine.ingest_items([item("b")])
    await engine.tenants.delete("acme")
    assert _files_with(data_dir, b"canary") == []
    with pytest.raises(NotFoundError):
        await engine.search("canary", tenant="acme")
    let_names_rest(engine, monkeypatch)
    await engine.ingest_items([item("new")], tenant="acme")
    assert {hit.title for hit in (await engine.search("canary here", tenant="acme")).hits} == {"new"}
    assert await names(engine) == ["b"]


def _files_with(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


async def test_a_worker_finishes_deletions(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, finished = engine.tenants.finish_deletions, asyncio.Event()

    async def finishing() -> list[str]:
        names = await finish()
        finished.set()
        return names

    monkeypatch.setattr(engine.tenants, "finish_deletions", finishing)
    await engine.ingest_items([item("a")], tenant="acme")
    with closing(sqlite3.connect(data_dir / "control.db")) as control, control:
        control.execute("UPDATE tenants SET state = 'deleting'")
    working = asyncio.create_task(engine.intake.worker().run())
    await asyncio.wait_for(finished.wait(), 60)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert await engine.tenants.all() == []
    assert list((data_dir / "tenants").iterdir()) == []


@pytest.mark.req("R-SEC-12")
async def test_documents_are_kept_as_long_as_the_tenant_wants(
    engine: Engine, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.ingest_items([item("old"), item("new")], tenant="acme")
    await engine.ingest_items([item("old")])
    await engine.tenants.set_retention("acme", 30)
    for path in (data_dir / "tenants").glob("*/ledger.db"):
        with closing(sqlite3.connect(path)) as rows, rows:
            rows.execute(
                "UPDATE documents SET updated_at = '2020-01-01T00:00:00+00:00' WHERE external_id = 'old'"
            )
    (old,) = [one.id for one in await engine.documents(tenant="acme") if one.external_id == "old"]
    upkeep = engine.intake._upkeep
    with caplog.at_level(logging.INFO, "ragstone"):
        await upkeep.chores("acme")
        await upkeep.chores("default")
    assert await names(engine, "acme") == ["new"]
    assert await names(engine) == ["old"]  # nobody has said how long
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("retention:")]
    assert line == f"retention: document {old} of tenant 'acme' was not updated for 30 days and is deleted"


async def test_a_tenant_searches_its_own_way(engine: Engine) -> None:
    for tenant in ("acme", "default"):
        await engine.ingest_items([item(name) for name in "abc"], tenant=tenant)
    await engine.tenants.set_settings("acme", {"retrieval.k": 1, "retrieval.arms": "lexical"})
    own = await engine.search("here", tenant="acme")
    assert len(own.hits) == 1
    assert "dense" not in {stage.stage for stage in own.trace}
    assert len((await engine.search("here")).hits) == 3
    assert len((await engine.search("here", k=2, tenant="acme")).hits) == 2
    await engine.tenants.set_settings("acme", {"profile": "kosmos", "flags.new": True})
    assert (await engine.is_on("new", tenant="acme"), await engine.is_on("new")) == (True, False)
    (document, *_) = await engine.documents(tenant="acme")
    explained = await engine.explain("here", document.id, tenant="acme")
    assert explained.document_id == document.id


@pytest.mark.req("R-EMB-20")
async def test_a_tenant_embeds_with_a_model_of_its_own(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build(settings: Any) -> FakeEmbedder:
        built.append(settings.model)
        return FakeEmbedder(name=settings.model)

    monkeypatch.setattr("ragstone.wiring.build_embedder", build)
    async with open_engine(Settings(data_dir=data_dir, embedding={"model": "first"})) as engine:
        await engine.ingest_items([item("ferry")], tenant="acme", kb="before")
        await engine.tenants.set_settings("acme", {"embedding.model": "second"})
        for tenant in ("acme", "default"):
            await engine.ingest_items([item("ferry")], tenant=tenant)
        await engine.ingest_items([item("train")], tenant="acme", kb="before")  # goes on as it was made
        await engine.ingest_items([item("train")], tenant="acme")
        models = {kb.name: kb.space.model for kb in await engine.kbs(tenant="acme") if kb.space}
        assert models == {"before": "first@1", "default": "second@1"}
        assert [kb.space.model for kb in await engine.kbs() if kb.space] == ["first@1"]
        for kb in models:
            found = await engine.search("ferry", arms="dense", tenant="acme", kb=kb)
            assert (found.hits[0].title, found.degraded) == ("ferry", ())
    assert sorted(built) == ["first", "second"]


def test_scripts_have_tenants_too(data_dir: Path, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        made = stone.tenants.create("acme", Quotas(documents=1))
        assert stone.tenants.all() == [made]
        stone.ingest_items([item("a")], tenant="acme")
        assert stone.tenants.usage("acme").stock.documents == 1
        assert stone.tenants.set_quotas("acme", Quotas()).quotas == Quotas()
        assert stone.tenants.set_retention("acme", 5).retention_days == 5
        assert stone.tenants.set_settings("acme", {"flags.new": True}).settings == {"flags.new": True}
        assert stone.is_on("new", tenant="acme")
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
    await engine.ingest_items(items, tenant="acme")
    await engine.ingest_items(items[:1], tenant="other")
    found = await engine.collections(tenant="acme")
    assert [(one.name, one.documents, one.chunks) for one in found] == [
        ("emails_acme", 1, 1),
        ("rss_acme", 1, 1),
    ]
    assert await engine.collections(tenant="nobody") == []

"""Limits through the engine: what does not fit is refused, says why, and harms nothing else."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.openai import OpenAIDouble, chat_reply
from tests.flow.gated import GatedEmbedder

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import ModelError, QuotaExceeded
from ragstone.core.model_types import Bill, Embeddings, add_cost, require_budget
from ragstone.core.tenants import Quotas
from ragstone.core.types import Role
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


def item(name: str, text: str = "") -> Item:
    return Item("test", name, f"test/{name}", text or f"The {name} is here.")


def reasons(failed: Sequence[Any]) -> list[tuple[str, str]]:
    return [(one.uri, one.code) for one in failed]


async def names(engine: Engine, tenant: str = "default") -> list[str]:
    return sorted(one.external_id for one in await engine.workspace(tenant).documents.list())


@pytest.mark.req("R-TEN-12")
async def test_documents_beyond_the_quota_are_refused_before_any_work(engine: Engine, fake_model: FakeEmbedder) -> None:
    await engine.tenants.create("acme", Quotas(documents=2))
    report = await engine.workspace("acme").documents.ingest_items([item(name) for name in "abcde"])
    assert (report.added, len(report.failed)) == (2, 3)
    assert {one.code for one in report.failed} == {"quota_exceeded"}
    assert "may have 2 documents" in report.failed[0].error
    assert report.failed[0].error.startswith(report.failed[0].uri)
    kept = await names(engine, "acme")
    fake_model.calls.clear()
    again = await engine.workspace("acme").documents.ingest_items([item(name) for name in "xyz"])
    assert (again.added, len(again.failed), fake_model.calls) == (0, 3, [])
    changed = await engine.workspace("acme").documents.ingest_items([item(kept[0], "Other words.")])
    assert (changed.updated, changed.failed) == (1, ())
    (first, _second) = await engine.workspace("acme").documents.list()
    await engine.workspace("acme").documents.delete(first.id)
    assert (await engine.workspace("acme").documents.ingest_items([item("x")])).added == 1
    usage = await engine.tenants.usage("acme")
    assert (usage.stock.documents, usage.reserved) == (2, {})


@pytest.mark.parametrize("quotas", [Quotas(chunks=3), Quotas(bytes=400)])
async def test_a_document_that_does_not_fit_fails_and_smaller_ones_go_on(engine: Engine, quotas: Quotas) -> None:
    await engine.tenants.create("acme", quotas)
    long = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} tells of the ferry. " * 60 for n in range(9))
    report = await engine.workspace("acme").documents.ingest_items([item("a"), item("long", long), item("b")])
    assert reasons(report.failed) == [("test/long", "quota_exceeded")]
    assert await names(engine, "acme") == ["a", "b"]
    assert (await engine.tenants.usage("acme")).reserved == {}


async def test_a_job_that_does_not_fit_fails_with_its_reason_and_is_not_tried_again(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(chunks=1))
    long = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} tells of the ferry. " * 60 for n in range(9))
    taken = await engine.workspace("acme").documents.upload(long.encode(), "long.md")
    await work(engine)
    status = await engine.workspace("acme").documents.status(taken.document_id)
    assert status.job is not None
    assert (status.status, status.job.attempts, status.job.error_code) == ("failed", 1, "quota_exceeded")
    assert status.processing_error.startswith("long.md: tenant 'acme' may have 1 chunk and has 0: ")
    small = await engine.workspace("acme").documents.upload(b"Short.", "short.txt")
    await work(engine)
    assert (await engine.workspace("acme").documents.status(small.document_id)).status == "completed"


async def test_members_of_an_archive_are_documents_too(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(documents=2))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in "abcd":
            archive.writestr(f"{name}.txt", f"The {name} is here.")
    await engine.workspace("acme").documents.upload(packed.getvalue(), "all.zip")
    await work(engine)
    assert (await engine.tenants.usage("acme")).stock.documents == 2


async def test_an_upload_that_is_worked_on_takes_its_place_once(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = GatedEmbedder("ferry")
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: gated)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.tenants.create("acme", Quotas(documents=3, bytes=500))
        documents = engine.workspace("acme").documents
        await documents.upload(b"The ferry. " * 4, "ferry.txt")
        working = asyncio.create_task(engine.worker().run())
        await asyncio.wait_for(gated.reached.wait(), 240)
        for name in ("pier", "quay"):
            await documents.upload(f"The {name}. ".encode() * 10, f"{name}.txt")
        with pytest.raises(QuotaExceeded, match="may have 3 documents and has 3"):
            await documents.upload(b"Another.", "other.txt")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_uploads_that_race_for_the_last_place(engine: Engine) -> None:
    """FAULTS 19."""
    await engine.tenants.create("acme", Quotas(documents=1))
    uploads = [
        engine.workspace("acme").documents.upload(f"The ferry number {n}.".encode(), f"{n}.txt") for n in range(20)
    ]
    outcomes = await asyncio.gather(*uploads, return_exceptions=True)
    taken = [one for one in outcomes if not isinstance(one, BaseException)]
    assert len(taken) == 1
    assert sum(isinstance(one, QuotaExceeded) for one in outcomes) == 19
    await work(engine)
    (document,) = await engine.workspace("acme").documents.list()
    assert document.id == taken[0].document_id
    name = taken[0].uri
    again = await engine.workspace("acme").documents.upload(f"The ferry number {name[:-4]}.".encode(), name)
    assert again.document_id == document.id


async def test_the_same_upload_twice_takes_one_place(engine: Engine) -> None:
    await engine.tenants.create("acme", Quotas(documents=1))
    first = await engine.workspace("acme").documents.upload(b"The ferry.", "ferry.txt")
    second = await engine.workspace("acme").documents.upload(b"The ferry.", "ferry.txt")
    assert first.document_id == second.document_id


async def test_a_folder_is_queued_as_far_as_it_fits(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"The {name} is here.")
    await engine.tenants.create("acme", Quotas(documents=2))
    queued, failed = await engine.workspace("acme").documents.queue(folder)
    assert (len(queued), [one.code for one in failed]) == (2, ["quota_exceeded"])


@pytest.mark.req("R-TEN-13", "R-SEC-10")
async def test_questions_are_limited(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.workspace("acme").documents.ingest_items([item("ferry")])
    await workspace_of(engine).documents.ingest_items([item("ferry")])
    await engine.tenants.set_quotas("acme", Quotas(queries_per_minute=0))
    (document,) = await engine.workspace("acme").documents.list()
    for asked in (
        engine.workspace("acme").search("ferry"),
        engine.workspace("acme").ask("ferry?"),
        engine.workspace("acme").explain("ferry", document.id),
    ):
        with pytest.raises(QuotaExceeded, match="may ask 0 queries per minute"):
            await asked
    assert (await workspace_of(engine).search("ferry")).hits != ()


class PaidEmbedder(FakeEmbedder):
    """A model that costs a quarter of a dollar a call."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        require_budget()
        add_cost("embedding", 0.25)
        return await super().embed(texts, role)


@pytest.mark.req("R-TEN-12")
async def test_what_models_cost_is_charged_to_who_asked(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: PaidEmbedder())
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.tenants.create("acme", Quotas(cost_per_month=0.5))
        await engine.workspace("acme").documents.ingest_items([item("ferry")])
        await engine.workspace("acme").search("ferry")
        # The document, the query, and the unrelated text that relevance is measured from.
        assert (await engine.tenants.usage("acme")).cost == 0.75
        await engine.tenants.charge_bill("acme", Bill(llm=0.25))
        assert (await engine.tenants.usage("acme")).cost_by_kind == {"embedding": 0.75, "llm": 0.25}
        with pytest.raises(QuotaExceeded, match=r"has spent 1"):
            await engine.workspace("acme").documents.ingest_items([item("train")])
        assert await names(engine, "acme") == ["ferry"]
        (document,) = await engine.workspace("acme").documents.list()
        assert await engine.workspace("acme").documents.delete(document.id)
        await workspace_of(engine).documents.ingest_items([item("ferry")])


@pytest.mark.req("R-TEN-12")
async def test_the_language_model_is_charged_to_who_asked(data_dir: Path, fake_model: FakeEmbedder) -> None:
    said = chat_reply("The ferry leaves at nine [1].", usage=(1000, 100))
    with OpenAIDouble(lambda _: said) as service:
        llm = {"model": "small", "base_url": service.url, "price_in": 2.0, "price_out": 10.0}
        settings = Settings.model_validate({"data_dir": data_dir, "llm": llm, "enrich": {"summary": "llm"}})
        async with open_engine(settings) as engine:
            await engine.tenants.create("acme", Quotas())
            await engine.workspace("acme").documents.ingest_items([item("ferry")])
            after_ingest = (await engine.tenants.usage("acme")).cost_by_kind
            await engine.workspace("acme").ask("when does the ferry leave?")
            after_ask = (await engine.tenants.usage("acme")).cost_by_kind
    assert after_ingest == {"llm": pytest.approx(0.003)}
    assert after_ask == {"llm": pytest.approx(0.003 * len(service.requests))}
    assert len(service.requests) > 1


@pytest.mark.req("R-TEN-12")
async def test_a_model_is_not_paid_for_beyond_the_limit_whoever_calls_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = PaidEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: model)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.workspace("acme").documents.ingest_items([item("ferry")])
        model.errors = [ModelError("the model fell over")]
        await engine.workspace("acme").documents.ingest_items([item("train")])
        assert (await engine.workspace("acme").knowledge_bases.stats()).unembedded == 1
        spent_before = (await engine.tenants.usage("acme")).cost
        await engine.tenants.set_quotas("acme", Quotas(cost_per_month=0.1))
        model.calls.clear()
        for call in (
            engine.workspace("acme").embeddings.reembed(mode="full", force=True),
            engine.workspace("acme").embeddings.rollback(),
        ):
            with pytest.raises(QuotaExceeded, match="per month and has spent"):
                await call
        await engine._components.maintenance.maintain("acme")
        assert (model.calls, (await engine.workspace("acme").knowledge_bases.stats()).unembedded) == ([], 1)
        await engine.tenants.set_quotas("acme", Quotas(cost_per_month=100))
        await engine._components.maintenance.maintain("acme")
        assert (await engine.workspace("acme").knowledge_bases.stats()).unembedded == 0
        assert (await engine.tenants.usage("acme")).cost == spent_before + 0.25

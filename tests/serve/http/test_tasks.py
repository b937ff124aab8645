"""Exports, imports and evaluations over HTTP: queued as jobs, their results for the tenant alone."""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path

import pytest
from tests.serve.http.conftest import Caller, Service

from ragstone import Settings, open_engine
from ragstone.core.jobs import Job
from ragstone.evaluate.tune import Knob
from ragstone.testing.fakes import FakeEmbedder

GATE = "# Gate\n\nThe tide gate opens at nine. The keeper has two keys.\n"


def work(service: Service) -> None:
    async def run() -> None:
        await service.engine.worker().run(until_idle=True)

    service.run(run)


def export(service: Service, caller: Caller) -> str:
    queued = caller("POST", "/v1/exports", json={})
    assert (queued.status_code, queued.json()["kind"], queued.json()["source"]) == (202, "task", "export")
    place = queued.headers["location"]
    assert caller("GET", f"{place}/result").json()["code"] == "job_not_done"
    work(service)
    job = caller("GET", place).json()
    assert (job["state"], job["progress"], job["document_id"]) == ("completed", 100, ""), job
    return f"{place}/result"


def test_what_one_tenant_exports_another_imports(shared: Service) -> None:
    caller = shared.caller("exporter")
    document_id = caller.upload(GATE)
    place = export(shared, caller)
    archive = caller("GET", place)
    assert archive.headers["content-disposition"].startswith("attachment;")
    assert zipfile.ZipFile(io.BytesIO(archive.content)).testzip() is None
    other = shared.caller("importer")
    unknown = other("GET", place.replace(place.split("/")[3], "0" * 32))
    foreign = other("GET", place)
    assert (foreign.status_code, unknown.status_code) == (404, 404)
    queued = other("POST", "/v1/imports", files={"file": ("a.zip", archive.content)})
    assert queued.status_code == 202, queued.text
    work(shared)
    done = other("GET", f"{queued.headers['location']}/result").json()
    assert (done["added"], done["tenant"]) == (1, "importer")
    assert other("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"]
    kept = shared.engine.settings.data_dir / "tasks"
    assert list(kept.iterdir()) == []
    caller("DELETE", f"/v1/documents/{document_id}?erase=true")
    assert caller("GET", place).status_code == 404


def test_what_is_no_archive_is_refused_at_once_or_by_the_job(shared: Service) -> None:
    caller = shared.caller("refused")
    answer = caller("POST", "/v1/imports", files={"file": ("a.zip", b"no archive")})
    assert answer.status_code == 422
    queued = caller("POST", "/v1/imports", files={"file": ("a.zip", b"PK\x03\x04 broken")})
    work(shared)
    job = caller("GET", queued.headers["location"]).json()
    assert (job["state"], bool(job["error"])) == ("failed", True)
    assert job["error_code"] != "internal"
    for name in ("none", ""):
        assert caller("POST", "/v1/exports", json={"kbs": [name]}).status_code == 404


def test_search_is_measured_on_golden_queries(shared: Service) -> None:
    caller = shared.caller("evaluator")
    document_id = caller.upload(GATE)
    assert caller("POST", "/v1/evaluations", json={}).json()["code"] == "invalid_input"
    caller("POST", "/v1/golden", json={"query": "When does the gate open?", "document_ids": [document_id]})
    queued = caller("POST", "/v1/evaluations", json={"systems": ["lexical", "hybrid"]})
    assert queued.status_code == 202, queued.text
    work(shared)
    done = caller("GET", f"{queued.headers['location']}/result").json()
    assert [(row["system"], row["recall@10"]) for row in done["rows"]] == [("lexical", 1.0), ("hybrid", 1.0)]
    for name in ("psychic", ""):
        assert caller("POST", "/v1/evaluations", json={"systems": [name]}).json()["code"] == "invalid_input"


def test_settings_are_tuned(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.evaluate.tune.FEWEST_QUERIES", 1)
    monkeypatch.setattr("ragstone.evaluate.tune.RETRIEVAL_KNOBS", (Knob("retrieval.candidates", (50,)),))
    caller = shared.caller("tuner")
    for number in range(4):
        document_id = caller.upload(f"# Gate {number}\n\nGate {number} opens at {number + 5}.\n", f"{number}.md")
        query = {"query": f"When does gate {number} open?", "document_ids": [document_id]}
        caller("POST", "/v1/golden", json=query)
    queued = caller("POST", "/v1/tunings", json={})
    work(shared)
    job = caller("GET", queued.headers["location"]).json()
    assert job["state"] == "completed", job
    assert caller("GET", f"{queued.headers['location']}/result").json()["written"] is None


def test_a_key_for_some_knowledge_bases_exports_nothing(shared: Service) -> None:
    caller = shared.caller("limited")
    caller.upload(GATE)
    place = export(shared, caller)
    limited = shared.caller("limited", kbs=("default",))
    assert limited("POST", "/v1/exports", json={}).status_code == 403
    assert limited("GET", place).status_code == 403


def test_only_the_newest_results_are_kept(shared: Service) -> None:
    caller = shared.caller("keeper")
    caller.upload(GATE)
    first = export(shared, caller)
    for _ in range(11):
        caller("POST", "/v1/exports", json={"files": False})
    work(shared)
    assert caller("GET", first).status_code == 404


async def test_a_task_whose_worker_died_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    settings = Settings(data_dir=tmp_path)
    async with open_engine(settings) as engine:
        workspace = engine.workspace("acme")
        await workspace.documents.upload(GATE.encode(), "gate.md")
        await engine.worker().run(until_idle=True)
        queued = await workspace.tasks.export()
        # As a process that is killed in the middle of it leaves it: claimed by nobody who lives, half written.
        queue = engine._components.stores.queue.of("acme")
        (job,) = await queue.claim("dead", "task", lease_seconds=0.01, attempts=3, most=1, most_bytes=1)
        half = tmp_path / "tasks" / job.id
        half.mkdir(parents=True)
        (half / "archive.zip").write_bytes(b"PK half")
        await asyncio.sleep(0.02)
    async with open_engine(settings) as engine:
        await engine.worker().run(until_idle=True)
        made = await engine.workspace("acme").tasks.result(queued.id)
        assert zipfile.ZipFile(io.BytesIO(made.content)).testzip() is None
        assert not half.exists()


async def test_an_export_that_is_too_large_to_download_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    monkeypatch.setattr("ragstone.engine.tasks.MB", 10)
    ended: list[Job] = []
    async with open_engine(Settings(data_dir=tmp_path)) as engine:
        workspace = engine.workspace("acme")
        await workspace.documents.upload(GATE.encode(), "gate.md")
        await engine.worker().run(until_idle=True)
        await workspace.tasks.export()
        await engine.worker(on_end=lambda _, job: ended.append(job)).run(until_idle=True)
    assert [(job.state, job.error_code) for job in ended] == [("failed", "invalid_input")]
    assert "fewer knowledge bases" in ended[0].progress.hint

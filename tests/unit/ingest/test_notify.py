"""The webhook: told at least once, signed, and never the reason that work stops."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from pathlib import Path

import pytest
from tests.doubles.web import Reply, WebDouble

from ragstone import Settings, open_engine
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


@pytest.mark.req("R-ING-20", "R-ING-21", "R-REL-07")
async def test_the_webhook_hears_how_uploads_ended(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    # A notice nobody took is told again with the next round, half a minute later.
    monkeypatch.setattr("ragstone.ingest.jobs.worker.SWEEP_SECONDS", 0.5)
    with WebDouble() as server:
        server.on("/hook", Reply(status=500), Reply(status=500), Reply())
        settings = Settings(
            data_dir=data_dir, jobs={"webhook": server.url("/hook"), "webhook_secret": "s3cret"}, fetch={"retries": 0}
        )
        async with open_engine(settings) as engine:
            good = await workspace_of(engine).documents.upload(b"Good words.", "good.txt")
            bad = await workspace_of(engine).documents.upload(b"%PDF-1.7 cut", "bad.pdf")
            working = asyncio.create_task(engine.worker().run())
            while len(server.requests) < 4:  # noqa: ASYNC110  (the server runs on a thread)
                await asyncio.sleep(0.02)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            kept = await workspace_of(engine).documents.status(bad.document_id)
        heard = server.requests[2:]
    assert (kept.status, kept.processing_error) == ("failed", "bad.pdf is a damaged PDF")
    told = {json.loads(request.body)["document_id"]: json.loads(request.body) for request in heard}
    assert (told[good.document_id]["event"], told[good.document_id]["tenant"]) == ("job.completed", "default")
    assert (told[bad.document_id]["event"], told[bad.document_id]["message"]) == (
        "job.failed",
        "bad.pdf is a damaged PDF",
    )
    for request in heard:
        digest = hmac.new(b"s3cret", request.body, hashlib.sha256).hexdigest()
        assert request.headers["x-ragstone-signature"] == f"sha256={digest}"

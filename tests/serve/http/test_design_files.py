"""Configuration files of the designs, served as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.serve.http.conftest import Caller, Service

from ragstone import load_settings, open_engine
from ragstone.serve.cli.main import main
from ragstone.serve.http.app import build_app
from ragstone.testing.fakes import FakeEmbedder

DATA = Path(__file__).parents[2] / "data" / "designs"


def test_the_file_of_kosmos_is_served_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def build(settings: Any) -> FakeEmbedder:
        asked.append(settings)
        return FakeEmbedder(name=settings.model, dimension=settings.dimensions)

    monkeypatch.setattr("ragstone.engine.components.build_embedder", build)
    settings = load_settings(config=DATA / "rag-config.yaml", overrides={"data_dir": tmp_path / "data"}, environment={})
    engine = open_engine(settings)
    with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
        service = Service(client, engine)
        caller: Caller = service.caller("acme")
        long = "The tide gate opens at nine. " * 60
        document = caller.upload(f"# Gate\n\n{long}\n")
        chunks = caller("GET", f"/v1/documents/{document}/chunks").json()["chunks"]
        found = caller("POST", "/v1/search", json={"query": "when does the tide gate open"}).json()
        service.run(engine.close)
    assert (asked[0].model, asked[0].batch_size) == ("sentence-transformers/all-mpnet-base-v2", 32)
    assert len(chunks) > 1
    assert all(len(chunk["content"]) <= 1000 for chunk in chunks)
    assert 0 < len(found["hits"]) <= 10
    # The cross-encoder of the file is not on this machine: the search is made without it and says so.
    assert any(note.startswith("rerank: ") for note in found["degraded"])


@pytest.mark.req("R-API-14")
def test_the_service_is_an_application_of_fastapi_at_port_8000(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[Any, str, int]] = []

    async def run(app: Any, host: str, port: int, _: Any) -> None:
        served.append((app, host, port))

    monkeypatch.setattr("ragstone.serve.server.run_app", run)
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--data-dir", "data", "--host", "0.0.0.0"]) == 0
    ((app, host, port),) = served
    assert isinstance(app, FastAPI)
    assert (host, port) == ("0.0.0.0", 8000)

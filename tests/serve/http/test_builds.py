"""Collections that are built while others ask, twice at once, for a caller that goes away, or until a kill -9."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.faults import corpus_process
from tests.flow.gated import GatedEmbedder
from tests.serve.http.conftest import Caller, Service

from ragstone import Settings, open_engine
from ragstone.serve.http.app import build_app

OLD = "The dragon sleeps under the mill."
NEW = "The griffin nests above the quarry."
BEFORE_COMMIT = "ragstone.stores.ledger.writes:rename_kb+"
"""tests/faults/test_corpus_kill.py kills a build at all other points."""


@pytest.fixture
def model() -> GatedEmbedder:
    return GatedEmbedder()


@pytest.fixture
def service(tmp_path: Path, model: GatedEmbedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: model)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.txt").write_text(OLD, encoding="utf-8")
    engine = open_engine(Settings(data_dir=tmp_path / "data"))
    with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
        yield Service(client, engine)
        assert client.portal is not None
        client.portal.call(engine.close)


@pytest.fixture
def caller(service: Service, tmp_path: Path) -> Caller:
    """A caller with a collection, whose corpus has changed since."""
    caller = service.caller("default")
    assert caller("POST", "/ingest", json={}).status_code == 200
    (tmp_path / "data" / "corpus.txt").write_text(NEW, encoding="utf-8")
    return caller


def found(caller: Caller) -> list[str]:
    answer = caller("POST", "/search", json={"query": "dragon griffin"})
    assert answer.status_code == 200, answer.text
    return [hit["chunk_text"] for hit in answer.json()["results"]]


@pytest.mark.req("R-REL-24")
def test_others_are_served_while_a_collection_is_built(caller: Caller, service: Service, model: GatedEmbedder) -> None:
    model.word = "griffin nests"
    with ThreadPoolExecutor(1) as threads:
        build = threads.submit(caller, "POST", "/ingest", json={"overwrite": True})
        service.run(model.reached.wait)
        try:
            assert found(caller) == [OLD]
            assert caller("GET", "/health").json()["components"]["total_documents"] == 1
            second = caller("POST", "/ingest", json={"overwrite": True})
            assert (second.status_code, second.json()["code"]) == (409, "COLLECTION_BUSY")
            assert second.json()["error"] == "collection 'corpus_embeddings' is being built already"
        finally:
            service.run(lambda: _open(model))
        assert build.result().status_code == 200
    assert found(caller) == [NEW]


async def _open(model: GatedEmbedder) -> None:
    model.open.set()


@pytest.mark.req("R-REL-24")
def test_a_build_goes_on_when_its_caller_goes_away(caller: Caller, service: Service, model: GatedEmbedder) -> None:
    model.word = "griffin nests"
    body = json.dumps({"overwrite": True}).encode()
    headers = [(b"authorization", f"Bearer {caller.token}".encode()), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/ingest",
        "raw_path": b"/ingest",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        raise OSError("the connection is gone")

    async def leave() -> None:
        call = asyncio.create_task(service.client.app(scope, receive, send))  # type: ignore[arg-type]
        await model.reached.wait()
        await asyncio.sleep(0)
        model.open.set()
        with contextlib.suppress(OSError):
            await call

    assert found(caller) == [OLD]
    service.run(leave)
    assert found(caller) == [NEW]
    assert caller("GET", "/health").json()["components"]["bm25_index"] == "loaded"


@pytest.mark.req("R-REL-24")
def test_a_build_that_is_cut_off_leaves_the_old_collection(
    caller: Caller, service: Service, model: GatedEmbedder
) -> None:
    """As when the service ends and does not wait any longer."""
    model.word = "griffin nests"
    workspace = service.engine.workspace("default")

    async def cut() -> None:
        from ragstone.core.collections import BuildRequest

        build = asyncio.create_task(workspace.collections.build(BuildRequest("corpus.txt", overwrite=True)))
        await model.reached.wait()
        build.cancel()
        await asyncio.wait([build])

    service.run(cut)
    assert found(caller) == [OLD]
    model.word = ""
    assert caller("POST", "/ingest", json={"overwrite": True}).status_code == 200
    assert found(caller) == [NEW]
    assert [kb["name"] for kb in caller("GET", "/v1/kbs").json()["kbs"]] == ["corpus_embeddings"]


@pytest.mark.req("R-REL-24", "R-REL-25")
def test_a_service_that_is_killed_while_it_builds(
    caller: Caller, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.run(service.engine.close)
    folder = tmp_path / "killed"
    folder.mkdir()
    shutil.copytree(tmp_path / "data", folder / "data")
    monkeypatch.chdir(folder)
    corpus_process.kill(corpus_process.build_over_http, BEFORE_COMMIT, caller.token)
    engine = open_engine(Settings(data_dir=Path("data")))
    with TestClient(build_app(engine, worker=False)) as client:
        again = Caller(Service(client, engine), caller.token)
        assert found(again) == [OLD]
        assert again("POST", "/ingest", json={"overwrite": True}).status_code == 200
        assert found(again) == [NEW]
        assert again("GET", "/health").json()["components"]["bm25_index"] == "loaded"
        assert [kb["name"] for kb in again("GET", "/v1/kbs").json()["kbs"]] == ["corpus_embeddings"]
        assert client.portal is not None
        client.portal.call(engine.close)

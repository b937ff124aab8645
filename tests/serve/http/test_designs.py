"""The routes of the designs, with their bodies and their shape of errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.http.conftest import Caller, Service

from ragstone import Settings, open_engine
from ragstone.core.errors import StoreBusy, StoreError
from ragstone.serve.http.app import build_app
from ragstone.stores.corpus.files import load_metadata
from ragstone.stores.lexical.bm25_file import load_index
from ragstone.testing.corpora import TestDataGenerator
from ragstone.testing.fakes import FakeEmbedder

OLD = "The dragon sleeps under the mill. The miller pays in barley.\n\nA lantern burns at the tavern door."
NEW = "The griffin nests above the quarry. The mason pays in slate.\n\nA horn hangs by the guildhall."
NAME = "corpus_embeddings"
numbers = count(1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("designs")


@contextmanager
def serve(data_dir: Path, strategy: str = "sentence", size: int = 8) -> Iterator[Service]:
    """A service whose chunks are short."""
    chunking = {"strategy": strategy, "size": size, "overlap": 0}
    engine = open_engine(Settings.model_validate({"data_dir": data_dir, "chunking": chunking}))
    with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
        yield Service(client, engine)
        assert client.portal is not None
        client.portal.call(engine.close)


@pytest.fixture(scope="module")
def fake_model() -> Iterator[FakeEmbedder]:
    model = FakeEmbedder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: model)
        yield model


@pytest.fixture(scope="module")
def service(home: Path, fake_model: FakeEmbedder) -> Iterator[Service]:
    """One service for all tests of this module; each test has a tenant of its own."""
    with serve(home / "data") as service:
        yield service


@pytest.fixture
def tenant() -> str:
    return f"game-{next(numbers)}"


@pytest.fixture
def rpg(service: Service, home: Path, tenant: str) -> Caller:
    """A caller of a new tenant with a corpus."""
    corpus_of(home, tenant).write_text(OLD, encoding="utf-8")
    return service.caller(tenant)


def corpus_of(home: Path, tenant: str) -> Path:
    folder = home / "data" / "corpora" / tenant
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "corpus.txt"


def texts(caller: Caller, **options: Any) -> list[str]:
    """What the collection holds, as a search for all of its words finds it."""
    found = caller("POST", "/search", json={"query": f"{OLD} {NEW}", "top_k": 50} | options)
    assert found.status_code == 200, found.text
    return sorted(result["chunk_text"] for result in found.json()["results"])


@pytest.mark.req("R-API-01", "R-API-02")
def test_a_corpus_becomes_a_collection(rpg: Caller) -> None:
    body = {
        "corpus_path": "data/corpus.txt",
        "collection_name": NAME,
        "chunk_size": 14,
        "chunk_overlap": 0,
        "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
        "overwrite": False,
    }
    answer = rpg("POST", "/ingest", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    result = told["result"]
    assert (list(told), told["status"]) == (["status", "result"], "success")
    assert list(result) == [
        "total_chunks",
        "bm25_index_path",
        "vector_db_collection",
        "metadata_path",
        "embedding_model",
        "embedding_dimension",
        "duration_seconds",
        "statistics",
    ]
    assert (result["total_chunks"], result["vector_db_collection"], result["embedding_dimension"]) == (2, NAME, 64)
    assert result["duration_seconds"] > 0
    statistics = result["statistics"]
    assert (statistics["total_tokens"], statistics["avg_chunk_size"]) == (21, 10)
    assert set(load_metadata(Path(result["metadata_path"]))) == set(
        load_index(Path(result["bm25_index_path"]))[0].pack().ids
    )


@pytest.mark.req("R-API-01", "R-API-02", "R-API-03")
def test_a_collection_is_replaced_only_if_asked(rpg: Caller, home: Path, tenant: str) -> None:
    assert rpg("POST", "/ingest", json={}).json()["result"]["vector_db_collection"] == NAME
    before = texts(rpg)
    corpus_of(home, tenant).write_text(NEW, encoding="utf-8")
    refused = rpg("POST", "/ingest", json={"overwrite": False})
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/json")
    assert refused.json() == {
        "status": "error",
        "error": "Collection already exists. Use overwrite=true to replace.",
        "code": "COLLECTION_EXISTS",
    }
    assert texts(rpg) == before
    assert rpg("POST", "/ingest", json={"overwrite": True}).status_code == 200
    assert "The griffin nests above the quarry." in texts(rpg)
    assert not set(texts(rpg)) & set(before)


@pytest.mark.req("R-API-04", "R-API-05", "R-API-06", "R-HYB-20")
def test_a_search_has_the_body_of_the_design(rpg: Caller) -> None:
    rpg("POST", "/ingest", json={})
    body = {
        "query": "where the lantern burns",
        "top_k": 2,
        "use_hybrid": True,
        "fusion_strategy": "rrf",
        "rewrite_query": True,
        "filters": {"min_score": 0.5},
    }
    answer = rpg("POST", "/search", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert list(found) == ["query", "rewritten_query", "results", "total_results", "retrieval_time_ms"]
    assert (found["query"], found["total_results"]) == (body["query"], len(found["results"]))
    assert found["retrieval_time_ms"] > 0
    best = found["results"][0]
    assert list(best) == ["chunk_id", "chunk_text", "score", "bm25_score", "vector_score", "metadata"]
    assert best["chunk_text"] == "A lantern burns at the tavern door."
    assert best["score"] == pytest.approx(1.0)
    assert best["bm25_score"] > 0
    assert best["vector_score"] > 0
    position = OLD.index("A lantern")
    own = {name: best["metadata"][name] for name in ("source", "position", "chunk_index")}
    assert own == {"source": "corpus.txt", "position": position, "chunk_index": 2}


@pytest.mark.req("R-API-04", "R-HYB-22", "R-TST-26")
def test_each_option_of_a_search_decides_something(rpg: Caller) -> None:
    rpg("POST", "/ingest", json={})

    def found(**options: Any) -> list[dict[str, Any]]:
        answer = rpg("POST", "/search", json={"query": "lantern at the tavern door"} | options)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    assert len(found(top_k=1)) == 1
    assert all(hit["bm25_score"] is None for hit in found(use_hybrid=False))
    assert all(hit["vector_score"] is not None for hit in found(use_hybrid=False))
    rrf, weighted = ([hit["score"] for hit in found(fusion_strategy=name, top_k=3)] for name in ("rrf", "weighted"))
    assert rrf != weighted
    assert len(found(filters={"min_score": 0.99}, fusion_strategy="rrf")) == 1
    assert found(filters={"min_score": 0.0, "source": "elsewhere.txt"}) == []


@pytest.mark.req("R-API-05")
def test_a_query_is_rewritten_unless_that_is_off(service: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = service.caller("rewriting")
    corpus_of(home, "rewriting").write_text(
        "The Royal Order of Millers (ROM) pays in barley. ROM meets in June.", encoding="utf-8"
    )
    service.run(lambda: service.engine.tenants.set_settings("rewriting", {"retrieval.transforms": ["entities"]}))
    assert caller("POST", "/ingest", json={}).status_code == 200
    rewritten, plain = (
        caller("POST", "/search", json={"query": "ROM in June", "rewrite_query": on}).json() for on in (True, False)
    )
    assert "Royal Order of Millers" in rewritten["rewritten_query"]
    assert plain["rewritten_query"] == plain["query"] == "ROM in June"


@pytest.mark.req("R-API-18")
def test_a_missing_collection_is_a_typed_error(rpg: Caller) -> None:
    answer = rpg("POST", "/search", json={"query": "lantern"})
    assert answer.status_code == 404
    assert set(answer.json()) == {"status", "error", "code"}
    assert (answer.json()["status"], answer.json()["code"]) == ("error", "NOT_FOUND")
    assert NAME in answer.json()["error"]


@pytest.mark.req("R-API-18")
def test_a_broken_index_is_a_typed_error(rpg: Caller, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    rpg("POST", "/ingest", json={})

    async def fail(*_: object) -> None:
        raise StoreError("the index cannot be read")

    for part in (service.engine._components.stores.lexical, service.engine._components.stores.vectors):
        monkeypatch.setattr(part, "search", fail)
    answer = rpg("POST", "/search", json={"query": "lantern"})
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_FAILED")
    assert answer.json()["error"] == "the index cannot be read"


@pytest.mark.req("R-API-03", "R-API-13", "R-API-19", "R-TST-26")
@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/search", {"query": ""}, 422, "INVALID_INPUT"),
        ("/search", {"query": " \t"}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x" * 100_000}, 422, "INVALID_INPUT"),
        ("/search", {}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x", "top_k": 0}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x", "fusion_strategy": "best"}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x", "filters": {"min_score": 2}}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x", "filters": {"min_score": "0 OR 1=1"}}, 422, "INVALID_INPUT"),
        ("/search", {"query": "x", "kb": "other"}, 422, "INVALID_INPUT"),
        ("/ingest", {"chunk_size": 4}, 422, "INVALID_INPUT"),
        ("/ingest", {"chunk_size": 20, "chunk_overlap": 20}, 422, "INVALID_INPUT"),
        ("/ingest", {"corpus_path": "missing.txt"}, 404, "NOT_FOUND"),
        ("/ingest", {"collection_name": "../up"}, 422, "INVALID_INPUT"),
        ("/ingest", {"collection_name": "building-x-012345-01234567"}, 422, "INVALID_INPUT"),
    ],
)
def test_a_wrong_request_is_told_in_the_shape_of_the_design(
    rpg: Caller, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    answer = rpg("POST", path, json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"status", "error", "code"}
    assert (answer.json()["status"], answer.json()["code"]) == ("error", code)


@pytest.mark.req("R-API-15")
@pytest.mark.parametrize(("method", "path"), [("POST", "/ingest"), ("POST", "/search"), ("GET", "/knowledge/k/search")])
def test_a_key_is_needed(service: Service, method: str, path: str) -> None:
    answer = service.client.request(method, path, params={"q": "x"}, json={"query": "x"} if method == "POST" else None)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["code"].upper() == "UNAUTHENTICATED"
    reader = service.caller("readers", "read")
    assert reader("POST", "/ingest", json={}).status_code == 403
    assert service.caller("", "admin")("POST", "/search", json={"query": "x"}).json()["code"] == "FORBIDDEN"


@pytest.mark.req("R-SEC-15")
def test_a_corpus_is_read_from_its_folder_alone(rpg: Caller, home: Path, tenant: str) -> None:
    own = corpus_of(home, tenant).parent
    secret = home / "secret.txt"
    secret.write_text("a secret", encoding="utf-8")
    (own / "link.txt").symlink_to(secret)
    (own / "out").symlink_to(home)
    os.mkfifo(own / "pipe.txt")
    (own / "device.txt").symlink_to("/dev/zero")
    corpus_of(home, "neighbour").write_text("another tenant's", encoding="utf-8")
    for path in (
        "../../../secret.txt",
        str(secret),
        "link.txt",
        "out/secret.txt",
        "device.txt",
        "/dev/zero",
        "/proc/self/environ",
        "../neighbour/corpus.txt",
        "../../control.db",
        "data/../../neighbour/corpus.txt",
    ):
        answer = rpg("POST", "/ingest", json={"corpus_path": path})
        assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT"), path
        assert "outside of the data root" in answer.json()["error"]
    for path in ("pipe.txt", "missing.txt", "corpus.txt/x"):
        assert rpg("POST", "/ingest", json={"corpus_path": path}).status_code == 404, path
    assert rpg("GET", "/v1/kbs").json()["kbs"] == []


@pytest.mark.req("R-API-15")
def test_collections_of_another_tenant_are_unknown(rpg: Caller, service: Service) -> None:
    rpg("POST", "/ingest", json={"collection_name": "lore"})
    other = service.caller("stranger")
    for path in ("/knowledge/{}/search?q=lantern",):
        theirs, unknown = (other("GET", path.format(name)) for name in ("lore", "none"))
        assert (theirs.status_code, unknown.status_code) == (404, 404)
        assert theirs.json()["detail"].replace("lore", "none") == unknown.json()["detail"]
    theirs, unknown = (
        other("POST", "/search", json={"query": "lantern", "collection_name": name}) for name in ("lore", "none")
    )
    assert theirs.text.replace("lore", "none") == unknown.text
    told = other("GET", "/health", params={"collection_name": "lore"}).json()
    assert told["components"] == {
        "bm25_index": "missing",
        "vector_db": "connected",
        "collection": "lore",
        "total_documents": 0,
    }


def test_a_key_of_one_kb_stays_in_it(rpg: Caller, service: Service, tenant: str) -> None:
    for name in ("lore", "secrets"):
        rpg("POST", "/ingest", json={"collection_name": name})
    limited = service.caller(tenant, kbs=("lore",))
    assert "The dragon sleeps under the mill." in texts(limited)
    assert limited("GET", "/health").json()["components"]["collection"] == "lore"
    assert limited("POST", "/search", json={"query": "mill", "collection_name": "secrets"}).status_code == 404
    assert limited("GET", "/knowledge/secrets/search?q=mill").status_code == 404
    hidden = limited("GET", "/health", params={"collection_name": "secrets"}).json()["components"]
    assert (hidden["bm25_index"], hidden["total_documents"]) == ("missing", 0)
    assert limited("POST", "/ingest", json={"collection_name": "lore", "overwrite": True}).status_code == 403


@pytest.mark.req("R-API-07", "R-REL-23")
def test_health_says_what_there_is(rpg: Caller, service: Service) -> None:
    assert rpg("GET", "/health").json() == {
        "status": "healthy",
        "components": {"bm25_index": "missing", "vector_db": "connected", "collection": NAME, "total_documents": 0},
    }
    rpg("POST", "/ingest", json={})
    assert rpg("GET", "/health").json() == {
        "status": "healthy",
        "components": {"bm25_index": "loaded", "vector_db": "connected", "collection": NAME, "total_documents": 3},
    }
    nobody = {"status": "healthy", "components": {"vector_db": "connected"}}
    assert service.client.get("/health").json() == nobody
    assert service.caller("", "admin")("GET", "/health").json() == nobody
    assert service.client.get("/health", headers={"Authorization": "Bearer rgs_x"}).status_code == 401


@pytest.mark.req("R-API-07")
def test_health_says_when_the_store_is_down(rpg: Caller, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreBusy("the store cannot be reached")

    monkeypatch.setattr(type(service.engine), "check_stores", fail)
    for answer in (service.client.get("/health"), rpg("GET", "/health")):
        assert answer.status_code == 503
        assert answer.json() == {"status": "unhealthy", "components": {"vector_db": "unavailable"}}


@pytest.mark.req("R-API-08", "R-API-15")
def test_the_documentation_is_searched_as_the_tool_does(rpg: Caller) -> None:
    rpg.upload(
        "# Guide\n\n## Modules\n\n### Hooks\n\nHooks react to events of the game server.\n", "hooks.md", kb="docs"
    )
    rpg.upload("# Moderation\n\n## Bans\n\nA ban has a reason and an end date.\n", "bans.md", kb="docs")
    answer = rpg("GET", "/knowledge/docs/search?q=what+do+hooks+react+to&thoroughness=balanced&limit=1")
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    assert list(answer.json()) == ["results"]
    assert list(result) == ["content", "source", "section", "relevance"]
    assert "Hooks react to events" in result["content"]
    assert (result["source"], result["section"]) == ("hooks.md", "Modules > Hooks")
    assert result["relevance"].endswith("%")
    assert 0 <= int(result["relevance"][:-1]) <= 100


@pytest.mark.req("R-API-08")
@pytest.mark.parametrize(
    "query", ["q=x&limit=0", "q=x&limit=21", "q=x&thoroughness=deep", "q=", "limit=3", f"q={'x' * 60_000}"]
)
def test_a_wrong_search_of_the_documentation_is_refused(rpg: Caller, query: str) -> None:
    rpg("POST", "/ingest", json={"collection_name": "docs"})
    answer = rpg("GET", f"/knowledge/docs/search?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.parametrize("model", ["text-embedding-3-small", "someone/a-model", "/etc", "../../weights", "x" * 300])
def test_a_request_names_no_model_that_the_service_does_not_have(rpg: Caller, model: str) -> None:
    answer = rpg("POST", "/ingest", json={"embedding_model": model})
    assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")
    assert "embedding_model" in answer.json()["error"]
    assert rpg("POST", "/v1/kbs/lore/reembed", json={"model": model}).status_code == 422
    assert model not in rpg.service.engine._components.embedders._by_name


@pytest.mark.req("R-REL-23", "R-TST-20")
def test_a_service_that_starts_again_finds_the_same(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "corpus.txt").write_text(OLD, encoding="utf-8")
    with serve(data) as first:
        key = first.key("default").token
        caller = Caller(first, key)
        assert caller("POST", "/ingest", json={}).status_code == 200
        before = caller("POST", "/search", json={"query": "lantern at the mill"}).json()
    with serve(data) as second:
        caller = Caller(second, key)
        after = caller("POST", "/search", json={"query": "lantern at the mill"}).json()
        assert after["results"] == before["results"]
        assert len(after["results"]) == 3
        assert caller("GET", "/health").json()["components"]["bm25_index"] == "loaded"
        for name in ("bm25_index.pkl", "chunks.json"):
            assert (data / "indices" / name).read_bytes()[:1] != b"\x80", "a pickle begins like that"


@pytest.mark.req("R-TST-17", "R-TST-18")
@pytest.mark.usefixtures("fake_model")
def test_a_generated_corpus_is_cut_as_its_queries_expect(tmp_path: Path) -> None:
    generator = TestDataGenerator(seed=3)
    data = tmp_path / "data"
    data.mkdir()
    corpus = generator.generate_test_corpus()
    (data / "corpus.txt").write_text(corpus, encoding="utf-8")
    with serve(data, "paragraph", 60) as service:
        caller = service.caller("default")
        assert caller("POST", "/ingest", json={}).json()["result"]["total_chunks"] == 30
        for query in generator.generate_test_queries(corpus):
            found = caller("POST", "/search", json={"query": query.query, "top_k": 30}).json()["results"]
            answers = [hit["metadata"]["chunk_index"] for hit in found if query.is_answered_by(hit["chunk_text"])]
            assert tuple(f"chunk_{index}" for index in answers) == query.expected_chunk_ids

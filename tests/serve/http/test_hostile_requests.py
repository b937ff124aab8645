"""Stores that are down, filters that hold expressions, and queries that are long or made to be slow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.http.conftest import Caller, Service

from ragstone import Settings, open_engine
from ragstone.core.errors import StoreBusy, StoreError
from ragstone.serve.http.app import build_app
from ragstone.testing.fakes import FakeEmbedder

PAGE = "# Gate\n\nThe tide gate opens at nine.\n"
SEARCHES = ("/v1/search", "/search", "/knowledge/default/search")
EXPRESSIONS: tuple[Any, ...] = (
    {"source' OR '1'='1": "x"},
    {"title": {"$ne": None}},
    {"title": {"ne": ""}},
    {"title": {"gte": "", "or": 1}},
    {"$where": "1"},
    {"1=1 --": 1},
    {"title) OR (1": 1},
    {"metadata->>'x'": "y"},
    {"or": []},
    {"or": [{}]},
    {"and": "title"},
    {"not": {}},
    {"not": None},
    {"title": None},
    {"title": {"in": [[1]]}},
    {"title": {"in": list(range(2000))}},
    {"or": [{"a": n} for n in range(50)]},
    {"title": {"eq": {"eq": "x"}}},
    {"x" * 200: 1},
    {"": 1},
)
HOSTILE = (
    "a" * 100_000,
    "(" * 50_000 + ")" * 50_000,
    ("a" * 30 + "!") * 3000,
    "\u0301" * 100_000,
    "what is " * 12_500,
    "\u202e" * 100_000,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        engine = open_engine(Settings(data_dir=tmp_path_factory.mktemp("hostile") / "data", kb="default"))
        with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
            yield Service(client, engine)
            assert client.portal is not None
            client.portal.call(engine.close)


@pytest.fixture(scope="module")
def acme(service: Service) -> Caller:
    caller = service.caller("acme")
    caller.upload(PAGE)
    return caller


def ask(caller: Caller, path: str, query: str, **options: Any) -> Any:
    if path.startswith("/knowledge"):
        return caller("GET", path, params={"q": query})
    place = {"collection_name": "default"} if path == "/search" else {}
    body = json.dumps({"query": query} | place | options)  # escapes what is no Unicode
    return caller("POST", path, content=body, headers={"Content-Type": "application/json"})


def code(answer: Any) -> str:
    return str(answer.json()["code"]).lower()


async def _fail(*_: object) -> None:
    raise StoreBusy("the store cannot be reached")


@pytest.mark.parametrize("path", SEARCHES)
def test_a_vector_store_that_is_down_is_named(
    acme: Caller, service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 12: never 200 with a silent empty list."""
    monkeypatch.setattr(service.engine._components.stores.vectors, "search", _fail)
    answer = ask(acme, path, "when does the tide gate open")
    assert answer.status_code == 200, answer.text
    shown = answer.json().get("hits") or answer.json()["results"]
    assert len(shown) == 1
    assert answer.json()["degraded"] == ["dense: the store cannot be reached"]


@pytest.mark.parametrize("path", SEARCHES)
def test_a_search_without_any_store_is_an_error(
    acme: Caller, service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (service.engine._components.stores.vectors, service.engine._components.stores.lexical):
        monkeypatch.setattr(part, "search", _fail)
    query = f"when does the tide gate open, asked at {path}"  # no cache knows it
    answer = ask(acme, path, query)
    assert (answer.status_code, code(answer)) == (503, "search_failed")
    monkeypatch.undo()
    assert ask(acme, path, query).status_code == 200


@pytest.mark.parametrize("path", SEARCHES)
def test_a_ledger_that_is_down_is_an_error(
    acme: Caller, service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the database is gone")

    monkeypatch.setattr(service.engine._components.ledger, "of", fail)
    answer = ask(acme, path, "when does the tide gate open")
    assert (answer.status_code, code(answer)) == (503, "store_failed")


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda expression: f"{expression!r:.30}")
def test_a_filter_that_holds_an_expression_is_refused(acme: Caller, expression: Any) -> None:
    """Fault 33."""
    for path, name in (("/v1/search", "where"), ("/search", "filters")):
        answer = ask(acme, path, "tide gate", **{name: expression})
        assert (answer.status_code, code(answer)) == (422, "invalid_filter"), answer.text


@pytest.mark.parametrize(
    "wanted",
    [
        *({"title": value} for value in ("x' OR '1'='1", "%", "*", '"} or {"', "x\x00")),
        {"title": {"in": ["%", "' OR 1"]}},
        {"title": {"in": []}},
        {"n": 10**40},
    ],
    ids=range(8),
)
def test_a_value_of_a_filter_is_data(acme: Caller, wanted: Any) -> None:
    for path, name in (("/v1/search", "where"), ("/search", "filters")):
        answer = ask(acme, path, "tide gate", **{name: wanted})
        shown = answer.json()["results" if path == "/search" else "hits"]
        assert (answer.status_code, shown) == (200, [])


def test_half_a_character_in_a_filter_is_refused(acme: Caller) -> None:
    for path, name in (("/v1/search", "where"), ("/search", "filters")):
        assert ask(acme, path, "tide gate", **{name: {"title": "\ud800"}}).status_code == 422


def test_no_filter_reaches_another_tenant(acme: Caller, service: Service) -> None:
    globex = service.caller("globex")
    globex.upload("# Pier\n\nThe pier closes at ten.\n", "pier.md")
    widening: tuple[Any, ...] = (
        {"tenant": "acme"},
        {"tenant_id": "acme"},
        {"or": [{"title": "Pier"}, {"tenant": "acme"}]},
        {"not": {"title": "Pier"}},
        {"kb": "default", "tenant": {"in": ["acme", "globex"]}},
    )
    for expression in widening:
        for path, name in (("/v1/search", "where"), ("/search", "filters")):
            answer = ask(globex, path, "tide gate opens", **{name: expression})
            assert "tide gate" not in str(answer.json().get("hits") or answer.json().get("results"))


@pytest.mark.parametrize("depth", [100, 900, 20_000])
def test_a_body_that_is_nested_deeply_is_refused(acme: Caller, depth: int) -> None:
    nested = '{"not":' * depth + '{"title":"x"}' + "}" * depth
    for path, name in (("/v1/search", "where"), ("/search", "filters")):
        body = f'{{"query": "x", "{name}": {nested}}}'
        answer = acme("POST", path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), answer.text


@pytest.mark.parametrize("depth", [100, 900, 20_000])
def test_deep_json_in_a_form_or_an_address_is_refused(acme: Caller, depth: int) -> None:
    nested = '{"not":' * depth + '{"title":"x"}' + "}" * depth
    form = {"files": {"file": ("deep.md", PAGE.encode())}, "data": {"metadata": nested}}
    assert code(acme("POST", "/v1/documents", **form)) == "invalid_input"
    if depth < 1000:
        assert code(acme("GET", "/v1/documents", params={"where": nested})) in ("invalid_input", "invalid_filter")
    body = f'{{"kind": "web", "name": "deep", "config": {nested}}}'
    source = acme("POST", "/v1/sources", content=body, headers={"Content-Type": "application/json"})
    assert source.status_code in (400, 422), source.text


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_an_endless_query_is_refused(acme: Caller, query: str) -> None:
    """Fault 34: before anything looks at it."""
    fake: Any = acme.service.engine._components.embedder
    before = len(fake.calls)
    for path, name in (
        ("/v1/search", "query"),
        ("/v1/ask", "question"),
        ("/v1/verify", "claim"),
        ("/v1/research", "topic"),
        ("/search", "query"),
    ):
        answer = acme("POST", path, json={name: query})
        assert answer.status_code == 422, (path, answer.text[:200])
    assert len(fake.calls) == before


def test_a_query_without_a_word_is_no_fault_of_the_service(acme: Caller) -> None:
    """The model of these tests knows words only."""
    assert acme("POST", "/v1/search", json={"query": "!?"}).status_code == 200
    for body in ({"query": "!?", "arms": "dense"}, {"query": "%%", "arms": "dense"}):
        assert acme("POST", "/v1/search", json=body).status_code == 422
    assert ask(acme, "/search", "!?", use_hybrid=False).status_code == 422


def test_a_query_of_the_greatest_length_is_answered(acme: Caller) -> None:
    most = acme.service.engine.settings.limits.query_chars
    for text in ("a" * most, "(" * most, ("a" * 29 + "!") * (most // 30), "tide " * (most // 5), "%" * most):
        answer = acme("POST", "/v1/search", json={"query": text[:most]})
        assert answer.status_code in (200, 422), answer.text

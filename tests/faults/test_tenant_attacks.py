"""Two tenants, one of them hostile: what it plants, guesses and forges brings it nothing of the other's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.search import SearchQuery
from ragstone.core.types import Candidate, KnowledgeBase, Vector
from ragstone.core.vectors import RESERVED, VectorPartition
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.partitions import partition_of
from ragstone.testing.fakes import FakeEmbedder

postgres_databases = postgres_server.postgres_databases
VICTIM, THIEF = "acme", "acme_v2"
KB = "notes"
SECRET = "The vault opens with zanzibar."
SHARED = "The harbour opens at six."
PROVIDERS = {
    "memory-filter": {"vectors": "memory", "isolation": "filter"},
    "qdrant-filter": {"vectors": "qdrant", "isolation": "filter"},
    "qdrant-namespace": {"vectors": "qdrant", "isolation": "namespace"},
    "chroma-filter": {"vectors": "chroma", "isolation": "filter"},
}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    fake = FakeEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake


@pytest.fixture(params=["sqlite", "postgres", *PROVIDERS])
async def engine(request: pytest.FixtureRequest, model: FakeEmbedder, tmp_path: Path) -> AsyncIterator[Engine]:
    """Both tenants have the shared document; the victim has a secret."""
    store = PROVIDERS.get(request.param, {})
    if request.param == "postgres":
        store = {"ledger": {"kind": "postgres", "dsn": server(18).database(tmp_path)}}
    async with open_engine(Settings(data_dir=tmp_path / "data", store=store)) as opened:
        await opened.workspace(VICTIM).documents.ingest_items([item("secret", SECRET), item("shared", SHARED)], kb=KB)
        await opened.workspace(THIEF).documents.ingest_items([item("shared", SHARED)], kb=KB)
        yield opened


def item(name: str, text: str, /, **metadata: Any) -> Item:
    return Item("desk", name, name, text, metadata=metadata)


async def kb_of(engine: Engine, tenant: str) -> KnowledgeBase:
    (found,) = await engine.workspace(tenant).knowledge_bases.list()
    return found


async def chunk_ids(engine: Engine, tenant: str) -> set[str]:
    return {hit.chunk_id for hit in (await engine.workspace(tenant).search(SearchQuery("opens", k=100, kb=KB))).hits}


async def texts(engine: Engine, tenant: str, query: str = "zanzibar opens", **options: Any) -> list[str]:
    result = await engine.workspace(tenant).search(SearchQuery(query, k=100, kb=KB, **options))
    assert result.degraded == ()
    return sorted(hit.text for hit in result.hits)


async def everything(engine: Engine, tenant: str) -> list[Any]:
    """All that a tenant can see, to the last digit; only times are left out."""
    seen: list[Any] = [
        await engine.workspace(tenant).knowledge_bases.stats(kb=KB),
        await engine.workspace(tenant).documents.list(kb=KB),
    ]
    for arms in ("dense", "lexical", "hybrid"):
        result = await engine.workspace(tenant).search(SearchQuery("harbour opens zanzibar", k=100, arms=arms, kb=KB))
        seen.append(result.hits)
    for document in seen[1]:
        explained = await engine.workspace(tenant).explain(SearchQuery("harbour opens", kb=KB), document.id)
        seen += [explained, await engine.workspace(tenant).documents.chunks(document.id)]
    return [*seen, await engine.workspace(tenant).knowledge_bases.list(), await engine.tenants.usage(tenant)]


@pytest.mark.req("R-TEN-18", "R-REL-14")
async def test_what_another_tenant_does_changes_nothing(engine: Engine) -> None:
    before = await everything(engine, VICTIM)
    for number in range(3):
        many = [item(f"d{n}", f"The harbour opens {number} times. " * (n + 1)) for n in range(20)]
        await engine.workspace(THIEF).documents.ingest_items(many, kb=KB)
    for document in await engine.workspace(THIEF).documents.list(kb=KB, limit=5):
        await engine.workspace(THIEF).documents.delete(document.id)
    assert await everything(engine, VICTIM) == before
    await engine.workspace(THIEF).knowledge_bases.delete(KB)
    assert await everything(engine, VICTIM) == before
    await engine.tenants.delete(THIEF)
    assert await everything(engine, VICTIM) == before


@pytest.mark.req("R-TEN-18", "R-REL-14")
async def test_metadata_that_claims_to_be_anothers(engine: Engine) -> None:
    victim = await engine.tenants.get(VICTIM)
    assert victim is not None
    space = (await kb_of(engine, VICTIM)).space
    assert space is not None
    stolen = dict.fromkeys(RESERVED, "x") | {"tenant_id": victim.id, "space": f"s{space.id}"}
    await engine.workspace(THIEF).documents.ingest_items(
        [item("planted", "The vault opens with a lie.", **stolen)], kb=KB
    )
    assert await texts(engine, VICTIM) == [SHARED, SECRET]
    assert await texts(engine, THIEF) == [SHARED, "The vault opens with a lie."]


@pytest.mark.req("R-TEN-18", "R-REL-14", "R-TST-33")
@pytest.mark.parametrize("arms", ["dense", "lexical", "hybrid"])
async def test_a_filter_does_not_reach_beyond_the_tenant(engine: Engine, arms: str) -> None:
    victim = await engine.tenants.get(VICTIM)
    assert victim is not None
    documents = [one.id for one in await engine.workspace(VICTIM).documents.list(kb=KB)]
    for where in (
        {"tenant_id": victim.id},
        {"or": [{"tenant_id": victim.id}, {"external_id": "secret"}]},
        {"not": {"tenant_id": "nobody"}},
        {"not": {"external_id": "shared"}},
        {"document_id": {"in": documents}},
        {"chunk_id": {"in": sorted(await chunk_ids(engine, VICTIM))}},
    ):
        assert set(await texts(engine, THIEF, arms=arms, where=where)) <= {SHARED}
        listed = await engine.workspace(THIEF).documents.list(where=where, kb=KB)
        assert {one.id for one in listed}.isdisjoint(documents)


@pytest.mark.req("R-TEN-18")
async def test_the_same_document_is_made_anew_for_each(engine: Engine, model: FakeEmbedder) -> None:
    """How long it takes to ingest a text must not tell whether somebody else has it."""
    model.calls.clear()
    await engine.workspace(THIEF).documents.ingest_items([item("guess", SECRET)], kb=KB)
    assert [batch for batch, role in model.calls if role == "document"] == [(SECRET,)]
    ledger = engine._components.ledger
    own = await kb_of(engine, THIEF)
    assert set(await ledger.of(THIEF).known_vectors(own, [SECRET, SHARED])) == {SECRET, SHARED}
    await engine.workspace(THIEF).knowledge_bases.delete(KB)
    await engine.workspace(THIEF).documents.ingest_items([item("shared", SHARED)], kb=KB)
    assert set(await ledger.of(THIEF).known_vectors(await kb_of(engine, THIEF), [SECRET, SHARED])) == {SHARED}
    twins = [(await engine.workspace(tenant).documents.list(kb=KB)) for tenant in (VICTIM, THIEF)]
    assert {one.id for one in twins[0]}.isdisjoint(one.id for one in twins[1])
    assert await texts(engine, VICTIM) == [SHARED, SECRET]


@pytest.mark.req("R-TEN-18", "R-TEN-07", "R-TST-33")
async def test_a_kb_of_another_tenant_opens_nothing(engine: Engine) -> None:
    """Every read names the tenant: what else it names cannot widen it."""
    parts = engine._components
    theirs, stolen = await chunk_ids(engine, VICTIM), await kb_of(engine, VICTIM)
    assert stolen.space is not None
    vector: Vector = (await parts.embedder.embed([SECRET], "query")).vectors[0]
    for forged in (stolen, replace(stolen, name="x"), replace(stolen, space=replace(stolen.space, id=1))):
        found = await parts.stores.vectors.search(THIEF, forged, vector, 100)
        found += await parts.stores.lexical.search(THIEF, forged, "zanzibar opens", 100)
        assert theirs.isdisjoint(one.chunk_id for one in found)
        assert await parts.ledger.of(THIEF).chunks(forged, sorted(theirs)) == {}
        assert SECRET not in await parts.ledger.of(THIEF).known_vectors(forged, [SECRET])
        assert {one.title for one in await parts.ledger.of(THIEF).documents(forged)} <= {"shared"}


@pytest.mark.req("R-TEN-09", "R-TEN-18", "R-TST-33")
async def test_files_of_the_same_bytes_are_each_tenants_own(engine: Engine) -> None:
    taken = [await engine.workspace(who).documents.upload(b"Zanzibar.", "z.txt", kb=KB) for who in (VICTIM, THIEF)]
    assert taken[0].document_id != taken[1].document_id
    ledger = engine._components.ledger
    (job,) = await engine.workspace(VICTIM).jobs.list()
    named = [(taken[0].document_id, job.facts["original"])]
    assert await ledger.of(VICTIM).originals(named) == [b"Zanzibar."]
    for guess in (*named, (f"../{taken[0].document_id}", job.facts["original"])):
        assert await ledger.of(THIEF).originals([guess]) == [None]
    await ledger.of(THIEF).drop_originals(named)
    await engine.workspace(THIEF).knowledge_bases.delete(KB)
    assert await ledger.of(VICTIM).originals(named) == [b"Zanzibar."]


@pytest.mark.req("R-TEN-18")
async def test_ids_of_a_tenant_that_is_gone_are_nobody_s(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.stores.control.tenant_rows.REST_SECONDS", 0)
    documents = await engine.workspace(VICTIM).documents.list(kb=KB)
    chunks = await chunk_ids(engine, VICTIM)
    await engine.tenants.delete(VICTIM)
    await engine.workspace(VICTIM).documents.ingest_items([item("other", SHARED)], kb=KB)
    kb = await kb_of(engine, VICTIM)
    assert await engine._components.ledger.of(VICTIM).chunks(kb, sorted(chunks)) == {}
    for document in documents:
        assert await engine.workspace(VICTIM).documents.delete(document.id) is False
    assert await texts(engine, VICTIM) == [SHARED]
    assert await texts(engine, THIEF) == [SHARED]


@pytest.mark.req("R-REL-14")
@pytest.mark.parametrize("engine", list(PROVIDERS), indirect=True)
async def test_a_place_of_another_tenant_is_out_of_reach(engine: Engine) -> None:
    provider, places = await provider_and_places(engine)
    theirs = sorted(await chunk_ids(engine, VICTIM))
    vector: Vector = (await engine._components.embedder.embed([SECRET], "query")).vectors[0]
    found = await provider.search(places[THIEF], vector, 100)
    assert {one.chunk_id for one in found} == await chunk_ids(engine, THIEF)
    assert await provider.read(places[THIEF], theirs) == []
    await provider.delete(places[THIEF], theirs)
    assert await provider.count(places[VICTIM]) == len(theirs)
    await provider.drop(places[THIEF])
    assert await provider.count(places[VICTIM]) == len(theirs)
    assert await texts(engine, VICTIM, arms="dense") == [SHARED, SECRET]


@pytest.mark.req("R-REL-14", "R-TEN-18")
@pytest.mark.parametrize("engine", list(PROVIDERS), indirect=True)
async def test_an_engine_that_answers_with_anothers_chunks_is_not_believed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, places = await provider_and_places(engine)
    search = provider.search

    async def confused(place: VectorPartition, vector: Vector, k: int, where: Any = None) -> Sequence[Candidate]:
        assert place == places[THIEF]
        return await search(places[VICTIM], vector, k, where)

    monkeypatch.setattr(provider, "search", confused)
    assert await texts(engine, THIEF, arms="dense") == [SHARED]


async def provider_and_places(engine: Engine) -> tuple[Any, dict[str, VectorPartition]]:
    """The vector database, and where in it each tenant's vectors are."""
    index = engine._components.stores.vectors
    assert isinstance(index, DerivedIndex)
    places = {}
    for name in (VICTIM, THIEF):
        tenant, kb = await engine.tenants.get(name), await kb_of(engine, name)
        assert tenant is not None
        assert kb.space is not None
        places[name] = partition_of(tenant.id, kb.space)
    return index.provider, places

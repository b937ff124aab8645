"""What is remembered of searches and answers never differs from what a fresh search would say."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from ragstone import Engine, Item, Ragstone, SearchResult, Settings, open_engine
from ragstone.agents.toolbox import Toolbox
from ragstone.core.errors import TenantSuspended
from ragstone.core.search import Question, SearchQuery
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

TENANTS = st.sampled_from(["acme", "globex"])
WORDS = ["ferry", "pier", "lamp", "fog", "nine"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, cache={"answers": True})) as opened:
        yield opened


def letter(name: str, text: str) -> Item:
    return Item("letters", name, f"letters/{name}", text, title=name.title())


def is_cached(found: SearchResult) -> bool:
    return found.trace[-1].stage == "cache"  # on a busy machine the wait for a turn comes first


@pytest.mark.req("R-MOD-13", "R-MOD-15")
async def test_a_repeated_search_is_remembered_until_something_changes(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items(
        [letter("ferry", "The ferry leaves at nine."), letter("pier", "The pier has lamps.")]
    )
    first = await workspace_of(engine).search("ferry")
    again = await workspace_of(engine).search("ferry")
    assert (is_cached(first), is_cached(again), again.hits) == (False, True, first.hits)
    await workspace_of(engine).documents.delete(first.hits[0].document_id)
    after = await workspace_of(engine).search("ferry")
    assert not is_cached(after)
    assert first.hits[0].document_id not in {hit.document_id for hit in after.hits}


@pytest.mark.req("R-MOD-15")
async def test_a_change_by_another_process_is_noticed(data_dir: Path, engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([letter("ferry", "The ferry leaves at nine.")])
    await workspace_of(engine).search("ferry")
    async with open_engine(Settings(data_dir=data_dir)) as other:
        await workspace_of(other).documents.ingest_items([letter("ferry", "The ferry leaves at ten.")])
    assert [hit.text for hit in (await workspace_of(engine).search("ferry")).hits] == [
        "Ferry\n\nThe ferry leaves at ten."
    ]


@pytest.mark.req("R-MOD-16")
async def test_a_tenant_never_gets_what_another_one_found(engine: Engine) -> None:
    for tenant, hour in (("acme", "nine"), ("globex", "ten")):
        await engine.workspace(tenant).documents.ingest_items([letter("ferry", f"The ferry leaves at {hour}.")])
    for _ in range(2):
        for tenant, hour in (("acme", "nine"), ("globex", "ten")):
            (hit,) = (await engine.workspace(tenant).search("ferry")).hits
            assert hour in hit.text
            answer = await engine.workspace(tenant).ask("When does the ferry leave?")
            assert hour in answer.answer


async def test_a_tenants_own_settings_make_another_search(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items(
        [letter("ferry", "The ferry leaves at nine."), letter("pier", "The ferry pier.")]
    )
    assert len((await workspace_of(engine).search("ferry")).hits) == 2
    await engine.tenants.set_settings("default", {"retrieval.k": 1})
    assert len((await workspace_of(engine).search("ferry")).hits) == 1


async def test_an_answer_is_given_again_until_its_evidence_changes(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([letter("ferry", "The ferry leaves at nine.")])
    first = await workspace_of(engine).ask(Question("When does the ferry leave?", k=1))
    await workspace_of(engine).documents.ingest_items([letter("lamp", "The lamp is green.")])
    again = await workspace_of(engine).ask(Question("when does the ferry leave", k=1))
    assert replace(again, question=first.question) == first
    await workspace_of(engine).documents.ingest_items([letter("ferry", "The ferry leaves at ten.")])
    assert "ten" in (await workspace_of(engine).ask(Question("When does the ferry leave?", k=1))).answer


@pytest.mark.req("R-MOD-17")
def test_a_session_of_a_script_searches_once(data_dir: Path, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir=data_dir, cache={"search_seconds": 0}) as stone:
        stone.ingest_items([letter("ferry", "The ferry leaves at nine.")])
        session = stone.session()
        first = session.search("ferry")
        assert session.search(" ferry ") == first  # with the same `took_ms`, so it was not made again
        stone.delete(first.hits[0].document_id)
        assert session.search("ferry").hits == ()


@pytest.mark.req("R-MOD-16", "R-MOD-17")
@pytest.mark.parametrize("way", ["erase", "rename"])
async def test_who_takes_a_name_over_gets_nothing_of_who_had_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("ragstone.stores.control.tenant_rows.REST_SECONDS", 0)  # as if ten minutes had passed
    await engine.workspace("acme").documents.ingest_items([letter("ferry", "The ferry leaves at nine.")])
    session, box = engine.workspace("acme").session(), Toolbox(engine.workspace("acme"), ["search_knowledge"])
    await session.search("ferry")
    await engine.workspace("acme").search("ferry")
    await box.value("search_knowledge", {"query": "ferry"})
    if way == "erase":
        await engine.erase_tenant("acme")
    else:
        await engine.tenants.rename("acme", "apex")
    await engine.workspace("acme").documents.ingest_items([letter("pier", "The pier has lamps.")])
    (found,) = (await session.search("ferry")).hits
    (fresh,) = (await engine.workspace("acme").search("ferry")).hits
    (passage,) = await box.again().value("search_knowledge", {"query": "ferry"})
    assert {found.title, fresh.title, passage["parent_doc_id"]} == {"Pier", found.document_id}


async def test_a_suspended_tenant_is_told_nothing_that_is_remembered(engine: Engine) -> None:
    await engine.workspace("acme").documents.ingest_items([letter("ferry", "The ferry leaves at nine.")])
    session = engine.workspace("acme").session()
    await session.search("ferry")
    await engine.tenants.suspend("acme")
    with pytest.raises(TenantSuspended):
        await session.search("ferry")


async def test_what_a_caller_changes_is_not_given_to_the_next(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([letter("ferry", "The ferry leaves at nine.")])
    for cached in (False, True, True):
        found = await workspace_of(engine).search("ferry")
        facts: Any = found.hits[0].metadata
        assert (is_cached(found), "access" in facts) == (cached, False)
        facts["access"] = "poison"


class Interleavings(RuleBasedStateMachine):
    """Two tenants take in, delete and search in any order; each search is compared with an uncached one."""

    documents = Bundle("documents")

    @initialize()
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        place = Path(self.folder.name) / "data"
        self.cached = self._opened(place, 600.0)
        self.fresh = self._opened(place, 0.0)
        for tenant in ("acme", "globex"):
            self._run(self.cached.workspace(tenant).documents.ingest_items([letter("first", f"{tenant} ferry")]))

    def _opened(self, place: Path, seconds: float) -> Engine:
        async def opened() -> Engine:
            # What is cut short on a busy machine is not cached.
            patient = {"timeout": 60.0}
            return open_engine(Settings(data_dir=place, cache={"search_seconds": seconds}, retrieval=patient))

        return self._run(opened())

    def _run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @rule(target=documents, tenant=TENANTS, name=st.sampled_from(["a", "b", "c"]), text=TEXTS)
    def ingest(self, tenant: str, name: str, text: str) -> Any:
        self._run(self.cached.workspace(tenant).documents.ingest_items([letter(name, text)]))
        listed = self._run(self.cached.workspace(tenant).documents.list())
        return multiple(*((tenant, one.id) for one in listed if one.external_id == name))

    @rule(document=consumes(documents))
    def delete(self, document: tuple[str, str]) -> None:
        tenant, name = document
        self._run(self.cached.workspace(tenant).documents.delete(name))

    @rule(tenant=TENANTS, query=st.sampled_from(WORDS), k=st.sampled_from([1, 10]))
    def search(self, tenant: str, query: str, k: int) -> None:
        remembered = self._run(self.cached.workspace(tenant).search(SearchQuery(query, k=k)))
        new = self._run(self.fresh.workspace(tenant).search(SearchQuery(query, k=k)))
        assert (remembered.hits, remembered.rewritten_query) == (new.hits, new.rewritten_query)

    @invariant()
    def what_was_asked_before_is_answered_as_it_is_now(self) -> None:
        if hasattr(self, "cached"):
            for tenant, other in (("acme", "globex"), ("globex", "acme")):
                self.search(tenant, "acme globex ferry pier", 10)
                found = self._run(self.cached.workspace(tenant).search("acme globex ferry pier"))
                assert is_cached(found)
                assert all(f"{other} ferry" not in hit.text for hit in found.hits)

    def teardown(self) -> None:
        if hasattr(self, "cached"):
            self._run(self.cached.close())
            self._run(self.fresh.close())
            self.patch.undo()
            self.folder.cleanup()
            self.loop.close()


@pytest.mark.req("R-MOD-15", "R-MOD-16")
def test_whatever_comes_between_a_cached_search_equals_an_uncached_one() -> None:
    run_state_machine_as_test(
        Interleavings, settings=hypothesis_settings(max_examples=5, stateful_step_count=6, deadline=None)
    )

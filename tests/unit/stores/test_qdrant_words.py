"""The keyword arm in Qdrant's points, from the settings to doctor: nothing is lost, nothing stays behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server

from ragstone.core.errors import SettingsError, StoreBusy
from ragstone.core.filters import parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import collect_notes
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.core.vectors import VectorPartition, Words
from ragstone.settings.tree import Settings
from ragstone.stores.factory import Stores, open_stores
from ragstone.stores.health.check import examine
from ragstone.stores.ledger import index_feed
from ragstone.stores.lexical.qdrant import QdrantLexicalIndex
from ragstone.stores.vectors.partitions import partition_of
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import delete, make_version, put, unit_vectors

postgres_databases = postgres_server.postgres_databases
EDGE: dict[str, Any] = {"kind": "qdrant", "options": {"engine": "edge"}}


def opened(folder: Path, *, lexical: str = "qdrant", **store: Any) -> Stores:
    settings = {"data_dir": folder, "store": {"vectors": EDGE, "lexical": lexical, **store}}
    return open_stores(Settings.model_validate(settings))


def engine_of(stores: Stores) -> QdrantProvider:
    assert stores.derived is not None
    assert isinstance(stores.derived.provider, QdrantProvider)
    return stores.derived.provider


async def place(stores: Stores, kb: KnowledgeBase) -> VectorPartition:
    assert kb.space is not None
    return partition_of(await stores.ledger.read("default", lambda _, tenant_id: tenant_id), kb.space)


async def found(stores: Stores, kb: KnowledgeBase, query: str, **options: Any) -> list[str]:
    """Titles of what is found by Qdrant: the ledger may not answer in its place."""
    with collect_notes() as said:
        hits = await stores.lexical.search("default", kb, query, options.pop("k", 10), **options)
    assert said == []
    live = await stores.ledger.of("default").chunks(kb, [one.chunk_id for one in hits])
    return [live[one.chunk_id].title.removeprefix("Title of ") for one in hits]


def only_qdrant(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[Candidate]:
        raise AssertionError("the ledger was asked for words")

    monkeypatch.setattr("ragstone.stores.lexical.qdrant._search_own", refuse)


@pytest.mark.parametrize(
    ("store", "said", "hint"),
    [
        ({"vectors": "sqlite"}, "lies in the points of store.vectors: qdrant", "store.vectors: qdrant"),
        ({"vectors": "memory"}, "and that is memory", "store.vectors: qdrant"),
        ({"isolation": "namespace"}, "cannot keep tenants apart by 'namespace'", "isolation: collection"),
        ({"lexical": {"kind": "qdrant", "url": "http://q"}}, "store.lexical.url means nothing", "vectors do"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, store: dict[str, Any], said: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        opened(tmp_path, **store)
    assert hint in refused.value.hint


@pytest.mark.req("R-STO-17")
async def test_chunks_with_and_without_a_vector_are_found_by_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_qdrant(monkeypatch)
    stores = opened(tmp_path)
    assert isinstance(stores.lexical, QdrantLexicalIndex)
    search_words, inside = QdrantProvider.search_words, []

    async def watched(self: QdrantProvider, at: VectorPartition, words: Words, k: int, where: Any = None) -> Any:
        inside.append(where)
        return await search_words(self, at, words, k, where)

    monkeypatch.setattr(QdrantProvider, "search_words", watched)
    kb = await put(
        stores.ledger,
        make_version("both", ("a map of the harbour",), vectors=unit_vectors(1)),
        make_version("words", ("the harbour at night",), metadata={"lang": "de"}),
        make_version("other", ("nothing of interest",), vectors=unit_vectors(1, seed=2)),
    )
    assert sorted(await found(stores, kb, "harbour")) == ["both", "words"]
    german = parse_filter({"lang": "de"})
    assert await found(stores, kb, "harbour", where=german) == ["words"]
    assert inside[-1] == german
    # Qdrant has no order of texts: the ledger filters what it finds.
    assert await found(stores, kb, "harbour", where=parse_filter({"lang": {"gte": "d"}})) == ["words"]
    assert inside[-1] is None
    near = await stores.vectors.search("default", kb, unit_vectors(1)[0], 10)
    assert len(near) == 2
    assert await engine_of(stores).count(await place(stores, kb)) == 3
    await delete(stores.ledger, make_version("words").document_id)
    assert await found(stores, kb, "harbour") == ["both"]
    assert await engine_of(stores).count(await place(stores, kb)) == 2
    findings = await examine(stores)
    assert [one.detail for one in findings if one.store == "qdrant" and one.state != "ok"] == []
    await stores.close()


async def test_what_was_made_without_words_is_built_anew_by_doctor(tmp_path: Path) -> None:
    before = opened(tmp_path, lexical="sqlite")
    versions = [make_version(f"d{n}", (f"harbour {n}",), vectors=unit_vectors(1, seed=n)) for n in range(3)]
    kb = await put(before.ledger, *versions)
    await before.close()
    for lexical in ("qdrant", "sqlite", "qdrant"):
        stores = opened(tmp_path, lexical=lexical)
        with collect_notes() as said:
            assert len(await stores.lexical.search("default", kb, "harbour", 5)) == 3
            assert len(await stores.vectors.search("default", kb, unit_vectors(1)[0], 5)) == 3
        assert "with words" in "".join(said) or "without words" in "".join(said)
        (wrong,) = [one for one in await examine(stores) if one.what == "words"]
        assert (wrong.state, wrong.remedy) == ("fail", Remedy(Action.REPAIR_STORES))
        (mended,) = [one for one in await examine(stores, repair=True) if one.what == "words"]
        assert mended.repair == "filled again from the ledger, with 3 vectors"
        await stores.close()
        again = opened(tmp_path, lexical=lexical)
        assert len(await found(again, kb, "harbour")) == 3
        assert [one.what for one in await examine(again) if one.store == "qdrant" and one.state != "ok"] == []
        await again.close()


async def test_doctor_finds_and_writes_chunks_without_a_vector(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    kb = await put(
        stores.ledger, make_version("a", ("harbour",), vectors=unit_vectors(1)), make_version("b", ("harbour again",))
    )
    lost = (await stores.ledger.of("default").document_chunks(make_version("b").document_id))[0].id
    await engine_of(stores).delete(await place(stores, kb), [lost])
    (missing,) = [one for one in await examine(stores) if one.what == "missing"]
    assert missing.detail.endswith("1 live chunks of 'default' are not there")
    await examine(stores, repair=True)
    assert sorted(await found(stores, kb, "harbour")) == ["a", "b"]
    await stores.close()


async def test_a_folder_that_was_lost_is_filled_again(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("a", ("harbour",)), make_version("b", vectors=unit_vectors(1)))
    at = await place(stores, kb)
    lost = await _only_chunk(stores, make_version("a").document_id)
    await engine_of(stores).delete(at, [lost])
    await stores.close()
    again = opened(tmp_path)
    assert await found(again, kb, "harbour") == ["a"]
    await again.close()


async def test_while_the_engine_is_away_the_ledger_finds_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("a", ("harbour",), vectors=unit_vectors(1)))
    assert await found(stores, kb, "harbour") == ["a"]

    async def down(*_: object, **__: object) -> list[Candidate]:
        raise StoreBusy("Qdrant at q cannot be reached")

    monkeypatch.setattr(QdrantProvider, "search_words", down)
    with collect_notes() as said:
        assert len(await stores.lexical.search("default", kb, "harbour", 5)) == 1
    assert said == ["qdrant could not be asked, and the ledger answers in its place: Qdrant at q cannot be reached"]
    await stores.close()


@pytest.mark.parametrize("leave", ["tenant", "kb"])
async def test_nothing_of_what_was_erased_stays(tmp_path: Path, leave: str) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("a", ("harbour",)), make_version("b", vectors=unit_vectors(1)))
    at = await place(stores, kb)
    assert await engine_of(stores).count(at) == 2
    if leave == "kb":
        async with stores.ledger.transaction("default") as transaction:
            await transaction.delete_kb("default")
        rows = await stores.ledger.read("default", _words_counters)
        assert rows == 0
    else:
        await stores.tenants.delete("default")
    assert await engine_of(stores).count(at) == 0
    await stores.close()


def _words_counters(connection: Any, tenant_id: str) -> int:
    row = connection.execute("SELECT count(*) FROM counters WHERE name LIKE 'words.%'").fetchone()
    return int(row[0])


async def test_another_space_has_the_words_too(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("a", ("harbour",), vectors=unit_vectors(1)))
    space = await stores.spaces.of("default").open(kb, "other@1", 8)
    await stores.ledger.catch_up("default")
    records = await stores.spaces.of("default").all(kb)
    assert {one.space.id for one in records} >= {space.id}
    tenant_id = await stores.ledger.read("default", lambda _, tenant_id: tenant_id)
    (point,) = await engine_of(stores).read(
        partition_of(tenant_id, space), [await _only_chunk(stores, make_version("a").document_id)]
    )
    assert len(point.vector) == 0
    assert point.words is not None
    await stores.close()


async def _only_chunk(stores: Stores, document_id: str) -> str:
    (chunk,) = await stores.ledger.of("default").document_chunks(document_id)
    return chunk.id


async def test_words_are_weighed_anew_when_chunks_become_longer(tmp_path: Path) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("first", ("harbour",), vectors=unit_vectors(1)))
    assert kb.space is not None
    assert await stores.ledger.read("default", index_feed.word_length, kb.space.id) == (5 * 100 + 1) / 6
    one = await _only_chunk(stores, make_version("first").document_id)
    (early,) = await engine_of(stores).read(await place(stores, kb), [one])
    await put(stores.ledger, *(make_version(f"d{n}", ("map " * 400,)) for n in range(60)))
    average = await stores.ledger.read("default", index_feed.word_length, kb.space.id)
    assert average == pytest.approx((5 * 100 + 60 * 400 + 1) / 66, rel=0.05)
    (late,) = await engine_of(stores).read(await place(stores, kb), [one])
    assert early.words is not None
    assert late.words is not None
    assert late.words.weights[0] > early.words.weights[0]
    await stores.close()


async def test_weighing_anew_starts_over_when_it_was_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = opened(tmp_path)
    kb = await put(stores.ledger, make_version("first", ("harbour",), vectors=unit_vectors(1)))
    one = await _only_chunk(stores, make_version("first").document_id)
    (early,) = await engine_of(stores).read(await place(stores, kb), [one])
    upsert = QdrantProvider.upsert
    written: list[int] = []

    async def dies(self: QdrantProvider, at: VectorPartition, points: Any) -> None:
        written.append(len(points))
        if len(written) > 1:
            raise StoreBusy("killed")
        await upsert(self, at, points)

    monkeypatch.setattr(QdrantProvider, "upsert", dies)
    await put(stores.ledger, *(make_version(f"d{n}", ("map " * 400,)) for n in range(60)))
    assert written == [60, 61]
    monkeypatch.setattr(QdrantProvider, "upsert", upsert)
    await stores.ledger.catch_up("default")
    (late,) = await engine_of(stores).read(await place(stores, kb), [one])
    assert early.words is not None
    assert late.words is not None
    assert late.words.weights[0] > early.words.weights[0]
    await stores.close()


async def test_words_of_a_postgres_ledger_are_found_in_qdrant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_qdrant(monkeypatch)
    dsn = postgres_server.server(18).database(tmp_path)
    stores = opened(tmp_path, ledger={"kind": "postgres", "dsn": dsn})
    kb = await put(
        stores.ledger,
        make_version("both", ("a map of the harbour",), vectors=unit_vectors(1)),
        make_version("words", ("the harbour at night",)),
        *(make_version(f"d{n}", ("map " * 400,)) for n in range(30)),
    )
    assert sorted(await found(stores, kb, "harbour")) == ["both", "words"]
    await delete(stores.ledger, make_version("words").document_id)
    assert await found(stores, kb, "harbour") == ["both"]
    monkeypatch.undo()
    monkeypatch.setattr(QdrantProvider, "search_words", _down)
    with collect_notes() as said:
        assert len(await stores.lexical.search("default", kb, "harbour", 5)) == 1
    assert "the ledger answers in its place" in said[0]
    await stores.close()


async def _down(*_: object, **__: object) -> list[Candidate]:
    raise StoreBusy("Qdrant at q cannot be reached")

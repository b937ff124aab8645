"""The five profiles on the store that each of them names, and one corpus on every store, by configuration only."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server
from tests.serve.cli import conftest as command_line

from ragstone import open_engine
from ragstone.settings.load import load_settings
from ragstone.settings.retrieval import RerankingSettings
from ragstone.settings.tree import EmbeddingSettings, Settings
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.partitions import partition_of
from ragstone.testing.fakes import FakeEmbedder, FakeReranker
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
own_place, pages = command_line.own_place, command_line.pages
Cli = Callable[..., Any]
Found = tuple[str, str, float]
"""A hit's chunk id, text and score."""
LOCAL = {"model": "granite-embedding-30m-english", "dimensions": "384"}
"""What is at hand without a network, in place of a model that is paid for."""
DOG = "A dog travels for two crowns."
EMBEDDED = {"rpg": "chroma", "ghostwriter": "chroma", "tulia": "qdrant"}
FOLDERS = {"chroma": "vector_db", "qdrant": "vectors/qdrant"}
POSTGRES = ("takaro", "kosmos")
WORDS = ("ferry", "harbour", "lantern", "orchard", "crown", "engine", "tide", "lighthouse", "market", "winter")
QUERIES = ("ferry harbour", "lighthouse lantern winter", "tide engine orchard")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[EmbeddingSettings]:
    """Models of the dimension that the settings ask for; the settings that one was asked for with."""
    asked: list[EmbeddingSettings] = []

    def embedder(settings: EmbeddingSettings) -> FakeEmbedder:
        asked.append(settings)
        return FakeEmbedder(name=settings.model, dimension=settings.dimensions or 64)

    def reranker(settings: RerankingSettings) -> FakeReranker | None:
        return None if settings.kind == "none" else FakeReranker()

    monkeypatch.setattr("ragstone.engine.components.build_embedder", embedder)
    monkeypatch.setattr("ragstone.engine.components.build_reranker", reranker)
    return asked


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command and gives back what it printed as JSON."""

    def run(*arguments: str | Path) -> Any:
        capfd.readouterr()
        code = command_line.main([*map(str, arguments), "--json"])
        written = capfd.readouterr()
        ran = command_line.Ran(code, written.out, written.err)
        assert ran.code == 0, ran.out + ran.err
        return ran.json

    return run


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh database that the settings name; how a superuser gets into it."""
    postgres = server(18)
    monkeypatch.setenv("RAGSTONE_STORE__LEDGER__DSN", postgres.database(tmp_path))
    return postgres.admin(postgres.name_of(tmp_path))


def ingested_and_found(cli: Cli, pages: Path, profile: str) -> dict[str, Any]:
    """Take three documents in and look for one of them; the best hit."""
    report = cli("ingest", pages, "--profile", profile)
    assert (report["added"], report["failed"]) == (3, [])
    again = cli("ingest", pages, "--profile", profile)
    assert (again["added"], again["unchanged"]) == (0, 3)
    result = cli("search", "what does a dog cost", "--profile", profile)
    assert result["degraded"] == []
    best: dict[str, Any] = result["hits"][0]
    assert DOG in best["text"]
    return best


async def held(settings: Settings) -> tuple[str, int, int]:
    """The vector database's name, and how many vectors it holds of how many chunks."""
    async with open_engine(settings) as engine:
        index = engine._components.stores.vectors
        assert isinstance(index, DerivedIndex)
        tenant, (kb,) = await engine.tenants.get("default"), await workspace_of(engine).knowledge_bases.list()
        assert tenant is not None
        assert kb.space is not None
        # Not by a search, which would fill an index that is empty.
        count = await index.provider.count(partition_of(tenant.id, kb.space))
        return index.provider.name, count, (await workspace_of(engine).knowledge_bases.stats()).chunks


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param("rpg", marks=pytest.mark.req("R-CLI-33", "R-EMB-02")),
        pytest.param("ghostwriter", marks=pytest.mark.req("R-CLI-33", "R-STO-07", "R-EMB-01")),
        pytest.param("tulia", marks=pytest.mark.req("R-CLI-33", "R-STO-10", "R-EMB-03")),
    ],
)
def test_a_profile_keeps_its_vectors_in_an_embedded_engine(
    profile: str, models: list[EmbeddingSettings], cli: Cli, pages: Path
) -> None:
    ingested_and_found(cli, pages, profile)
    settings = load_settings(overrides={"profile": profile}, environment={})
    assert (settings.store.vectors.kind, models[0].model) == (EMBEDDED[profile], settings.embedding.model)
    name, vectors, chunks = asyncio.run(held(settings))
    assert (name, vectors) == (EMBEDDED[profile], chunks)
    assert list((settings.data_dir / FOLDERS[name]).iterdir()) != []


@pytest.mark.req("R-STO-06")
def test_rpg_has_one_collection_in_vector_db(
    models: list[EmbeddingSettings], cli: Cli, pages: Path, tmp_path: Path
) -> None:
    cli("ingest", pages, "--profile", "rpg", "--data-dir", tmp_path / "data")
    assert [kb["name"] for kb in cli("kb", "list", "--data-dir", tmp_path / "data")["kbs"]] == ["corpus_embeddings"]
    assert (tmp_path / "data" / "vector_db" / "chroma.sqlite3").is_file()
    assert not (tmp_path / "data" / "vectors").exists()


@pytest.mark.parametrize(("path", "leads_to"), [("own", "data/own"), ("{tmp_path}/own", "own")])
def test_a_relative_path_is_in_the_data_folder(
    path: str,
    leads_to: str,
    models: list[EmbeddingSettings],
    cli: Cli,
    pages: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAGSTONE_STORE__VECTORS__KIND", "chroma")
    monkeypatch.setenv("RAGSTONE_STORE__VECTORS__PATH", path.format(tmp_path=tmp_path))
    cli("ingest", pages, "--data-dir", "data")
    assert (tmp_path / leads_to / "chroma.sqlite3").is_file()


@pytest.mark.req("R-CLI-33", "R-STO-27", "R-EMB-04")
@pytest.mark.parametrize("profile", POSTGRES)
def test_a_profile_needs_nothing_but_postgresql(
    profile: str, models: list[EmbeddingSettings], cli: Cli, pages: Path, database: str
) -> None:
    ingested_and_found(cli, pages, profile)
    settings = load_settings(overrides={"profile": profile})
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT count(*), (SELECT count(*) FROM ragstone.chunks), min(vector_dims(vector)), "
            "max(vector_dims(vector)) FROM ragstone.vectors"
        ).fetchone()
    assert rows is not None
    vectors, chunks, *dimensions = rows
    assert vectors == chunks > 0
    assert dimensions == [settings.embedding.dimensions] * 2
    files = [path.relative_to(settings.data_dir) for path in settings.data_dir.rglob("*") if path.is_file()]
    assert files == []


@pytest.mark.req("R-STO-22")
def test_takaro_finds_words_by_ts_rank(models: list[EmbeddingSettings], cli: Cli, pages: Path, database: str) -> None:
    cli("ingest", pages, "--profile", "takaro")
    result = cli("search", "dogs and crowns", "--arms", "lexical", "--profile", "takaro")
    with psycopg.connect(database) as connection:
        ranked = connection.execute(
            "SELECT id, ts_rank(content_tsv, to_tsquery('english', 'dogs | crowns')) AS rank "
            "FROM ragstone.chunks WHERE content_tsv @@ to_tsquery('english', 'dogs | crowns') "
            "ORDER BY rank DESC, id"
        ).fetchall()
    assert [hit["chunk_id"] for hit in result["hits"]] == [row[0] for row in ranked]
    assert [hit["scores"]["lexical"] for hit in result["hits"]] == pytest.approx([row[1] for row in ranked], abs=1e-6)


@pytest.mark.parametrize("profile", ["takaro", "tulia"])
def test_a_local_model_in_place_of_a_paid_one(
    profile: str, cli: Cli, pages: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if profile in POSTGRES:
        request.getfixturevalue("database")
    for key, value in LOCAL.items():
        monkeypatch.setenv(f"RAGSTONE_EMBEDDING__{key.upper()}", value)
    best = ingested_and_found(cli, pages, profile)
    assert best["scores"]["dense_rank"] == 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty short documents that share their words. Only read them."""
    folder = tmp_path_factory.mktemp("corpus")
    chance = random.Random(4)
    for number in range(40):
        text = " ".join(chance.choices(WORDS, k=chance.randint(5, 20)))
        (folder / f"{number}.txt").write_text(f"{text}.", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def by_default() -> list[Found]:
    """What the default stores find, kept by the first test that looks."""
    return []


@pytest.mark.req("R-STO-05", "R-STO-13")
@pytest.mark.parametrize(
    "store",
    [
        {"vectors": "chroma"},
        {"vectors": "qdrant"},
        {"vectors": "qdrant", "isolation": "filter"},
        {"vectors": "memory"},
        {"lexical": "bm25"},
        {"ledger__kind": "postgres"},
        {"ledger__kind": "postgres", "vectors": "chroma", "isolation": "filter"},
    ],
    ids=lambda store: "-".join(store.values()),
)
def test_another_store_finds_the_same(
    store: dict[str, str],
    models: list[EmbeddingSettings],
    cli: Cli,
    corpus: Path,
    by_default: list[Found],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(place: str) -> list[Found]:
        assert cli("ingest", corpus, "--data-dir", place)["added"] == 40
        results = [
            cli("search", query, "--arms", arms, "-k", "10", "--data-dir", place)["hits"]
            for query in QUERIES
            for arms in ("dense", "lexical", "hybrid")
        ]
        assert {len(hits) for hits in results} == {10}
        return [(hit["chunk_id"], hit["text"], hit["score"]) for hits in results for hit in hits]

    expected = by_default or found("first")
    by_default[:] = expected
    if "ledger__kind" in store:
        request.getfixturevalue("database")
    for key, value in store.items():
        monkeypatch.setenv(f"RAGSTONE_STORE__{key.upper()}", value)
    actual = found("second")
    assert [hit[:2] for hit in actual] == [hit[:2] for hit in expected]
    assert [hit[2] for hit in actual] == pytest.approx([hit[2] for hit in expected], abs=1e-3)
    if store.get("vectors") in EMBEDDED.values():
        settings = load_settings(overrides={"data_dir": "second"})
        assert asyncio.run(held(settings)) == (store["vectors"], 40, 40)

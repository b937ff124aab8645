"""Configuration files and variables of the designs load as they are written there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.settings.designs import NO_EFFECT
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Settings

RPG_FILE = """
profile: rpg
vector_db:
  provider: {provider}
  chroma:
    persist_directory: data/vector_db
    collection_name: campaign
    in_memory: false
  pinecone:
    api_key: ${{PINECONE_API_KEY}}
    environment: us-east1-gcp
    index_name: campaign-index
    dimension: 384
ingestion:
  corpus_path: lore/corpus.txt
  chunk_size: 300
  chunk_overlap: 30
  embedding_model: all-MiniLM-L6-v2
  bm25_index_path: out/bm25.pkl
  vector_index_path: out/vectors
  chunk_metadata_path: out/chunks.json
retrieval:
  bm25_weight: 0.9
  vector_weight: 0.3
  top_k: 7
  fusion_strategy: weighted
  rrf_k: 30
  query_rewriter:
    enabled: true
    expansion: true
    decomposition: true
    llm_rewriting: false
"""
KOSMOS_FILE = """
profile: kosmos
rag:
  chunking: {strategy: semantic, fallback: recursive, min_size: 80, max_size: 900, overlap: 40}
  embedding: {model: sentence-transformers/all-mpnet-base-v2, dimensions: 768, batch_size: 16, normalize: false}
  retrieval: {semantic_weight: 0.6, keyword_weight: 0.4, top_k: 25, similarity_threshold: 0.45}
  reranking: {enabled: false, model: cross-encoder/other, top_k: 8, threshold: 0.25}
  context: {max_tokens: 3000, include_metadata: true, citation_format: "({index})"}
"""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str = "", env: Mapping[str, str] | None = None) -> Settings:
    Path("given.yaml").write_text(text, encoding="utf-8")
    return load_settings(config=Path("given.yaml"), environment={"PINECONE_API_KEY": "pc-1", **(env or {})})


@pytest.mark.req("R-CLI-01", "R-CLI-02")
def test_a_file_of_the_rpg_design_chooses_chroma() -> None:
    settings = load(RPG_FILE.format(provider="chroma"))
    vectors = settings.store.vectors
    assert (vectors.kind, vectors.path, vectors.options) == ("chroma", Path("vector_db"), {"in_memory": False})
    assert settings.kb == "campaign"


@pytest.mark.req("R-CLI-01", "R-CLI-03")
def test_a_file_of_the_rpg_design_chooses_pinecone() -> None:
    vectors = load(RPG_FILE.format(provider="pinecone")).store.vectors
    assert vectors.kind == "pinecone"
    assert vectors.api_key is not None
    assert vectors.api_key.get_secret_value() == "pc-1"
    assert vectors.options == {"environment": "us-east1-gcp", "index_name": "campaign-index", "dimension": 384}
    assert vectors.path is None


@pytest.mark.req("R-CLI-08")
def test_a_variable_is_needed_only_by_the_vector_store_in_use() -> None:
    Path("given.yaml").write_text(RPG_FILE.format(provider="chroma"), encoding="utf-8")
    assert load_settings(config=Path("given.yaml"), environment={}).store.vectors.kind == "chroma"
    with pytest.raises(SettingsError, match=r"vector_db\.pinecone\.api_key refers to \$\{PINECONE_API_KEY\}"):
        load_settings(config=Path("given.yaml"), environment={"VECTOR_DB_PROVIDER": "pinecone"})


@pytest.mark.req("R-CLI-02")
def test_chroma_in_memory_needs_no_folder() -> None:
    vectors = load("vector_db: {provider: chroma, chroma: {persist_directory: x, in_memory: true}}").store.vectors
    assert (vectors.path, vectors.options) == (None, {"in_memory": True})


@pytest.mark.req("R-CLI-04", "R-CLI-05", "R-CLI-06", "R-CLI-07")
def test_ingestion_and_retrieval_of_the_rpg_design(caplog: pytest.LogCaptureFixture) -> None:
    settings = load(RPG_FILE.format(provider="chroma"))
    assert (settings.chunking.size, settings.chunking.overlap, settings.chunking.unit) == (300, 30, "tokens")
    assert settings.embedding.model == "all-MiniLM-L6-v2"
    own = settings.ingestion
    assert [str(path) for path in (own.corpus_path, own.bm25_index_path, own.chunk_metadata_path)] == [
        "lore/corpus.txt",
        "out/bm25.pkl",
        "out/chunks.json",
    ]
    found = settings.retrieval
    assert (found.k, found.fusion, found.rrf_k, found.dense_weight) == (7, "weighted", 30, pytest.approx(0.25))
    assert found.transforms == ("entities", "decompose")
    assert [record.getMessage() for record in caplog.records] == [
        "PINECONE_API_KEY has no effect: the vector store is chroma",
        f"ingestion.vector_index_path has no effect: {NO_EFFECT['ingestion.vector_index_path']}",
    ]


@pytest.mark.req("R-CLI-07")
@pytest.mark.parametrize(
    ("rewriter", "transforms"),
    [
        ("{enabled: false, expansion: true, decomposition: true}", ()),
        ("{enabled: true, expansion: false, llm_rewriting: true}", ("rewrite",)),
        ("{enabled: true}", ("entities",)),
    ],
)
def test_the_query_rewriter_becomes_transforms(rewriter: str, transforms: tuple[str, ...]) -> None:
    assert load(f"retrieval: {{query_rewriter: {rewriter}}}").retrieval.transforms == transforms


def test_expansion_asks_a_dictionary_where_there_is_one() -> None:
    Path("terms.yaml").write_text("boat: [ship]", encoding="utf-8")
    settings = load("retrieval: {dictionary: terms.yaml, query_rewriter: {enabled: true}}")
    assert settings.retrieval.transforms == ("entities", "synonyms")


@pytest.mark.req("R-CLI-09", "R-CLI-10", "R-CLI-11", "R-CLI-12", "R-CLI-13")
def test_a_file_of_the_kosmos_design(caplog: pytest.LogCaptureFixture) -> None:
    settings = load(KOSMOS_FILE)
    chunking, embedding = settings.chunking, settings.embedding
    found, reranking = settings.retrieval, settings.reranking
    assert (chunking.strategy, chunking.unit, chunking.min_size, chunking.size, chunking.overlap) == (
        "semantic",
        "chars",
        80,
        900,
        40,
    )
    assert (embedding.model, embedding.dimensions) == ("sentence-transformers/all-mpnet-base-v2", 768)
    assert (embedding.batch_size, embedding.normalize) == (16, False)
    assert (found.dense_weight, found.candidates, found.min_similarity, found.k) == (pytest.approx(0.6), 25, 0.45, 8)
    assert (reranking.kind, reranking.model, reranking.threshold) == ("none", "cross-encoder/other", 0.25)
    assert (settings.answer.max_context_tokens, settings.answer.citation_format) == (3000, "({index})")
    assert caplog.records == []


def test_a_key_of_its_own_name_wins_over_the_designs() -> None:
    assert load("rag: {retrieval: {top_k: 30}}\nretrieval: {candidates: 40}").retrieval.candidates == 40


def test_an_unknown_key_of_a_design_is_named() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting 'rag\.chunking\.sise'"):
        load("rag: {chunking: {sise: 3}}")


def test_weights_that_are_none_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"setting 'retrieval\.vector_weight'"):
        load("retrieval: {vector_weight: 0, bm25_weight: 0}")


@pytest.mark.req("R-CLI-14", "R-CLI-15", "R-CLI-16")
def test_variables_of_the_rpg_design_override_the_file() -> None:
    chroma = load(
        RPG_FILE.format(provider="pinecone"),
        {
            "VECTOR_DB_PROVIDER": "chroma",
            "CHROMA_PERSIST_DIRECTORY": "elsewhere",
            "CHROMA_COLLECTION_NAME": "other",
            "EMBEDDING_MODEL": "multi-qa-MiniLM-L6-cos-v1",
            "CORPUS_PATH": "other.txt",
            "BM25_INDEX_PATH": "b.pkl",
            "METADATA_PATH": "m.json",
        },
    )
    assert (chroma.store.vectors.kind, chroma.store.vectors.path, chroma.kb) == ("chroma", Path("elsewhere"), "other")
    assert chroma.embedding.model == "multi-qa-MiniLM-L6-cos-v1"
    assert str(chroma.ingestion.corpus_path) == "other.txt"
    assert (str(chroma.ingestion.bm25_index_path), str(chroma.ingestion.chunk_metadata_path)) == ("b.pkl", "m.json")
    pinecone = load(
        "profile: rpg",
        {"VECTOR_DB_PROVIDER": "pinecone", "PINECONE_ENVIRONMENT": "eu-west1-gcp", "PINECONE_INDEX_NAME": "lore"},
    ).store.vectors
    assert (pinecone.kind, pinecone.options) == ("pinecone", {"environment": "eu-west1-gcp", "index_name": "lore"})
    assert pinecone.api_key is not None


def test_a_variable_without_effect_is_named(caplog: pytest.LogCaptureFixture) -> None:
    settings = load("profile: rpg", {"PINECONE_INDEX_NAME": "lore", "RAGSTONE_EMBEDDING__MODEL": "mine"})
    assert settings.store.vectors.options == {}
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "PINECONE_API_KEY has no effect: the vector store is chroma",
        "PINECONE_INDEX_NAME has no effect: the vector store is chroma",
    ]


def test_variables_with_common_names_change_nothing_outside_that_design(caplog: pytest.LogCaptureFixture) -> None:
    assert load("", {"EMBEDDING_MODEL": "another tool's", "CORPUS_PATH": "x"}) == Settings()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("weights", "share"), [("vector_weight: 0.3", 0.3), ("bm25_weight: 0.3", 0.7), ("bm25_weight: 0", 1.0)]
)
def test_one_weight_alone_leaves_the_rest_to_the_other_arm(weights: str, share: float) -> None:
    assert load(f"profile: rpg\nretrieval:\n  {weights}\n").retrieval.dense_weight == pytest.approx(share)


def test_what_a_variable_overrides_may_refer_to_what_is_not_set() -> None:
    written = RPG_FILE.format(provider="pinecone").replace("${PINECONE_API_KEY}", "${NOWHERE_SET}")
    key = load(written, {"PINECONE_API_KEY": "pc-2"}).store.vectors.api_key
    assert key is not None
    assert key.get_secret_value() == "pc-2"

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from ragstone.core.errors import ParserLimit
from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Block, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.uploads import check_upload
from ragstone.models import model_info
from ragstone.settings.load import load_settings
from ragstone.settings.tree import ProfileName, Settings

PROSE = " ".join(f"Sentence number {number} tells of one more island." for number in range(400))


def profile(name: str) -> Settings:
    return load_settings(overrides={"profile": name}, environment={})


@pytest.mark.parametrize("name", get_args(ProfileName))
def test_every_profile_loads(name: str) -> None:
    assert profile(name).profile == name


def test_the_default_profile_adds_nothing() -> None:
    assert profile("default") == Settings()


@pytest.mark.parametrize(
    ("name", "model", "dimension"),
    [
        pytest.param("ghostwriter", "sentence-transformers/all-mpnet-base-v2", 768, marks=pytest.mark.req("R-EMB-01")),
        pytest.param("kosmos", "sentence-transformers/all-mpnet-base-v2", 768, marks=pytest.mark.req("R-EMB-01")),
        pytest.param("rpg", "sentence-transformers/all-MiniLM-L6-v2", 384, marks=pytest.mark.req("R-EMB-02")),
        pytest.param("tulia", "text-embedding-3-small", 1536, marks=pytest.mark.req("R-EMB-03")),
        ("takaro", "text-embedding-3-small", 1536),
    ],
)
def test_embedding_models(name: str, model: str, dimension: int) -> None:
    embedding = profile(name).embedding
    assert (embedding.model, embedding.dimensions) == (model, dimension)
    assert model_info(model).dimension == dimension


@pytest.mark.req("R-EMB-03")
def test_the_fallback_of_ghostwriter() -> None:
    assert profile("ghostwriter").embedding.fallback == "text-embedding-3-small"


@pytest.mark.req("R-EMB-14")
def test_kosmos_normalises() -> None:
    assert profile("kosmos").embedding.normalize


@pytest.mark.parametrize(
    ("name", "strategy", "unit", "size", "overlap"),
    [
        pytest.param("takaro", "markdown", "chars", 1000, 200, marks=pytest.mark.req("R-CHK-14")),
        pytest.param("tulia", "sentence", "tokens", 400, 50, marks=pytest.mark.req("R-CHK-19")),
        pytest.param("rpg", "sliding_window", "tokens", 500, 50, marks=pytest.mark.req("R-CHK-23")),
        pytest.param("ghostwriter", "hybrid", "tokens", 1024, 154, marks=pytest.mark.req("R-CHK-01")),
    ],
)
def test_chunks_are_of_the_profile_s_size(name: str, strategy: str, unit: str, size: int, overlap: int) -> None:
    chunking = profile(name).chunking
    assert (chunking.strategy, chunking.unit, chunking.size, chunking.overlap) == (strategy, unit, size, overlap)
    chunks = build_chunker(chunking, WordTokenizer()).chunk(Parsed(PROSE, (Block("paragraph", 0, len(PROSE)),)))
    measured = [chunk.tokens if unit == "tokens" else len(chunk.text) for chunk in chunks]
    assert max(measured) <= size
    assert min(measured[:-1]) > size * 0.75
    assert all(before.end - after.start > 0 for before, after in itertools.pairwise(chunks)), "neighbours overlap"


@pytest.mark.req("R-CHK-21")
def test_kosmos_cuts_by_meaning() -> None:
    chunking = profile("kosmos").chunking
    assert (chunking.strategy, chunking.unit, chunking.breakpoint) == ("semantic", "chars", 0.5)
    assert (chunking.min_size, chunking.size) == (100, 1000)


@pytest.mark.req("R-CHK-22")
def test_the_fallback_of_kosmos_is_recursive() -> None:
    chunking = profile("kosmos").chunking
    assert chunking.separators == ("\n\n", "\n", ". ", " ")
    chunks = build_chunker(chunking, WordTokenizer()).chunk(Parsed(PROSE, (Block("paragraph", 0, len(PROSE)),)))
    lengths = [len(chunk.text) for chunk in chunks]
    assert max(lengths) <= 512
    assert min(lengths[:-1]) > 400
    assert all(0 < before.end - after.start <= 50 for before, after in itertools.pairwise(chunks))


@pytest.mark.req("R-CHK-13")
def test_ghostwriter_cuts_each_kind_of_source_its_own_way() -> None:
    chosen = {kind: its.strategy for kind, its in profile("ghostwriter").chunking_by_source.items()}
    assert chosen == {"email": "semantic", "paper": "paper", "rss": "hybrid", "web": "hybrid", "files": "recursive"}


@pytest.mark.req("R-CHK-19")
def test_tulia_chunks_hold_300_to_500_tokens() -> None:
    chunker = build_chunker(profile("tulia").chunking, WordTokenizer())
    chunks = chunker.chunk(Parsed(PROSE, (Block("paragraph", 0, len(PROSE)),)))
    assert all(300 <= chunk.tokens <= 500 for chunk in chunks[:-1])


@pytest.mark.parametrize(
    ("name", "fusion", "dense_weight"),
    [
        ("tulia", "weighted", 0.7),
        ("kosmos", "weighted_rrf", 0.7),
        ("rpg", "rrf", 0.5),
        ("ghostwriter", "rrf", 0.7),
        ("takaro", "weighted_rrf", 0.9),
    ],
)
def test_fusion_and_weights(name: str, fusion: str, dense_weight: float) -> None:
    retrieval = profile(name).retrieval
    assert (retrieval.fusion, retrieval.dense_weight) == (fusion, dense_weight)


@pytest.mark.req("R-HYB-03")
@pytest.mark.parametrize("name", ["ghostwriter", "takaro", "rpg"])
def test_rrf_k_is_60(name: str) -> None:
    assert profile(name).retrieval.rrf_k == 60


@pytest.mark.req("R-ING-14")
def test_tulia_takes_files_below_ten_megabytes() -> None:
    limit = profile("tulia").limits.file_mb
    assert check_upload(b"x" * (10 * 1024 * 1024 - 1), "a.txt", limit) == "a.txt"
    with pytest.raises(ParserLimit):
        check_upload(b"x" * (10 * 1024 * 1024), "a.txt", limit)

from __future__ import annotations

import pytest

from ragstone.core.errors import ModelMismatch, ModelUnavailable
from ragstone.models.weights.catalogue import check_dimension, model_info


@pytest.mark.req("R-EMB-06", "R-EMB-10")
@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("granite-embedding-30m-english", 384),
        ("all-mpnet-base-v2", 768),
        ("all-MiniLM-L6-v2", 384),
        ("text-embedding-3-small", 1536),
        ("text-embedding-3-large", 3072),
        ("mistral-embed", 1024),
        ("embed-v3", 1024),
        ("bge-large", 1024),
        ("ada-002", 1536),
    ],
)
def test_dimensions(name: str, dimension: int) -> None:
    assert model_info(name).dimension == dimension


@pytest.mark.req("R-EMB-07")
@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("all-mpnet-base-v2", 0.0),
        ("all-MiniLM-L6-v2", 0.0),
        ("bge-large", 0.0),
        ("text-embedding-3-small", 0.02),
        ("text-embedding-3-large", 0.13),
        ("mistral-embed", 0.10),
        ("embed-v3", 0.10),
    ],
)
def test_prices(name: str, price: float) -> None:
    assert model_info(name).price_per_million == price


@pytest.mark.req("R-EMB-08")
@pytest.mark.parametrize(
    ("name", "latency"),
    [("all-mpnet-base-v2", 15), ("all-MiniLM-L6-v2", 5), ("bge-large", 25), ("text-embedding-3-small", 50)],
)
def test_latencies(name: str, latency: float) -> None:
    assert model_info(name).latency_ms == latency


@pytest.mark.req("R-EMB-09")
@pytest.mark.parametrize(
    ("name", "quality"),
    [
        ("all-mpnet-base-v2", 63.3),
        ("all-MiniLM-L6-v2", 58.8),
        ("text-embedding-3-small", 62.3),
        ("text-embedding-3-large", 64.6),
        ("mistral-embed", 77.8),
        ("embed-v3", 64.5),
    ],
)
def test_quality(name: str, quality: float) -> None:
    assert model_info(name).mteb == quality


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "all-mpnet-base-v2"])
def test_the_hub_name_is_the_same_model(name: str) -> None:
    assert model_info(f"sentence-transformers/{name}") == model_info(name)


def test_the_id_carries_the_revision() -> None:
    assert model_info("granite-embedding-30m-english").id == "granite-embedding-30m-english@6a1cc24734a5"


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(ModelUnavailable, match="does not know the model 'nope'") as caught:
        model_info("nope")
    assert "all-MiniLM-L6-v2" in caught.value.hint


def test_a_dimension_that_differs_is_refused() -> None:
    check_dimension(model_info("all-MiniLM-L6-v2"), 384)
    check_dimension(model_info("all-MiniLM-L6-v2"), None)
    with pytest.raises(ModelMismatch, match="384 dimensions where 768"):
        check_dimension(model_info("all-MiniLM-L6-v2"), 768)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.reference import reference_logits
from tests.unit.models.tiny import tiny_tokenizer, write_tiny_model

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.remedies import Action, Remedy
from ragstone.models.rerankers.cross_encoder import CrossEncoder, _sigmoid
from ragstone.models.runtime.inference import ModelTokenizer

QUERY, PASSAGES = "the cat", ["the cat sat on the mat", "rates", "the mat " * 100]


@pytest.mark.req("R-RRK-04")
@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
async def test_logits_become_relevance(tmp_path: Path, family: str) -> None:
    folder = write_tiny_model(tmp_path / "model", family, labels=1)
    reranker = CrossEncoder.open("tiny", path=folder, cache_dir=tmp_path)
    scores = await reranker.score(QUERY, PASSAGES)
    await reranker.close()
    tokenizer = ModelTokenizer("tiny", tiny_tokenizer(family).to_str().encode())
    pairs = tokenizer.pairs(QUERY, PASSAGES, 66 if family == "bert" else 64)
    logits = [reference_logits(folder, ids, types)[0] for ids, types in pairs]
    assert list(scores) == pytest.approx([1 / (1 + np.exp(-logit)) for logit in logits], abs=0.01)


async def test_two_classes_are_a_softmax(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", labels=2)
    reranker = CrossEncoder.open("tiny", path=folder, cache_dir=tmp_path)
    (score,) = await reranker.score(QUERY, PASSAGES[:1])
    await reranker.close()
    tokenizer = ModelTokenizer("tiny", tiny_tokenizer().to_str().encode())
    ((ids, types),) = tokenizer.pairs(QUERY, PASSAGES[:1], 66)
    shares = np.exp(reference_logits(folder, ids, types))
    assert score == pytest.approx(shares[1] / shares.sum(), abs=0.01)


async def test_more_classes_are_not_a_reranker(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", labels=3)
    reranker = CrossEncoder.open("tiny", path=folder, cache_dir=tmp_path)
    with pytest.raises(ModelError, match="tells 3 classes apart"):
        await reranker.score(QUERY, PASSAGES)
    await reranker.close()


async def test_an_embedding_model_is_not_a_reranker(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model")
    reranker = CrossEncoder.open("tiny", path=folder, cache_dir=tmp_path)
    with pytest.raises(ModelError, match="has no classification head"):
        await reranker.score(QUERY, PASSAGES)
    await reranker.close()


async def test_a_model_that_is_not_here_says_what_to_type(tmp_path: Path) -> None:
    reranker = CrossEncoder.open("cross-encoder/ms-marco-MiniLM-L-6-v2", cache_dir=tmp_path)
    with pytest.raises(ModelUnavailable, match="are not on this machine") as caught:
        await reranker.score(QUERY, PASSAGES)
    assert caught.value.remedy == Remedy(Action.PULL_MODEL, model="cross-encoder/ms-marco-MiniLM-L-6-v2")
    await reranker.close()


@pytest.mark.parametrize(
    ("logit", "relevance"), [(0.0, 0.5), (-10000.0, 0.0), (10000.0, 1.0), (1.0, 0.7310585786300049)]
)
def test_any_logit_has_a_relevance(logit: float, relevance: float) -> None:
    assert _sigmoid(logit) == pytest.approx(relevance)

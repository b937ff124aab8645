from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragstone.core.errors import ModelMismatch
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.types import Role
from ragstone.language import relevance
from ragstone.language.relevance import (
    UNRELATED,
    UnrelatedVectors,
    asked_terms,
    closeness,
    measure_coverage,
    term_share,
)


def at_cosine(cosine: float) -> list[float]:
    return [cosine, float(np.sqrt(1 - cosine**2))]


@pytest.mark.parametrize("background", [0.05, 0.55, -0.2])
def test_closeness_means_the_same_whatever_unrelated_is_to_the_model(background: float) -> None:
    halfway = background + (1 - background) / 2
    question = np.array([1, 0], np.float32)
    sentences = np.array([at_cosine(1.0), at_cosine(halfway), at_cosine(background)], np.float32)
    unrelated = np.array([at_cosine(background), at_cosine(background), at_cosine(0.9)], np.float32)
    assert closeness(question, sentences, unrelated) == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)


def test_a_model_that_finds_everything_alike_finds_nothing_close() -> None:
    same = np.array([[1, 0]], np.float32)
    assert closeness(same[0], same, same) == [0.0]


def coverage(question: str, *texts: str) -> list[float]:
    return measure_coverage(asked_terms(question), texts)


def test_a_term_that_no_sentence_has_weighs_most() -> None:
    texts = "The pump runs.", "The pump stops."
    assert coverage("pump", *texts) == [1.0, 1.0]
    common, missing = np.log(1 + 2 / 2.5), np.log(1 + 2 / 0.5)
    assert coverage("unicorn pump", *texts) == pytest.approx([common / (common + missing)] * 2)
    runs = np.log(1 + 2 / 1.5)
    assert coverage("Does the pump run?", *texts) == pytest.approx([1.0, common / (common + runs)])


def test_headings_count_as_said() -> None:
    assert measure_coverage(asked_terms("pump heat"), ["It stops at once."], ["Pump\nLimits > Heat"]) == [1.0]


def test_a_question_without_terms_is_not_covered() -> None:
    assert coverage("??", "The pump runs.") == [0.0]


def test_term_share() -> None:
    assert term_share("Pumps stop loudly", "a pump stopped") == pytest.approx(2 / 3)
    assert term_share("...", "a pump") == 0.0


class Counting:
    """Embeds every text as the same vector and counts its calls."""

    model = EmbeddingModel("m", 2, 512)

    def __init__(self) -> None:
        self.calls = 0

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.calls += 1
        return Embeddings(np.ones((len(texts), 2), np.float32), "m")

    async def close(self) -> None: ...


async def test_unrelated_sentences_are_embedded_once_for_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder, vectors = Counting(), UnrelatedVectors()
    assert (await vectors.load(embedder, "m")).shape == (len(UNRELATED), 2)
    await vectors.load(embedder, "m")
    assert embedder.calls == 1
    with pytest.raises(ModelMismatch):
        await vectors.load(embedder, "other")
    monkeypatch.setattr(relevance, "MOST_MODELS", 1)
    embedder.model, forgetful = EmbeddingModel("m", 2, 512), UnrelatedVectors()
    forgetful._known["old", 2] = np.ones((1, 2), np.float32)
    await forgetful.load(embedder, "m")
    assert list(forgetful._known) == [("m", 2)]

"""Conformance tests of every `Embedder`, to inherit.

    from ragstone.testing.suites.embedders import EmbedderSuite

    class TestMyEmbedder(EmbedderSuite):
        def make_embedder(self):
            return MyEmbedder()

pytest finds the class by its name and runs every test of the suite against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder
from ragstone.core.types import Matrix

TEXTS = [
    "The cat sat on the mat.",
    "Interest rates rose again, and bond prices fell on every market that was open that day.",
    "naïve café — 東京都 👩‍👩‍👧‍👦",
    "moduleControllerCreate",
    "x",
]


def cosine(a: Matrix, b: Matrix) -> Matrix:
    """Cosine of each pair of rows, in double precision."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    pairs: Matrix = (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return pairs


class EmbedderSuite:
    """Inherit and say how to make one."""

    alike = 0.9999
    """Cosine from which two vectors of one text are the same; a model that rounds may say less."""

    def make_embedder(self) -> Embedder:
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        """Yield a new embedder, closed after the test."""
        made = self.make_embedder()
        yield made
        await made.close()

    async def test_one_unit_row_per_text(self, embedder: Embedder) -> None:
        made = await embedder.embed(TEXTS)
        assert made.vectors.shape == (len(TEXTS), embedder.model.dimension)
        assert made.vectors.dtype == np.float32
        assert made.failed == ()
        np.testing.assert_allclose(np.linalg.norm(made.vectors, axis=1), 1.0, atol=1e-5)

    async def test_says_which_model_made_them(self, embedder: Embedder) -> None:
        made = await embedder.embed(TEXTS[:1])
        assert made.model == embedder.model.id
        assert embedder.model.dimension > 0
        assert embedder.model.max_tokens > 0

    async def test_no_texts_no_rows(self, embedder: Embedder) -> None:
        made = await embedder.embed([])
        assert len(made.vectors) == 0
        assert made.failed == ()

    async def test_a_vector_does_not_depend_on_its_neighbours(self, embedder: Embedder) -> None:
        together = await embedder.embed(TEXTS)
        backwards = await embedder.embed(TEXTS[::-1])
        alone = np.concatenate([(await embedder.embed([text])).vectors for text in TEXTS])
        assert cosine(together.vectors, alone).min() > self.alike
        assert cosine(together.vectors, backwards.vectors[::-1]).min() > self.alike

    async def test_order_holds_over_many_batches(self, embedder: Embedder) -> None:
        texts = [f"text number {number} " + "and more " * (number % 7) for number in range(120)]
        made = await embedder.embed(texts)
        probe = await embedder.embed([texts[0], texts[59], texts[119]])
        assert cosine(made.vectors[[0, 59, 119]], probe.vectors).min() > self.alike

    @pytest.mark.parametrize("bad", ["", "   \n"])
    async def test_a_text_that_says_nothing_is_counted_not_fatal(self, embedder: Embedder, bad: str) -> None:
        made = await embedder.embed([TEXTS[0], bad, TEXTS[1]])
        assert made.failed == (1,)
        assert not made.vectors[1].any()
        np.testing.assert_allclose(np.linalg.norm(made.vectors[[0, 2]], axis=1), 1.0, atol=1e-5)

    async def test_invalid_unicode_does_not_spoil_the_batch(self, embedder: Embedder) -> None:
        made = await embedder.embed([TEXTS[0], "half a pair \ud83d", TEXTS[1]])
        assert set(made.failed) <= {1}
        expected = await embedder.embed([TEXTS[0], TEXTS[1]])
        assert cosine(made.vectors[[0, 2]], expected.vectors).min() > self.alike

    async def test_a_text_over_the_window_is_embedded_as_a_whole(self, embedder: Embedder) -> None:
        times = min(embedder.model.max_tokens, 2000) // 3
        start, end = "cats purr and sleep. ", "banks lend money at interest. "
        made = await embedder.embed([start * times, start * times + end * times, end])
        np.testing.assert_allclose(np.linalg.norm(made.vectors, axis=1), 1.0, atol=1e-5)
        # What stands far behind the window still moves the vector towards it.
        assert made.vectors[1] @ made.vectors[2] > made.vectors[0] @ made.vectors[2]

    async def test_like_texts_are_near(self, embedder: Embedder) -> None:
        made = await embedder.embed(
            ["a cat sat on a mat", "the cat sat on the mat", "quarterly revenue exceeded forecasts"]
        )
        near, far = made.vectors[0] @ made.vectors[1], made.vectors[0] @ made.vectors[2]
        assert near > far + 0.1

    async def test_queries_live_in_the_same_space(self, embedder: Embedder) -> None:
        documents = await embedder.embed(["the cat sat on the mat", "quarterly revenue exceeded forecasts"])
        query = await embedder.embed(["where did the cat sit on the mat"], "query")
        assert query.model == documents.model
        scores = documents.vectors @ query.vectors[0]
        assert scores[0] > scores[1]

    async def test_calls_at_once_do_not_mix(self, embedder: Embedder) -> None:
        calls: list[Embeddings] = await asyncio.gather(*(embedder.embed([text]) for text in TEXTS))
        together = await embedder.embed(TEXTS)
        assert cosine(np.concatenate([made.vectors for made in calls]), together.vectors).min() > self.alike

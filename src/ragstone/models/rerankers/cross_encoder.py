"""Scores passages by reading each one together with the query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragstone.core.errors import ModelError
from ragstone.core.types import Vector
from ragstone.models.runtime.inference import LocalModel, ModelInput, RuntimeName


class CrossEncoder:
    """A cross-encoder from a local folder or a model pulled before."""

    def __init__(self, local: LocalModel) -> None:
        self._local = local

    @classmethod
    def open(
        cls, model: str, *, path: Path | None = None, runtime: RuntimeName = "auto", cache_dir: Path | None = None
    ) -> CrossEncoder:
        """Return a model by name. It is looked for, and loaded, when it is first used."""
        return cls(LocalModel(model, path=path, runtime=runtime, cache_dir=cache_dir, head=True))

    @property
    def name(self) -> str:
        return self._local.name

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return one relevance per passage between 0 and 1; a long passage is read up to the model's window."""
        if not passages:
            return []
        await self._local.load()
        longest = self._local.weights.max_tokens
        pairs = await self._local.tokenize(self._local.tokenizer.pairs, query, passages, longest)
        outputs = await self._local.run([ModelInput(ids, types) for ids, types in pairs])
        return [self._relevance(output) for output in outputs]

    async def close(self) -> None:
        """End the threads and release the model."""
        await self._local.close()

    def _relevance(self, output: Vector | ModelError) -> float:
        if isinstance(output, ModelError):
            raise ModelError(f"{self.name} could not score a passage") from output
        logits = output.astype(np.float64)
        if len(logits) == 1:
            return _sigmoid(float(logits[0]))
        if len(logits) == 2:
            # The share of the second class ("relevant") in a two-class softmax.
            return _sigmoid(float(logits[1] - logits[0]))
        raise ModelError(
            f"{self.name} tells {len(logits)} classes apart, so it is not a reranker",
            hint="use a model such as cross-encoder/ms-marco-MiniLM-L-6-v2",
        )


def _sigmoid(logit: float) -> float:
    # Written so that a large logit of either sign cannot overflow.
    return float(np.exp(-np.logaddexp(0.0, -logit)))

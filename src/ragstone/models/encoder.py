"""A transformer encoder as plain data: numbers and arrays, no runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Pooling = Literal["cls", "mean"]
Activation = Literal["gelu", "gelu_tanh", "relu"]


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A matrix kept as int8 with one scale per group of values along each row."""

    values: NDArray[np.int8]
    """Rows × groups × group size."""
    scales: NDArray[np.float32]
    """Rows × groups × 1."""

    @property
    def shape(self) -> tuple[int, int]:
        rows, groups, size = self.values.shape
        return rows, groups * size

    def dense(self) -> NDArray[np.float32]:
        """The float32 matrix it stands for."""
        return (self.values * self.scales).reshape(self.shape)


Tensor = NDArray[np.float32] | Grouped


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A post-norm encoder of the BERT family, with pooling or with a classification head.

    Tensor names: `word_emb`, `pos_emb` (its first row is position 0), `type_emb`, `emb_ln.{w,b}`, `rel_bias`
    (buckets × heads), per layer `l{i}.` with `qkv` (query, key and value stacked), `ao`, `aln`, `f1`, `f2`,
    `fln`, and for a head `head.dense` and `head.out`. Only the words and the layers are required.
    """

    layers: int
    heads: int
    epsilon: float
    activation: Activation
    pooling: Pooling
    tensors: Mapping[str, Tensor]

    @property
    def hidden(self) -> int:
        return int(self.tensors["word_emb"].shape[1])

    @property
    def has_head(self) -> bool:
        return "head.out.w" in self.tensors

    @property
    def uses_types(self) -> bool:
        """Whether it tells the two texts of a pair apart by type ids."""
        return self.has_head and "type_emb" in self.tensors and self.tensors["type_emb"].shape[0] > 1

    def without_head(self) -> Encoder:
        """The same encoder for embedding: pooled instead of classified."""
        kept = {name: tensor for name, tensor in self.tensors.items() if not name.startswith("head.")}
        return replace(self, tensors=kept)

    def dense(self, name: str) -> NDArray[np.float32]:
        """A tensor as float32."""
        tensor = self.tensors[name]
        return tensor.dense() if isinstance(tensor, Grouped) else tensor


def relative_buckets(distances: NDArray[np.int64], buckets: int, farthest: int = 128) -> NDArray[np.int64]:
    """The bias bucket of each key-minus-query distance: exact when near, logarithmic when far."""
    half = buckets // 2
    exact = half // 2
    away = np.abs(distances)
    scaled = np.log(np.maximum(away, 1) / exact) / np.log(farthest / exact) * (half - exact)
    far = np.minimum(exact + scaled.astype(np.int64), half - 1)
    return np.where(distances > 0, half, 0) + np.where(away < exact, away, far)

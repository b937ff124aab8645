"""SciFact's claims with their labels, their cited abstracts as hits, and an embedder that remembers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, Role, Vector
from ragstone.models.weights.artefacts import cache_folder

Label = Literal["SUPPORT", "REFUTE", "NOT ENOUGH"]
LABELS: tuple[Label, ...] = ("SUPPORT", "REFUTE", "NOT ENOUGH")
_TOLD: dict[str, Label] = {"SUPPORT": "SUPPORT", "CONTRADICT": "REFUTE"}
KEEP_EVERY = 2000


@dataclass(frozen=True)
class Claim:
    """A claim, what its evidence says, and where that evidence stands."""

    text: str
    label: Label
    cited: tuple[str, ...]
    rationales: Mapping[str, Label]
    """Evidence sentences by their text."""


def read_claims(folder: Path, split: str, abstracts: Mapping[str, Sequence[str]]) -> list[Claim]:
    """The claims of a split; abstracts are sentences by document."""
    lines = (folder / f"claims_{split}.jsonl").read_text("utf-8").splitlines()
    return [_claim(json.loads(line), abstracts) for line in lines]


def _claim(told: Mapping[str, object], abstracts: Mapping[str, Sequence[str]]) -> Claim:
    evidence: Mapping[str, list[dict[str, object]]] = told["evidence"]  # type: ignore[assignment]
    rationales = {
        abstracts[document][place]: _TOLD[str(one["label"])]
        for document, found in evidence.items()
        for one in found
        for place in one["sentences"]  # type: ignore[attr-defined]
    }
    label: Label = next(iter(rationales.values()), "NOT ENOUGH")
    cited = tuple(str(document) for document in told["cited_doc_ids"])  # type: ignore[attr-defined]
    return Claim(str(told["claim"]), label, cited, rationales)


def read_abstracts(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Title and sentences of each document."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        told = [json.loads(line) for line in lines]
    return {one["_id"]: (one["title"], one["metadata"]["sentences"]) for one in told}


def as_hit(document: str, title: str, sentences: Sequence[str]) -> Hit:
    """An abstract as if a search had found it."""
    text = " ".join(sentence.strip() for sentence in sentences)
    return Hit(document, document, title, document, "", None, text, 1.0, {}, {}, 0, len(text))


class KeptEmbedder:
    """Embeds each text once in all runs; what it made is kept in the cache folder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._file = cache_folder(None) / "bench" / f"claims-{embedder.model.id.replace('/', '_')}.npz"
        self._known: dict[str, Vector] = {}
        self._new = 0
        if self._file.exists():
            with np.load(self._file) as arrays:
                self._known = dict(zip(arrays["texts"].tolist(), arrays["vectors"], strict=True))

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        missing = list(dict.fromkeys(text for text in texts if f"{role} {text}" not in self._known))
        if missing:
            made = await self._embedder.embed(missing, role)
            self._known |= {f"{role} {text}": row for text, row in zip(missing, made.vectors, strict=True)}
            self._new += len(missing)
        if self._new >= KEEP_EVERY:
            self.keep()
        return Embeddings(np.stack([self._known[f"{role} {text}"] for text in texts]), self.model.id)

    async def close(self) -> None:
        self.keep()
        await self._embedder.close()

    def keep(self) -> None:
        """Write down what is known."""
        self._new = 0
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial.npz")
        np.savez(partial, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        partial.replace(self._file)

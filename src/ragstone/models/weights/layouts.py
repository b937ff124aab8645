"""Where each model family keeps its tensors, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import ModelError

Tensors = Mapping[str, NDArray[np.float32]]

FAMILIES = {"bert", "roberta", "xlm-roberta", "camembert", "mpnet"}
PREFIXES = ("bert.", "roberta.", "mpnet.")

EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
OPTIONAL = {
    "type_emb": "embeddings.token_type_embeddings.weight",
    "rel_bias": "encoder.relative_attention_bias.weight",
}
BERT_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
MPNET_LAYER = BERT_LAYER | {
    "q": "attention.attn.q",
    "k": "attention.attn.k",
    "v": "attention.attn.v",
    "ao": "attention.attn.o",
    "aln": "attention.LayerNorm",
}
# The hidden layer and the output of a head: (BERT's pooler and classifier), (RoBERTa's own head).
HEADS = (("pooler.dense", "classifier"), ("classifier.dense", "classifier.out_proj"))
PARTS = {"w": "weight", "b": "bias"}


def encoder_tensors(raw: Tensors, layers: int, position_offset: int) -> dict[str, NDArray[np.float32]]:
    """Rename a checkpoint's tensors, stack query, key and value, and drop unused positions."""
    found = {_bare(name): tensor for name, tensor in raw.items()}
    try:
        tensors = {ours: found[theirs] for ours, theirs in EMBEDDINGS.items()}
        tensors["pos_emb"] = tensors["pos_emb"][position_offset:]
        tensors |= {ours: found[theirs] for ours, theirs in OPTIONAL.items() if theirs in found}
        for index in range(layers):
            tensors |= _layer(found, index)
    except KeyError as error:
        raise ModelError(
            f"the weights have no tensor {error.args[0]}", hint="use a BERT, RoBERTa, XLM-R or MPNet encoder"
        ) from error
    return tensors | _head(found)


def _bare(name: str) -> str:
    return next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)


def _layer(found: Tensors, index: int) -> dict[str, NDArray[np.float32]]:
    start = f"encoder.layer.{index}."
    names = MPNET_LAYER if f"{start}attention.attn.q.weight" in found else BERT_LAYER
    tensors = {}
    for short, long in PARTS.items():
        stacked = [found[f"{start}{names[part]}.{long}"] for part in "qkv"]
        tensors[f"l{index}.qkv.{short}"] = np.concatenate(stacked)
        for part in ("ao", "aln", "f1", "f2", "fln"):
            tensors[f"l{index}.{part}.{short}"] = found[f"{start}{names[part]}.{long}"]
    return tensors


def _head(found: Tensors) -> dict[str, NDArray[np.float32]]:
    for dense, out in HEADS:
        if f"{dense}.weight" in found and f"{out}.weight" in found:
            return {
                f"head.{ours}.{short}": found[f"{theirs}.{long}"]
                for ours, theirs in (("dense", dense), ("out", out))
                for short, long in PARTS.items()
            }
    return {}

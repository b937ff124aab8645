"""Small models with random weights, laid out as the hub lays them out."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS, BUCKETS = 32, 2, 4, 48, 66, 32
BERT_SPECIAL = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}
ROBERTA_SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "[UNK]": 3}


def write_tiny_model(
    folder: Path, family: str = "bert", *, labels: int = 0, pooling: str = "mean", seed: int = 0
) -> Path:
    """A model of one family; with labels it is a classifier, without it embeds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tiny_tokenizer(family).to_str())
    config = {
        "model_type": family,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": WIDE,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": 0 if family == "bert" else 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    if not labels:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        said = {"pooling_mode_cls_token": pooling == "cls", "pooling_mode_mean_tokens": pooling == "mean"}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    save_file(tiny_tensors(family, labels, seed), folder / "model.safetensors")
    return folder


def tiny_tokenizer(family: str = "bert") -> Tokenizer:
    """A word-piece tokenizer over single characters, so that any ASCII word has tokens."""
    special = BERT_SPECIAL if family == "bert" else ROBERTA_SPECIAL
    letters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*letters, *(f"##{letter}" for letter in letters), "the", "cat", "##s", "mat", "rates"]
    vocabulary = dict(special)
    for piece in pieces:
        vocabulary.setdefault(piece, len(vocabulary))
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if family == "bert":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    else:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.enable_truncation(16)  # As published models do: whoever uses it must not rely on it.
    tokenizer.enable_padding(length=20)
    return tokenizer


def tiny_tensors(family: str, labels: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)

    def make(*shape: int, around: float = 0.0) -> Any:
        return (around + 0.25 * random.standard_normal(shape)).astype(np.float32)

    size = tiny_tokenizer(family).get_vocab_size()
    prefix = {"xlm-roberta": "roberta"}.get(family, family) + "." if labels else ""
    tensors = {
        "embeddings.word_embeddings.weight": make(size, HIDDEN),
        "embeddings.position_embeddings.weight": make(POSITIONS, HIDDEN),
        "embeddings.LayerNorm.weight": make(HIDDEN, around=1),
        "embeddings.LayerNorm.bias": make(HIDDEN),
    }
    if family == "mpnet":
        tensors["encoder.relative_attention_bias.weight"] = make(BUCKETS, HEADS) * 4
    else:
        tensors["embeddings.token_type_embeddings.weight"] = make(2 if family == "bert" else 1, HIDDEN)
    for index in range(LAYERS):
        names = layer_names(family, index)
        for name in (*names["qkv"], names["ao"]):
            tensors |= {f"{name}.weight": make(HIDDEN, HIDDEN), f"{name}.bias": make(HIDDEN)}
        tensors |= {f"{names['f1']}.weight": make(WIDE, HIDDEN), f"{names['f1']}.bias": make(WIDE)}
        tensors |= {f"{names['f2']}.weight": make(HIDDEN, WIDE), f"{names['f2']}.bias": make(HIDDEN)}
        for name in (names["aln"], names["fln"]):
            tensors |= {f"{name}.weight": make(HIDDEN, around=1), f"{name}.bias": make(HIDDEN)}
    tensors = {prefix + name: tensor for name, tensor in tensors.items()}
    if labels:
        dense, out = head_names(family)
        tensors |= {f"{dense}.weight": make(HIDDEN, HIDDEN), f"{dense}.bias": make(HIDDEN)}
        tensors |= {f"{out}.weight": make(labels, HIDDEN), f"{out}.bias": make(labels)}
    return tensors


def layer_names(family: str, index: int) -> dict[str, Any]:
    """What a family calls the parts of a layer."""
    start = f"encoder.layer.{index}."
    if family == "mpnet":
        attention = {"qkv": [f"{start}attention.attn.{part}" for part in "qkv"]}
        attention |= {"ao": f"{start}attention.attn.o", "aln": f"{start}attention.LayerNorm"}
    else:
        attention = {"qkv": [f"{start}attention.self.{part}" for part in ("query", "key", "value")]}
        attention |= {"ao": f"{start}attention.output.dense", "aln": f"{start}attention.output.LayerNorm"}
    rest = {"f1": "intermediate.dense", "f2": "output.dense", "fln": "output.LayerNorm"}
    return attention | {part: start + name for part, name in rest.items()}


def head_names(family: str) -> tuple[str, str]:
    return ("bert.pooler.dense", "classifier") if family == "bert" else ("classifier.dense", "classifier.out_proj")

"""The packaged default model as a folder that SentenceTransformer opens, in float32."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ragstone.models.runtime.encoder import Encoder
from ragstone.models.weights.folder import BERT_LAYER, EMBEDDINGS, OPTIONAL, PARTS
from ragstone.models.weights.packages import GranitePack

OFFSET = 2
"""RoBERTa counts positions from behind the padding id."""
SPECIAL = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def write_hub_folder(pack: GranitePack, folder: Path) -> Path:
    """Weights, tokenizer and the three modules: encoder, first token, unit length."""
    from safetensors.numpy import save_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    encoder, plain = pack.encoder(), folder / "plain"
    plain.mkdir(parents=True)
    save_file(_tensors(encoder), plain / "model.safetensors", metadata={"format": "pt"})
    (plain / "config.json").write_text(json.dumps(_config(encoder)))
    (plain / "tokenizer.json").write_bytes(pack.tokenizer_json())
    said = SPECIAL | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": pack.max_tokens}
    (plain / "tokenizer_config.json").write_text(json.dumps(said))
    modules = [Transformer(str(plain), max_seq_length=pack.max_tokens), Pooling(encoder.hidden_size, "cls")]
    SentenceTransformer(modules=[*modules, Normalize()], device="cpu").save(str(folder / "model"))
    return folder / "model"


def _tensors(encoder: Encoder) -> dict[str, np.ndarray]:
    """The reverse of `layouts.encoder_tensors`."""
    tensors = {
        theirs: encoder.dense(ours) for ours, theirs in (EMBEDDINGS | OPTIONAL).items() if ours in encoder.tensors
    }
    positions = tensors[EMBEDDINGS["pos_emb"]]
    tensors[EMBEDDINGS["pos_emb"]] = np.pad(positions, ((OFFSET, 0), (0, 0)))
    for index in range(encoder.layers):
        for short, long in PARTS.items():
            stacked = np.split(encoder.dense(f"l{index}.qkv.{short}"), 3)
            parts = dict(zip("qkv", stacked, strict=True))
            parts |= {name: encoder.dense(f"l{index}.{name}.{short}") for name in BERT_LAYER if name not in parts}
            tensors |= {f"encoder.layer.{index}.{BERT_LAYER[name]}.{long}": part for name, part in parts.items()}
    return {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}


def _config(encoder: Encoder) -> dict[str, object]:
    return {
        "model_type": "roberta",
        "architectures": ["RobertaModel"],
        "hidden_size": encoder.hidden_size,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": encoder.heads,
        "intermediate_size": encoder.tensors["l0.f1.w"].shape[0],
        "vocab_size": encoder.tensors["word_emb"].shape[0],
        "max_position_embeddings": encoder.tensors["pos_emb"].shape[0] + OFFSET,
        "type_vocab_size": encoder.tensors["type_emb"].shape[0],
        "layer_norm_eps": encoder.epsilon,
        "hidden_act": "gelu",
        "pad_token_id": OFFSET - 1,
    }

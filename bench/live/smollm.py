"""SmolLM2-135M-Instruct from its GGUF file, computed with numpy: slow, but every word of it is the model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

Floats = NDArray[np.float32]
CHUNK = 256
"""Tokens of a prompt that are read together."""
LONGEST = 3000
"""Tokens of a prompt that are read at most: the last ones."""
PENALTY = 1.15
"""Divides what was said before, so that a small model does not repeat itself for ever."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The text of a reply, and the tokens that were read and written for it."""

    text: str
    read: int
    written: int


class SmolLM:
    """A llama with grouped attention and rotary positions."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader, dequantize

        reader = GGUFReader(path)
        self._facts = {name: field.contents() for name, field in reader.fields.items()}
        self._weights: dict[str, Floats] = {
            tensor.name: np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
            for tensor in reader.tensors
        }
        self._layers = int(self._facts["llama.block_count"])
        self._heads = int(self._facts["llama.attention.head_count"])
        self._groups = int(self._facts["llama.attention.head_count_kv"])
        self._size = int(self._facts["llama.rope.dimension_count"])
        self._tokenizer = _build_tokenizer(self._facts)
        self._end = int(self._facts["tokenizer.ggml.eos_token_id"])

    def complete(self, turns: Sequence[Mapping[str, Any]], most: int, temperature: float) -> Completion:
        """Return the next turn of a conversation."""
        asked = "".join(f"<|im_start|>{turn['role']}\n{turn['content'] or ''}<|im_end|>\n" for turn in turns)
        tokens = self._tokenizer.encode(f"{asked}<|im_start|>assistant\n").ids[-LONGEST:]
        cache: list[tuple[Floats, Floats]] = []
        for start in range(0, len(tokens), CHUNK):
            scores = self._step(np.array(tokens[start : start + CHUNK]), start, cache)
        said: list[int] = []
        generator = np.random.default_rng(len(tokens))
        while len(said) < most:
            token = _pick(scores, said, temperature, generator)
            if token == self._end:
                break
            said.append(token)
            scores = self._step(np.array([token]), len(tokens) + len(said) - 1, cache)
        return Completion(str(self._tokenizer.decode(said)).strip(), len(tokens), len(said))

    def _step(self, tokens: NDArray[np.int64], start: int, cache: list[tuple[Floats, Floats]]) -> Floats:
        """Read tokens that stand at `start`; return the scores of the one that follows them."""
        weights, state = self._weights, self._weights["token_embd.weight"][tokens]
        turned = self._angles(start + np.arange(len(tokens)))
        for layer in range(self._layers):
            state = state + self._attend(layer, self._norm(state, f"blk.{layer}.attn_norm.weight"), turned, cache)
            inner = self._norm(state, f"blk.{layer}.ffn_norm.weight")
            gate = inner @ weights[f"blk.{layer}.ffn_gate.weight"].T
            gate = gate / (1 + np.exp(-gate)) * (inner @ weights[f"blk.{layer}.ffn_up.weight"].T)
            state = state + gate @ weights[f"blk.{layer}.ffn_down.weight"].T
        last = self._norm(state[-1:], "output_norm.weight")[0]
        scores: Floats = weights["token_embd.weight"] @ last
        return scores

    def _attend(
        self, layer: int, state: Floats, turned: tuple[Floats, Floats], cache: list[tuple[Floats, Floats]]
    ) -> Floats:
        weights, count = self._weights, len(state)
        query = (state @ weights[f"blk.{layer}.attn_q.weight"].T).reshape(count, self._heads, self._size)
        key = (state @ weights[f"blk.{layer}.attn_k.weight"].T).reshape(count, self._groups, self._size)
        value = (state @ weights[f"blk.{layer}.attn_v.weight"].T).reshape(count, self._groups, self._size)
        query, key = _rotate(query, turned), _rotate(key, turned)
        if layer < len(cache):
            key, value = (np.concatenate(pair) for pair in zip(cache[layer], (key, value), strict=True))
            cache[layer] = key, value
        else:
            cache.append((key, value))
        times, before = self._heads // self._groups, len(key) - count
        keys, values = (np.repeat(part, times, axis=1).transpose(1, 0, 2) for part in (key, value))
        near = query.transpose(1, 0, 2) @ keys.transpose(0, 2, 1) / self._size**0.5
        near[:, np.arange(len(key))[None, :] > (before + np.arange(count))[:, None]] = -np.inf
        near = np.exp(near - near.max(axis=-1, keepdims=True))
        near /= near.sum(axis=-1, keepdims=True)
        mixed = (near @ values).transpose(1, 0, 2).reshape(count, -1)
        attended: Floats = mixed @ weights[f"blk.{layer}.attn_output.weight"].T
        return attended

    def _norm(self, state: Floats, name: str) -> Floats:
        epsilon = float(self._facts["llama.attention.layer_norm_rms_epsilon"])
        normed: Floats = state / np.sqrt((state * state).mean(axis=-1, keepdims=True) + epsilon) * self._weights[name]
        return normed

    def _angles(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        base = float(self._facts["llama.rope.freq_base"])
        speeds = base ** -(np.arange(0, self._size, 2) / self._size)
        angles = places[:, None] * speeds[None, :]
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _rotate(part: Floats, turned: tuple[Floats, Floats]) -> Floats:
    """Turn pairs of neighbours by their position, as GGUF orders them."""
    cosine, sine = (angle[:, None, :] for angle in turned)
    even, odd = part[..., ::2], part[..., 1::2]
    rotated = np.empty_like(part)
    rotated[..., ::2], rotated[..., 1::2] = even * cosine - odd * sine, even * sine + odd * cosine
    return rotated


def _pick(scores: Floats, said: Sequence[int], temperature: float, generator: np.random.Generator) -> int:
    scores = scores.copy()
    known = list(set(said[-128:]))
    scores[known] = np.where(scores[known] > 0, scores[known] / PENALTY, scores[known] * PENALTY)
    if temperature <= 0:
        return int(scores.argmax())
    best = np.argpartition(scores, -40)[-40:]
    chances = np.exp((scores[best] - scores[best].max()) / temperature).astype(np.float64)
    return int(generator.choice(best, p=chances / chances.sum()))


def _build_tokenizer(facts: Mapping[str, Any]) -> Tokenizer:
    words: list[str] = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({word: place for place, word in enumerate(words)}, merges))
    split = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(split)
    tokenizer.decoder = decoders.ByteLevel()
    special = [word for word, kind in zip(words, facts["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special])
    return tokenizer

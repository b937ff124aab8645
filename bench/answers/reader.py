"""Train the reader: a cross-encoder that tells whether a unit of a passage answers a question.

It starts from the default embedding model, whose lower layers stay as they are. Each step takes three questions, with
some units that answer them and some of the best by words that do not. The loss asks that the right ones stand out among
all of their question, and that each by itself is told right from wrong. With `--again` it starts from the reader that
is there, at half the rates. Needs torch, which `make peers` installs; about an hour on two cores.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bench.answers.collection import READ, AskedQuestion, Collection, load_collection
from bench.answers.fit import MOST_PAGES, Asked, Example, judge_units, manual_of, record_calls
from bench.answers.knowledge import ingest_pages, open_knowledge
from bench.answers.measure import Filter
from ragstone.answer import extract
from ragstone.answer.extract import shortlist_units
from ragstone.answer.reader import describe_for_reader
from ragstone.engine.engine import Engine
from ragstone.language.relevance import asked_terms
from ragstone.models.runtime.encoder import Encoder
from ragstone.models.runtime.inference import ModelTokenizer
from ragstone.models.weights import reader as weights
from ragstone.models.weights.reader import FILE, ReaderPack, write_layers

EPOCHS, AT_ONCE = 1, 3
RATE, HEAD_RATE, WARM_SHARE, DECAY = 8e-5, 8e-4, 0.1, 0.01
AGAIN_SHARE = 0.5
"""The share of the rates with which a trained reader is trained again."""
FIRST_TRAINED = 2
"""The lowest layer that is trained."""
DROPOUT = 0.1
MOST_RIGHT, MOST_WRONG, HARDEST = 2, 6, 14
"""Units of a question that a step takes: right ones, and wrong ones drawn from the best by words."""
LENGTHS = 3
"""Parts of a step's units, by length."""
READ_THROUGH = 32
"""Units of a question that are looked through."""
APART, RIGHT_WEIGHT = 0.3, 3.0
"""The weight of telling each unit by itself, and there the weight of a right one."""


@dataclass(frozen=True)
class Lesson:
    """The token ids of a question with each of its units, best by words first, and which of them are right."""

    ids: Sequence[Sequence[int]]
    right: Sequence[bool]

    def draw(self) -> tuple[list[Sequence[int]], int]:
        """Return some units, the right ones first, and how many of them are right."""
        right = [ids for ids, is_right in zip(self.ids, self.right, strict=True) if is_right]
        wrong = [ids for ids, is_right in zip(self.ids, self.right, strict=True) if not is_right][:HARDEST]
        drawn = random.sample(right, min(MOST_RIGHT, len(right)))
        return [*drawn, *random.sample(wrong, min(MOST_WRONG, len(wrong)))], len(drawn)


class ReaderNetwork(nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
    """The encoder of `models.runtime.encoder` with a head, as torch trains it."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._encoder = encoder
        self.trained = nn.ParameterDict()
        for name in encoder.tensors:
            tensor = torch.tensor(np.array(encoder.dense(name)))
            if name.startswith("head."):
                continue
            if name.startswith("l") and int(name[1 : name.index(".")]) >= FIRST_TRAINED:
                self.trained[name.replace(".", "_")] = nn.Parameter(tensor)
            else:
                self.register_buffer(name.replace(".", "_"), tensor)
        size = encoder.hidden_size
        self.dense, self.out = nn.Linear(size, size), nn.Linear(size, 1)
        for layer in (self.dense, self.out):
            nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(self.out.bias)
        if encoder.has_head:
            self._take_head(encoder)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one log odds per row."""
        rows, length = ids.shape
        encoder, size = self._encoder, self._encoder.hidden_size
        x = functional.embedding(ids, self._tensor("word_emb")) + self._tensor("pos_emb")[:length]
        x = self._norm("emb_ln", x + self._tensor("type_emb")[0])
        bias = (1 - mask)[:, None, None, :] * -1e9
        for index in range(encoder.layers):
            stacked = self._linear(f"l{index}.qkv", x).view(rows, length, 3, encoder.heads, size // encoder.heads)
            query, key, value = stacked.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            mixed = self._linear(f"l{index}.ao", mixed.transpose(1, 2).reshape(rows, length, size))
            x = self._norm(f"l{index}.aln", x + functional.dropout(mixed, DROPOUT, self.training))
            wide = functional.gelu(self._linear(f"l{index}.f1", x))
            narrow = functional.dropout(self._linear(f"l{index}.f2", wide), DROPOUT, self.training)
            x = self._norm(f"l{index}.fln", x + narrow)
        first = functional.dropout(torch.tanh(self.dense(x[:, 0])), DROPOUT, self.training)
        odds: torch.Tensor = self.out(first)[:, 0]
        return odds

    def tensors(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return what was trained, under the names of the encoder."""
        names = {name.replace(".", "_"): name for name in self._encoder.tensors}
        trained = {names[name]: tensor.detach().numpy() for name, tensor in self.trained.items()}
        for name, layer in self._heads():
            trained |= {f"{name}.w": layer.weight.detach().numpy(), f"{name}.b": layer.bias.detach().numpy()}
        return trained

    def _take_head(self, encoder: Encoder) -> None:
        with torch.no_grad():
            for name, layer in self._heads():
                layer.weight.copy_(torch.tensor(np.array(encoder.dense(f"{name}.w"))))
                layer.bias.copy_(torch.tensor(np.array(encoder.dense(f"{name}.b"))))

    def _heads(self) -> Sequence[tuple[str, nn.Linear]]:
        return ("head.dense", self.dense), ("head.out", self.out)

    def _tensor(self, name: str) -> torch.Tensor:
        name = name.replace(".", "_")
        tensor: torch.Tensor = self.trained[name] if name in self.trained else getattr(self, name)
        return tensor

    def _linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self._tensor(f"{name}.w"), self._tensor(f"{name}.b"))

    def _norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        weight, shift = self._tensor(f"{name}.w"), self._tensor(f"{name}.b")
        return functional.layer_norm(x, x.shape[-1:], weight, shift, self._encoder.epsilon)


async def train_reader(kept: Path | None, again: bool) -> None:
    """Train the reader on manuals and everyday texts, anew or on from where it is, and write its weights."""
    examples = [example for part in READ for example in await _collect(load_collection(part), kept)]
    pack = ReaderPack.installed()
    tokenizer = ModelTokenizer("the reader", pack.tokenizer_json())
    lessons = [_prepare(example, tokenizer, pack.max_tokens) for example in examples]
    random.seed(1)
    torch.manual_seed(1)
    network = ReaderNetwork(pack.encoder() if again else pack.base.encoder())
    _train(network, lessons, tokenizer.padding, AGAIN_SHARE if again else 1.0)
    digest = write_layers(FILE, network.tensors())
    print(f'Set SHA256 = "{digest}" in {Path(weights.__file__).name}, then run `python -m bench.answers fit`.')


async def _collect(collection: Collection, kept: Path | None) -> list[Example]:
    """Return the questions that nothing answers, and those of which some unit that was found holds the facts.

    Where none was found among all pages, the question is asked again of the pages of its manual.
    """
    async with ingest_pages(collection.pages, kept) as data, open_knowledge(data) as components:
        workspace = Engine(components).workspace("default")
        examples = _judge(await record_calls(collection.questions, workspace))
        found = {example.question.id for example in examples if any(example.right)}
        lost = [question for question in collection.questions if question.facts and question.id not in found]
        pages = [document.uri for document in await workspace.documents.list(limit=MOST_PAGES)]

        def within_manual(question: AskedQuestion) -> Filter:
            return {"source": {"in": [uri for uri in pages if f"/pages/{manual_of(question)}/" in uri]}}

        examples += _judge(await record_calls(lost, workspace, within_manual))
    return [example for example in examples if any(example.right) or not example.question.facts]


def _judge(asked: Sequence[Asked]) -> list[Example]:
    # Only words choose what is looked through: one training must not depend on the one before it.
    with patch.object(extract, "SHORTLIST", READ_THROUGH):
        found = [shortlist_units(one.text, one.hits, True, one.shared) for one in asked]
    return judge_units(asked, found)


def _prepare(example: Example, tokenizer: ModelTokenizer, longest: int) -> Lesson:
    terms = frozenset(asked_terms(example.text))
    texts = [describe_for_reader(item.unit, terms) for item in example.scored]
    return Lesson([ids for ids, _ in tokenizer.pairs(example.text, texts, longest)], example.right)


def _train(network: ReaderNetwork, lessons: list[Lesson], padding: int, share: float) -> None:
    heads = [*network.dense.parameters(), *network.out.parameters()]
    optimizer = torch.optim.AdamW(
        [
            {"params": list(network.trained.values()), "lr": share * RATE, "weight_decay": DECAY},
            {"params": heads, "lr": share * HEAD_RATE, "weight_decay": DECAY},
        ]
    )
    steps = EPOCHS * (len(lessons) // AT_ONCE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share_of_rate(step / steps))
    network.train()
    started, total = time.monotonic(), 0.0
    for step, batch in enumerate(_draw_batches(lessons), 1):
        loss = _find_loss(network, batch, padding)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 50 == 0:
            print(f"step {step} of {steps}, mean loss {total / 50:.3f}, {time.monotonic() - started:.0f} s", flush=True)
            total = 0.0
    network.eval()


def _share_of_rate(done: float) -> float:
    return min(done / WARM_SHARE, 1.0, max(1 - done, 0.0) / (1 - WARM_SHARE))


def _draw_batches(lessons: list[Lesson]) -> Iterator[Sequence[Lesson]]:
    for _ in range(EPOCHS):
        random.shuffle(lessons)
        for first in range(0, len(lessons) - AT_ONCE + 1, AT_ONCE):
            yield lessons[first : first + AT_ONCE]


def _find_loss(network: ReaderNetwork, batch: Sequence[Lesson], padding: int) -> torch.Tensor:
    drawn = [lesson.draw() for lesson in batch]
    odds = _read_by_length(network, [ids for units, _ in drawn for ids in units], padding)
    losses = []
    for own, (units, right) in zip(odds.split([len(units) for units, _ in drawn]), drawn, strict=True):
        wanted = torch.tensor([float(place < right) for place in range(len(units))])
        weight = torch.tensor(RIGHT_WEIGHT)
        loss = APART * functional.binary_cross_entropy_with_logits(own, wanted, pos_weight=weight)
        if right:
            loss = loss + torch.logsumexp(own, 0) - torch.logsumexp(own[:right], 0)
        losses.append(loss)
    return torch.stack(losses).mean()


def _read_by_length(network: ReaderNetwork, rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
    """Return one log odds per row; rows of like length are read together, which saves a fifth of the time."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    size = -(-len(order) // LENGTHS)
    parts = [order[first : first + size] for first in range(0, len(order), size)]
    odds = torch.cat([network(*_pad([rows[place] for place in part], padding)) for part in parts])
    return odds[torch.tensor(order).argsort()]


def _pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in rows])
    return ids, mask

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragstone.core.errors import InputError
from ragstone.evaluate.dataset import Dataset, Query
from ragstone.evaluate.runner import SystemScores
from ragstone.evaluate.tune import Changes, Knob, split_queries, tune

QUERIES = tuple(Query(f"q{n}", f"query number {n}") for n in range(80))
DATASET = Dataset("rocks", Path(), "test", QUERIES, {query.id: {"d": 1} for query in QUERIES})
WEIGHT = Knob("retrieval.dense_weight", (0.3, 0.5, 0.9))
FUSION = Knob("retrieval.fusion", ("rrf", "zscore"))
Quality = Callable[[Changes, bool], float]


class Measured:
    """Scores every query by a function of the settings, and remembers what it was asked."""

    def __init__(self, quality: Quality, p95_ms: Callable[[Changes], float] = lambda _: 10.0) -> None:
        self.quality = quality
        self.p95_ms = p95_ms
        self.train, self.test = split_queries(DATASET)
        self.asked: list[tuple[Changes, int]] = []

    async def __call__(self, changes: Changes, dataset: Dataset) -> SystemScores:
        self.asked.append((changes, len(dataset.queries)))
        held_out = dataset.queries == self.test.queries
        score = self.quality(changes, held_out)
        spread = tuple(score + 0.01 * (n % 2) for n in range(len(dataset.queries)))
        return SystemScores("x", {"ndcg@10": score}, {"ndcg@10": spread}, (self.p95_ms(changes),))


def _by_weight(changes: Changes, held_out: bool) -> float:
    return {0.3: 0.5, 0.5: 0.8, 0.9: 0.7}.get(changes.get("retrieval.dense_weight", 0), 0.6)


async def test_the_best_place_of_each_knob_is_found() -> None:
    def quality(changes: Changes, held_out: bool) -> float:
        return _by_weight(changes, held_out) + (0.05 if changes.get("retrieval.fusion") == "rrf" else 0)

    tuning = await tune(Measured(quality), DATASET, [WEIGHT, FUSION], 100)
    assert tuning.changes == {"retrieval.dense_weight": 0.5, "retrieval.fusion": "rrf"}
    assert tuning.is_better
    assert tuning.interval.difference == pytest.approx(0.25)
    assert tuning.is_better
    tried = [tuple(trial.changes.items()) for trial in tuning.trials]
    assert len(tried) == len(set(tried))


async def test_what_is_chosen_is_judged_by_other_queries() -> None:
    measured = Measured(lambda changes, held_out: 0.6 if held_out else _by_weight(changes, held_out))
    tuning = await tune(measured, DATASET, [WEIGHT], 100)
    assert tuning.changes == {"retrieval.dense_weight": 0.5}
    assert not tuning.is_better  # better where it was chosen, and nowhere else
    assert (tuning.trained_on, tuning.held_out) == (len(measured.train.queries), len(measured.test.queries))
    assert [size for _, size in measured.asked[-2:]] == [tuning.held_out] * 2


async def test_what_is_too_slow_is_not_chosen() -> None:
    slow = Measured(_by_weight, lambda changes: 500.0 if changes.get("retrieval.dense_weight") == 0.5 else 10.0)
    tuning = await tune(slow, DATASET, [WEIGHT], 100)
    assert tuning.changes == {"retrieval.dense_weight": 0.9}
    assert [trial.within_budget for trial in tuning.trials].count(False) == 1


async def test_settings_that_turn_out_slow_on_the_held_out_queries_are_refused() -> None:
    measured = Measured(_by_weight)

    async def measure(changes: Changes, dataset: Dataset) -> SystemScores:
        row = await measured(changes, dataset)
        slow = changes and dataset.queries == measured.test.queries
        return SystemScores(row.system, row.scores, row.per_query, (900.0,)) if slow else row

    tuning = await tune(measure, DATASET, [WEIGHT], 100)
    assert (tuning.interval.low > 0, tuning.is_better) == (True, False)


async def test_when_nothing_is_better_nothing_changes() -> None:
    measured = Measured(lambda changes, held_out: 0.5)
    tuning = await tune(measured, DATASET, [WEIGHT, FUSION], 100)
    assert (tuning.changes, tuning.is_better) == ({}, False)
    assert tuning.after is tuning.before


def test_the_split_does_not_depend_on_the_order() -> None:
    backwards = Dataset("rocks", Path(), "test", QUERIES[::-1], DATASET.grades)
    train, test = split_queries(DATASET)
    assert {query.id for query in train.queries}.isdisjoint(query.id for query in test.queries)
    assert set(split_queries(backwards)[1].queries) == set(test.queries)


def test_too_few_queries_to_tune_by() -> None:
    few = Dataset("rocks", Path(), "test", QUERIES[:15], DATASET.grades)
    with pytest.raises(InputError, match="15 labelled queries are too few"):
        split_queries(few)

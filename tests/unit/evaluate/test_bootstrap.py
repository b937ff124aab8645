from __future__ import annotations

import numpy as np
import pytest

from ragstone.core.errors import InputError
from ragstone.evaluate import metrics as bootstrap
from ragstone.evaluate.metrics import paired_bootstrap


def test_the_same_scores_give_the_same_interval_on_every_run() -> None:
    better = [0.1 * (n % 7) for n in range(50)]
    worse = [0.1 * (n % 5) for n in range(50)]
    assert paired_bootstrap(better, worse) == paired_bootstrap(better, worse)


def test_a_constant_difference_has_no_spread() -> None:
    interval = paired_bootstrap([0.75] * 20, [0.5] * 20)
    assert (interval.difference, interval.low, interval.high) == (0.25, 0.25, 0.25)


def test_the_interval_is_that_of_the_normal_distribution_when_there_are_many_queries() -> None:
    differences = np.random.default_rng(1).normal(0.02, 0.3, size=2000)
    interval = paired_bootstrap(list(differences), [0.0] * 2000)
    half = 1.96 * differences.std() / np.sqrt(2000)
    assert interval.difference == pytest.approx(differences.mean())
    assert interval.low == pytest.approx(differences.mean() - half, abs=0.05 * half)
    assert interval.high == pytest.approx(differences.mean() + half, abs=0.05 * half)


def test_queries_are_paired() -> None:
    """The same means, but once each query agrees and once they are shuffled against each other."""
    scores = list(np.linspace(0, 1, 100))
    paired = paired_bootstrap([value + 0.01 for value in scores], scores)
    shuffled = paired_bootstrap([value + 0.01 for value in scores], scores[::-1])
    assert paired.low > 0
    assert shuffled.low < 0 < shuffled.high
    assert paired.difference == pytest.approx(shuffled.difference)


def test_many_queries_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, baseline = [0.0, 1.0, 0.5, 0.25], [0.25, 0.5, 0.5, 0.0]
    whole = paired_bootstrap(scores, baseline, samples=1000)
    monkeypatch.setattr(bootstrap, "DRAWS_AT_ONCE", 12)
    assert paired_bootstrap(scores, baseline, samples=1000) == whole


@pytest.mark.parametrize(("scores", "baseline"), [([], []), ([1.0], [1.0, 0.5])])
def test_scores_of_different_queries_are_refused(scores: list[float], baseline: list[float]) -> None:
    with pytest.raises(InputError, match="both systems need the same queries"):
        paired_bootstrap(scores, baseline)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        paired_bootstrap([1.0], [0.0], confidence=confidence)

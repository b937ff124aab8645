"""Names and figures of a statement that its sources state of something else."""

from __future__ import annotations

import pytest

from ragstone.answer.verify import fit
from ragstone.answer.verify.fit import Figure, find_misfits, is_same


def test_each_figure_is_compared_a_few_times_with_each_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing all of them again for each figure took a claim of dates a minute."""
    compared = 0

    def count(mine: Figure, theirs: Figure) -> bool:
        nonlocal compared
        compared += 1
        return is_same(mine, theirs)

    monkeypatch.setattr(fit, "is_same", count)
    figures = 25
    claim = ", ".join(f"{day} May {2000 + day}" for day in range(1, figures + 1))
    source = ", ".join(f"{day} June {1990 + day}" for day in range(1, figures + 1))
    assert find_misfits(claim, [source]) == []
    assert figures**2 <= compared <= 4 * figures**2

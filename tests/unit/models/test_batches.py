from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.model_types import unit_rows
from ragstone.models.embedders.local import windows
from ragstone.models.runtime.inference import pad_rows


@pytest.mark.req("R-CHK-26")
@given(st.integers(1, 3000), st.integers(8, 512))
def test_windows_cover_a_text_and_fit_the_model(length: int, longest: int) -> None:
    ids = list(range(length))
    cut = windows(7, ids, longest)
    assert all(window.text == 7 and len(window.ids) <= longest for window in cut)
    assert sorted({number for window in cut for number in window.ids}) == ids
    assert len(cut) == 1 or len({len(window.ids) for window in cut}) == 1


def test_a_text_that_fits_is_one_window() -> None:
    assert [window.ids for window in windows(0, [5, 6, 7], 3)] == [(5, 6, 7)]


def test_padding_fills_up_on_the_right() -> None:
    ids, mask = pad_rows([[4, 5, 6], [7]], padding=1)
    assert ids.tolist() == [[4, 5, 6], [7, 1, 1]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("length", "longest", "width"),
    [(127, 512, 127), (128, 512, 128), (129, 512, 144), (505, 512, 512), (505, 508, 508), (505, 0, 505)],
)
def test_long_rows_get_a_fast_width_that_still_fits(length: int, longest: int, width: int) -> None:
    ids, mask = pad_rows([[4] * length, [7]], padding=1, longest=longest)
    assert ids.shape == mask.shape == (2, width)
    assert ids[0].tolist() == [4] * length + [1] * (width - length)
    assert mask.sum(axis=1).tolist() == [length, 1]


def test_rows_become_unit_length_and_zero_stays_zero() -> None:
    made = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    assert made.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]

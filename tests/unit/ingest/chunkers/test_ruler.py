"""Measuring spans: what `size`, `reach` and `back` promise each other."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.model_types import WordTokenizer
from ragstone.ingest.chunkers import cutting as ruler_module
from ragstone.ingest.chunkers.cutting import Ruler, cut_windows

TEXT = st.text(alphabet="ab1 \n.,é漢🇫e\u0301\u200d👩", max_size=120)
UNIT: st.SearchStrategy[Literal["tokens", "chars"]] = st.sampled_from(["tokens", "chars"])


def test_tokens_at_the_edges_count() -> None:
    ruler = Ruler("one two three", WordTokenizer(), "tokens")
    assert ruler.tokens(0, 13) == 3
    assert ruler.tokens(1, 6) == 2
    assert ruler.tokens(3, 4) == 0
    assert ruler.reach(0, 2) == 8
    assert ruler.back(13, 2) == 3


@settings(deadline=None)
@given(TEXT, UNIT, st.integers(1, 9), st.integers(0, 120))
def test_reach_and_back_are_as_far_as_the_size_allows(
    text: str, unit: Literal["tokens", "chars"], size: int, at: int
) -> None:
    ruler = Ruler(text, WordTokenizer(), unit)
    at = min(at, len(text))
    end, start = ruler.reach(at, size), ruler.back(at, size)
    assert ruler.size(at, max(at, end)) <= size or end <= at
    assert ruler.size(min(at, start), at) <= size or start >= at
    assert end == len(text) or ruler.size(at, end + 1) > size
    assert start == 0 or ruler.size(start - 1, at) > size


def test_a_text_is_tokenised_in_slices_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "some words, and\nmore " * 20 + "x" * 50
    whole = Ruler(text, WordTokenizer(), "tokens")
    monkeypatch.setattr(ruler_module, "SLICE", 25)
    sliced = Ruler(text, WordTokenizer(), "tokens")
    assert [sliced.reach(0, size) for size in range(100)] == [whole.reach(0, size) for size in range(100)]
    assert sliced.tokens(0, len(text)) >= whole.tokens(0, len(text))


@settings(deadline=None)
@given(TEXT, UNIT, st.integers(1, 12), st.integers(0, 11))
def test_windows_cover_everything_and_move_on(
    text: str, unit: Literal["tokens", "chars"], size: int, overlap: int
) -> None:
    ruler = Ruler(text, WordTokenizer(), unit)
    covered = began = -1
    for start, end in cut_windows(text, ruler, (0, len(text)), size, min(overlap, size - 1)):
        assert start > began
        assert end > covered
        assert ruler.size(start, end) <= size
        assert covered < 0 or ruler.size(start, max(start, covered)) <= overlap
        assert not text[max(covered, 0) : start].strip()
        began, covered = start, end
    assert not text[max(covered, 0) :].strip()

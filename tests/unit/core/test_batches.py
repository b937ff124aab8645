"""Items in batches, by number and by weight."""

from __future__ import annotations

from ragstone.core.batches import batched, batched_by_weight
from ragstone.core.filters import And, Equals, In, Not, Or, Range, leaves_of


def test_a_sequence_is_cut_into_slices() -> None:
    assert list(batched([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(batched([], 2)) == []


def test_a_batch_ends_before_it_is_too_long_or_too_heavy() -> None:
    def cut(*items: str) -> list[list[str]]:
        return list(batched_by_weight(items, len, most=3, heaviest=5))

    assert cut("a", "b", "c", "d") == [["a", "b", "c"], ["d"]]
    assert cut("aaa", "bb", "c") == [["aaa", "bb"], ["c"]]
    assert cut("a", "bbbbbbbb", "c") == [["a"], ["bbbbbbbb"], ["c"]]
    assert cut() == []


def test_the_leaves_of_a_filter_are_its_conditions_on_fields() -> None:
    leaves = Equals("a", 1), In("b", (1, 2)), Range("c", gt=3), Equals("d", "x")
    assert tuple(leaves_of(And((leaves[0], Or((leaves[1], Not(leaves[2]))), leaves[3])))) == leaves

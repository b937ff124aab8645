"""The dense scan against NumPy's own sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.types import Candidate
from ragstone.stores.indexes import IndexCache
from ragstone.stores.vectors.sqlite import FIRST_CAPACITY, VectorMatrix
from ragstone.testing.builders import unit_vectors
from ragstone.testing.oracles import check_ranking

POOL = unit_vectors(40, 8)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.lists(st.integers(0, 19), max_size=6, unique=True)), max_size=20
)


def name(number: int) -> str:
    return f"chunk-{number:03}"


@given(steps=STEPS, offset=st.integers(0, 20))
def test_it_follows_every_change(steps: list[tuple[str, list[int]]], offset: int) -> None:
    matrix = VectorMatrix(8)
    rows: dict[int, int] = {}
    for at, (step, numbers) in enumerate(steps):
        if step == "put":
            places = [(number + at * offset) % len(POOL) for number in numbers]
            matrix.put(numbers, [name(number) for number in numbers], POOL[places].reshape(-1, 8))
            rows.update(zip(numbers, places, strict=True))
        else:
            matrix.remove(numbers)
            for number in numbers:
                rows.pop(number, None)
    assert len(matrix) == len(rows)
    query = unit_vectors(1, 8, seed=1)[0]
    expected = {name(number): float(POOL[place] @ query) for number, place in rows.items()}
    for k in (1, 5, 100):
        check_ranking(matrix.nearest(query, k), expected, k, 1e-6)
    some = np.array([3, 4, 5, 6, 77], np.int64)
    kept = {key: score for key, score in expected.items() if key in {name(n) for n in some.tolist()}}
    check_ranking(matrix.nearest(query, 3, some), kept, 3, 1e-6)


def test_equal_vectors_tie_wherever_they_stand() -> None:
    same = unit_vectors(1, 384)
    query = unit_vectors(1, 384, seed=1)[0]
    for size in (5, 33, 250):
        matrix = VectorMatrix(384)
        order = np.random.default_rng(size).permutation(size).tolist()
        matrix.put(order, [name(n) for n in order], np.repeat(same, size, axis=0))
        found = matrix.nearest(query, 4)
        assert [one.chunk_id for one in found] == [name(n) for n in range(4)]
        few = matrix.nearest(query, 2, np.array([2, 3, 4], np.int64))
        assert few == [Candidate(name(2), found[0].score), Candidate(name(3), found[0].score)]


def test_it_grows_past_its_first_capacity() -> None:
    matrix = VectorMatrix(8)
    rows = unit_vectors(FIRST_CAPACITY * 3, 8)
    for start in range(0, len(rows), 700):
        part = rows[start : start + 700]
        numbers = list(range(start, start + len(part)))
        matrix.put(numbers, [name(n) for n in numbers], part)
    expected = {name(n): float(row @ rows[0]) for n, row in enumerate(rows)}
    check_ranking(matrix.nearest(rows[0], 10), expected, 10, 1e-6)
    assert matrix.bytes >= rows.nbytes


def test_the_least_recently_used_leave_memory_first() -> None:
    residents = IndexCache(1)

    def make() -> VectorMatrix:
        matrix = VectorMatrix(100)
        matrix.put([1], ["x"], np.zeros((1, 100), np.float32))
        return matrix

    keys = [("vectors", "tenant", n) for n in range(4)]
    first = {key: residents.get(key, make) for key in keys}
    assert sum(one.resident.bytes for one in first.values()) > 1024 * 1024
    residents.get(keys[0], make)
    residents.trim()
    kept = [key for key in keys if residents.get(key, make) is first[key]]
    assert kept == [keys[0], keys[3]]

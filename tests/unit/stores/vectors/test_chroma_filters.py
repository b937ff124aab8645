"""Filters in Chroma's words; that they mean the same is in `tests/conformance/test_chroma.py`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.filters import Equals, In, Not, Range, parse_filter
from ragstone.core.vectors import Point, VectorPartition
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.chroma.filters import (
    MOST_VALUES,
    PAYLOAD,
    can_translate,
    metadata_of,
    payload_of,
    translate,
)
from ragstone.stores.vectors.chroma.provider import ChromaProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import make_points, new_partition

NONE: dict[str, Any] = {"a": {"in": []}}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"a": "x"}, {"$or": [{"a": {"$in": ["x"]}}, {"a": {"$contains": '"x"'}}]}),
        ({"a": 1}, {"$or": [{"a": {"$in": [1.0]}}, {"a": {"$contains": "1"}}]}),
        ({"not": {"a": True}}, {"$and": [{"a": {"$nin": [True]}}, {"a": {"$not_contains": "true"}}]}),
        ({"a": {"gte": 0, "lt": 2}}, {"$and": [{"a": {"$gte": 0.0}}, {"a": {"$lt": 2.0}}]}),
        ({"not": {"not": {"a": {"gt": 0}}}}, {"a": {"$gt": 0.0}}),
        (NONE, False),
        ({"not": NONE}, True),
        ({"and": [NONE, {"a": {"gt": 0}}]}, False),
        ({"or": [NONE, {"a": {"gt": 0}}]}, {"a": {"$gt": 0.0}}),
        ({"or": [{"not": NONE}, {"a": {"gt": 0}}]}, True),
    ],
)
def test_a_filter_in_chromas_words(raw: Any, expected: Any) -> None:
    where = parse_filter(raw)
    assert where is not None
    assert can_translate(where)
    assert translate(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        Equals("a", 2**53),
        Equals("a", -1e300),
        Equals("a", "\ud800"),
        In("a", (1, 2**60)),
        In("a", tuple(range(MOST_VALUES + 1))),
        Range("a", gte="2026"),
        Range("a", gte=True),
        Range("a", lt=2**53),
        Not(Range("a", gt=0)),
    ],
)
def test_what_chroma_would_answer_otherwise_is_refused(where: Any) -> None:
    assert not can_translate(where)


def test_the_payload_comes_back_and_fields_have_one_type_for_all_numbers() -> None:
    payload = {"i": 1, "f": 0.5, "b": True, "s": "1", "n": None, "e": [], "l": ["1", 1, 1.0, None], "text": "t"}
    metadata = metadata_of(VectorPartition("t", "s", 2), Point("c", unit_vectors(1, 2)[0], payload))
    assert json.dumps(payload_of(metadata)) == json.dumps(payload)
    assert {name: value for name, value in metadata.items() if name != PAYLOAD} == {
        "i": 1.0,
        "f": 0.5,
        "b": True,
        "s": "1",
        "l": ['"1"', "1", "1"],
        "tenant_id": "t",
        "space": "s",
        "chunk_id": "c",
    }
    assert type(metadata["i"]) is float


async def test_every_float_is_found_by_itself_and_by_nothing_near_it(tmp_path: Path) -> None:
    generator = random.Random(3)
    numbers = [generator.uniform(-1, 1) * 10 ** generator.randint(-20, 15) for _ in range(150)]
    provider = ChromaProvider(Adapter(kind="chroma", options={"in_memory": True}), tmp_path, "collection")
    place, query = new_partition(), unit_vectors(1)[0]
    points = make_points(unit_vectors(len(numbers)), *({"a": number} for number in numbers))
    await provider.upsert(place, points)
    for point, number in zip(points, numbers, strict=True):
        for where in (Equals("a", number), Range("a", gte=number, lte=number)):
            assert [one.chunk_id for one in await provider.search(place, query, 9, where)] == [point.chunk_id]
    await provider.close()

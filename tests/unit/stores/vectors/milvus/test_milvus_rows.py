"""Rows hold what a point was given with, under names that belong to one tenant and space."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pytest

from ragstone.core.errors import InputError, PointRefused, StoreCorrupt
from ragstone.core.remedies import Action, Remedy
from ragstone.core.vectors import Isolation, Point, VectorPartition
from ragstone.stores.vectors.milvus.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    MOST_TERMS,
    PIECE,
    batch_rows,
    physical_id,
    point_of,
    row_of,
    scope_of,
)
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import HOSTILE

PLACE = VectorPartition("a1", "b2", 8)
VECTOR = unit_vectors(1, 8)[0]


def test_each_isolation_names_its_own_scope() -> None:
    own = scope_of(PLACE, "collection")
    assert (own.collection, own.partitions, own.narrow("x")) == ("rs_a1_b2", None, "(x)")
    shared = scope_of(PLACE, "namespace")
    assert (shared.collection, shared.partitions) == ("rs_d8", ["tenant_a1"])
    assert shared.condition == 'tenant_id == "a1" and space == "b2"'
    conditioned = scope_of(PLACE, "filter")
    assert (conditioned.collection, conditioned.partitions) == ("rs_d8", None)
    assert conditioned.narrow("x") == '(tenant_id == "a1" and space == "b2") and (x)'
    assert own.narrow("") == ""


@pytest.mark.parametrize("isolation", ["collection", "namespace", "filter"])
def test_no_id_is_read_as_anything_but_itself(isolation: Isolation) -> None:
    texts = [*HOSTILE, "a", "a_b", "b", "b_c", "_", "a-b", "A", "x" * 65]
    places = [VectorPartition(tenant, space, 8) for tenant, space in itertools.product(texts, texts)]
    scopes = {scope_of(place, isolation) for place in places}
    assert len(scopes) == len(places)
    for scope in scopes:
        assert re.fullmatch(r"rs_\w{1,200}", scope.collection, re.ASCII)
        assert scope.partition is None or re.fullmatch(r"tenant_\w{1,64}", scope.partition, re.ASCII)
        assert re.fullmatch(r'(tenant_id == "\w+" and space == "\w+")?', scope.condition, re.ASCII)


def test_a_key_belongs_to_one_tenant_space_and_chunk() -> None:
    parts = ["a", "b", "ab", '"', '", "', "", "\ud800"]
    keys = {
        physical_id(VectorPartition(tenant, space, 8), chunk) for tenant in parts for space in parts for chunk in parts
    }
    assert len(keys) == len(parts) ** 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", key) for key in keys)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"n": 1, "f": 1.0, "t": True, "none": None, "empty": [], "list": [1, "x", None], "big": 2**70},
        {"text": "é\x00\ud800" * 50_000, "tenant_id": "another", "chunk_id": "b"},
        {"text": "x" * (PIECE - len('{"text": ""}'))},
    ],
)
def test_a_payload_comes_back_as_it_was_given(payload: dict[str, Any]) -> None:
    row = row_of(PLACE, Point("c", VECTOR * 3, payload))
    assert all(len(piece.encode()) <= PIECE for piece in row["payload"])
    point = point_of(row)
    assert json.dumps(point.payload) == json.dumps(payload)
    assert point.chunk_id == "c"
    np.testing.assert_allclose(point.vector, VECTOR, atol=1e-6)
    assert (row["tenant_id"], row["space"]) == ("a1", "b2")


def test_a_vector_without_direction_stays_as_it_is() -> None:
    assert not row_of(PLACE, Point("c", np.zeros(8, np.float32), {}))["vector"].any()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(odd: float) -> None:
    with pytest.raises(InputError, match="chunk c1"):
        row_of(PLACE, Point("c1", np.array([0, odd], np.float32), {}))


@pytest.mark.parametrize(
    "payload",
    [
        {"list": list(range(MOST_TERMS + 1))},
        {f"field{number}": "x" * 100 for number in range(500)},
        {"text": "x" * (257 * PIECE)},
    ],
)
def test_more_than_milvus_holds_is_refused_with_the_chunk_named(payload: dict[str, Any]) -> None:
    with pytest.raises(PointRefused, match="chunk c1 is more than Milvus can hold") as caught:
        row_of(PLACE, Point("c1", VECTOR, payload))
    assert caught.value.hint


def test_the_longest_list_that_fits_is_taken() -> None:
    assert len(row_of(PLACE, Point("c", VECTOR, {"list": list(range(MOST_TERMS))}))["terms"]) == MOST_TERMS


def test_a_payload_that_cannot_be_read_is_damage() -> None:
    with pytest.raises(StoreCorrupt, match="chunk c") as caught:
        point_of({"chunk_id": "c", "vector": [1.0], "payload": ['{"a": ']})
    assert caught.value.remedy == Remedy(Action.REPAIR_STORES)


def test_messages_hold_a_bounded_number_of_rows_and_bytes() -> None:
    small = [row_of(PLACE, Point(str(number), VECTOR, {})) for number in range(2 * BATCH_ROWS + 1)]
    assert [len(batch) for batch in batch_rows(small)] == [BATCH_ROWS, BATCH_ROWS, 1]
    large = [row_of(PLACE, Point(str(number), VECTOR, {"text": "x" * (BATCH_BYTES // 3)})) for number in range(5)]
    assert [len(batch) for batch in batch_rows(large)] == [2, 2, 1]
    assert [row for batch in batch_rows(large) for row in batch] == large
    assert list(batch_rows([])) == []

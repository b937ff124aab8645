"""How chunks lie in Qdrant: ids that cannot meet, and payloads that come back as they were."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import InputError, StoreCorrupt
from ragstone.core.types import Json
from ragstone.core.vectors import Point, VectorPartition
from ragstone.stores.vectors.qdrant.points import GIVEN, LISTS, belongs, collection_of, physical_id, to_point, to_stored

PLACE = VectorPartition("a" * 32, "s1", 2)
VECTOR = np.array([0.6, 0.8], np.float32)

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(exclude_categories=())))
payloads = st.dictionaries(
    st.one_of(st.sampled_from(["tenant_id", "chunk_id", LISTS, GIVEN, "a.b"]), st.text()),
    st.one_of(scalars, st.lists(scalars, max_size=3)),
    max_size=4,
)


def sent(payload: dict[str, Json]) -> dict[str, Json]:
    return to_stored(PLACE, Point("c" * 32, VECTOR, payload)).payload


@given(payloads)
def test_a_payload_comes_back_as_it_was(payload: dict[str, Json]) -> None:
    stored = to_stored(PLACE, Point("c" * 32, VECTOR, payload))
    # As a server gets it: strict JSON in UTF-8.
    body = json.dumps(stored.payload, ensure_ascii=False, allow_nan=False).encode()
    point = to_point(stored._replace(payload=json.loads(body)))
    # As text, which tells 1, 1.0 and true apart and knows nothing of NaN being no number.
    assert json.dumps(dict(point.payload), sort_keys=True) == json.dumps(payload, sort_keys=True)
    assert point.chunk_id == "c" * 32


@given(payloads)
def test_nobody_can_write_for_another_tenant(payload: dict[str, Json]) -> None:
    stored = sent(payload | {"tenant_id": "b" * 32, "space": "s2", "chunk_id": "d" * 32})
    assert (stored["tenant_id"], stored["space"], stored["chunk_id"]) == ("a" * 32, "s1", "c" * 32)
    assert belongs(PLACE, stored)
    assert not belongs(VectorPartition("b" * 32, "s1", 2), stored)
    assert not belongs(VectorPartition("a" * 32, "s2", 2), stored)


@pytest.mark.parametrize(
    ("given_value", "kept"),
    [
        ("text", "text"),
        (True, True),
        (3, 3),
        (3.0, 3),
        (0.5, 0.5),
        (2**63 - 1, 2**63 - 1),
        (-(2**70), -1.7976931348623157e308),
        pytest.param(10**400, 1.7976931348623157e308, id="400 digits"),
        (-math.inf, -1.7976931348623157e308),
        ([1.0, "x", None, [2], math.nan, "\ud800"], [1, "x"]),
        ([], []),
        (None, None),
    ],
)
def test_a_filter_meets_the_nearest_that_the_engine_can_hold(given_value: Json, kept: Json) -> None:
    stored = sent({"field": given_value})["field"]
    assert repr(stored) == repr(kept)


@pytest.mark.parametrize("value", [math.nan, "\ud800", {"deep": 1}])
def test_what_no_filter_can_match_is_not_offered_to_one(value: Json) -> None:
    assert "field" not in sent({"field": value})


def test_only_what_would_change_is_kept_twice() -> None:
    assert sent({"a": "x", "b": 1, "c": ["x"], "d": None, "e": True}).keys() & {GIVEN} == set()
    assert json.loads(sent({"a": "x", "b": 1.5, "c": [2.0]})[GIVEN]) == {"b": 1.5, "c": [2.0]}


def test_lists_are_named() -> None:
    assert sent({"a": [1], "b": 1, "c": []})[LISTS] == ["a", "c"]
    assert LISTS not in sent({"b": 1})


def test_ids_of_two_places_never_meet() -> None:
    places = [
        VectorPartition("a", "b", 2),
        VectorPartition("b", "a", 2),
        VectorPartition("ab", "", 2),
        VectorPartition('a","b', "", 2),
    ]
    assert len({physical_id(place, "c" * 32) for place in places}) == len(places)
    assert physical_id(PLACE, "c" * 32) == physical_id(PLACE, "c" * 32)


def test_no_two_places_share_a_collection() -> None:
    names = ["a", "a_b", "b", "_", "a_", "../x", "x" * 300, ""]
    places = [VectorPartition(tenant, space, 2) for tenant in names for space in names]
    collections = [collection_of(place) for place in places]
    assert len(set(collections)) == len(places)
    assert all(len(name) < 255 and not set(name) & set('<>:"/\\|?*.\0') for name in collections)
    assert collection_of(VectorPartition("a1", "s-2", 2)) == "rs_a1_s-2"


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        to_stored(PLACE, Point("c" * 32, np.array([math.nan, 1], np.float32), {}))


@pytest.mark.parametrize("found", ["{", 7, "[1]"])
def test_a_payload_that_someone_changed_is_reported(found: Json) -> None:
    stored = to_stored(PLACE, Point("c" * 32, VECTOR, {}))
    with pytest.raises(StoreCorrupt):
        to_point(stored._replace(payload=stored.payload | {GIVEN: found}))

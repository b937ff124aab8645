"""Identifiers follow from what they name."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import InputError
from ragstone.core.ids import check_name, chunk_id, content_hash, document_id, opaque_id

PARTS = st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4), st.text(max_size=4))


def test_equal_content_has_one_hash() -> None:
    assert content_hash("häh") == content_hash("häh".encode()) == hashlib.sha256("häh".encode()).hexdigest()
    assert content_hash("a") != content_hash("b")


def test_ids_do_not_change_between_releases() -> None:
    assert document_id("default", "default", "files", "a.md") == "2769111a85ed4adac744a71fb311c46d"
    assert chunk_id("2769111a85ed4adac744a71fb311c46d", 1, 0) == "f6b3db0eaf5343766a1a2fb546cc81b2"


@given(PARTS, PARTS)
def test_different_names_have_different_ids(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    assert (document_id(*one) == document_id(*two)) == (one == two)


def test_parts_do_not_run_together() -> None:
    assert document_id("ab", "c", "", "") != document_id("a", "bc", "", "")
    assert chunk_id("d", 1, 11) != chunk_id("d", 11, 1)


def test_opaque_ids_differ_and_say_nothing() -> None:
    made = {opaque_id() for _ in range(100)}
    assert len(made) == 100
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in made)


@pytest.mark.req("R-TEN-16")
@pytest.mark.parametrize("name", ["a", "0", "default", "acme_v2", "user-123", "a" * 63])
def test_safe_names_are_taken(name: str) -> None:
    assert check_name(name, "tenant") == name


@pytest.mark.req("R-TEN-16")
@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "A", "a b", "-a", "_a", "a\x00", "a\n", "ü", "a.b", "a:b", "%2e", "a" * 64],
)
def test_unsafe_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="tenant") as raised:
        check_name(name, "tenant")
    assert "1 to 63" in raised.value.hint

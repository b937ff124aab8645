"""Under which name things are recorded."""

from __future__ import annotations

import pytest

from ragstone.core.audit import NAME_CHARS, Caller, acting_as, caller


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("ada", "ada"),
        ("Jürgen 李", "Jürgen 李"),
        ("\x1b[31mada\r\nbob\u202e\ud800", "\ufffd[31mada\ufffd\ufffdbob\ufffd\ufffd"),
        ("x" * 1000, "x" * NAME_CHARS),
    ],
)
def test_a_name_on_record_does_nothing_to_a_terminal(given: str, recorded: str) -> None:
    with acting_as("somebody"):
        with acting_as(given):
            assert caller().actor == recorded
        assert caller().actor == "somebody"


def test_a_name_and_a_request_are_set_apart() -> None:
    with acting_as("ada", "r1"):
        with acting_as(None, "r2"):
            assert caller() == Caller("ada", "r2")
        with acting_as("bob"):
            assert caller() == Caller("bob", "r1")
        assert caller() == Caller("ada", "r1")
    assert caller() == Caller()

"""Under which name things are recorded."""

from __future__ import annotations

import pytest

from ragstone.core.audit import NAME_CHARS, acting_as, actor


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
            assert actor() == recorded
        assert actor() == "somebody"

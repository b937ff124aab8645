from __future__ import annotations

import pytest

from ragstone.language.names import find_identifiers


@pytest.mark.parametrize(
    ("question", "identifiers"),
    [
        ("What is the default of fan_speed?", ["fan_speed"]),
        ("Is pump.timeout longer than iso9001?", ["pump.timeout", "iso9001"]),
        ("How fast is the fan?", []),
    ],
)
def test_words_that_are_spelt_like_names_in_a_program(question: str, identifiers: list[str]) -> None:
    assert find_identifiers(question) == identifiers

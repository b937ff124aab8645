"""The page of the Python API says what the code has."""

from __future__ import annotations

from scripts.python_reference import PAGE, page


def test_the_python_reference_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.python_reference"

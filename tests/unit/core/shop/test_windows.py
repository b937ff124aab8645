"""Opening hours as people write them."""

from __future__ import annotations

from datetime import time

import pytest

from ragstone.core.errors import InputError
from ragstone.core.shop import Window
from ragstone.core.shop.windows import check_windows, format_windows, parse_windows


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("mon 09:00-17:00", "mon 09:00-17:00"),
        ("Monday 9:00 – 12:00, 13:00-17:30", "mon 09:00-12:00; mon 13:00-17:30"),
        ("fri-mon 10:00-11:00", "mon 10:00-11:00; fri 10:00-11:00; sat 10:00-11:00; sun 10:00-11:00"),
        ("sat 20:00-24:00", "sat 20:00-00:00"),
        ("sun 22:00-02:00; mon 02:00-03:00", "mon 02:00-03:00; sun 22:00-02:00"),
        ("", ""),
    ],
)
def test_hours_are_read_and_written(written: str, kept: str) -> None:
    assert format_windows(parse_windows(written)) == kept
    assert parse_windows(kept) == parse_windows(written)


@pytest.mark.parametrize(
    "written",
    [
        *(
            "mon",
            "09:00-17:00",
            "mon 9-17",
            "mon 25:00-26:00",
            "mon 09:60-10:00",
            "foo 09:00-10:00",
            "mon 09:00-17:00 x",
        ),
        *("mon-foo 09:00-10:00", "mon 09:00-12:00, 11:00-13:00", "sun 22:00-02:00; mon 01:00-03:00", "mon " * 1000),
        *("mon 09:00-10:00; mon 09:00-10:00", "mon 00:00-24:00; mon 12:00-13:00"),
    ],
)
def test_what_are_no_hours_is_refused(written: str) -> None:
    with pytest.raises(InputError):
        parse_windows(written)


@pytest.mark.parametrize("window", [Window(7, time(9), time(10)), Window(0, time(9, 0, 1), time(10))])
def test_windows_of_no_weekday_or_minute_are_refused(window: Window) -> None:
    with pytest.raises(InputError):
        check_windows([window])

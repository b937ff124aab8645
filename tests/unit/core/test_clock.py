"""One form of time, so that dates compare as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.clock import canonical, now, parse_moment

MOMENTS = st.datetimes(
    datetime(2, 1, 1),  # noqa: DTZ001 - the zone is drawn apart
    datetime(9998, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11, minutes=30))]),
)


def test_now_is_in_utc() -> None:
    assert now().tzinfo is UTC


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (date(2026, 1, 31), "2026-01-31T00:00:00+00:00"),
        (datetime(2026, 1, 31, 9), "2026-01-31T09:00:00+00:00"),  # noqa: DTZ001 - taken as UTC
        (datetime(2026, 1, 31, 9, 0, 0, 999_999, UTC), "2026-01-31T09:00:00+00:00"),
        (datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=2))), "2026-01-30T23:00:00+00:00"),
        (date(1, 1, 1), "0001-01-01T00:00:00+00:00"),
    ],
)
def test_the_canonical_form(moment: date, text: str) -> None:
    assert canonical(moment) == text


@given(MOMENTS, MOMENTS)
def test_text_sorts_as_time_does(one: datetime, two: datetime) -> None:
    one, two = one.replace(microsecond=0), two.replace(microsecond=0)
    assert (canonical(one) < canonical(two)) == (one < two)
    assert parse_moment(canonical(one)) == one
    assert len(canonical(one)) == 25


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        (" 2026-01-31T09:00:00Z ", datetime(2026, 1, 31, 9, tzinfo=UTC)),
        ("2026-01-31T09:00:00+02:00", datetime(2026, 1, 31, 7, tzinfo=UTC)),
        ("", None),
        ("yesterday", None),
        ("2026-02-30", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-01:00", None),
    ],
)
def test_moments_are_read(text: str, moment: datetime | None) -> None:
    assert parse_moment(text) == moment

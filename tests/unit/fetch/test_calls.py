"""Calls to services: attempts, waits, the time for all of them, and what is left out of errors."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from ragstone.fetch.calls import RetryPolicy, host_of, is_service_url, parse_retry_after, redact


class Busy(Exception):
    def __init__(self, retry_header: str | None = None) -> None:
        super().__init__("busy")
        self.retry_header = retry_header


class Waits(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


async def call(policy: RetryPolicy, waits: Waits, *errors: Exception) -> str:
    attempt = failing(*errors)

    async def asynchronous() -> str:
        return attempt()

    return await policy.call(asynchronous, lambda error: isinstance(error, Busy), waits)


async def test_waits_double_unless_the_service_asks_for_another() -> None:
    waits = Waits()
    assert await call(RetryPolicy(attempts=5), waits, Busy(), Busy(), Busy("7"), Busy("9999")) == "done"
    assert waits == [0.5, 1.0, 7.0, 60.0]


async def test_the_error_of_the_last_attempt_is_raised() -> None:
    waits, last = Waits(), Busy()
    with pytest.raises(Busy) as raised:
        await call(RetryPolicy(), waits, Busy(), Busy(), last)
    assert raised.value is last
    assert waits == [0.5, 1.0]


async def test_other_errors_are_raised_at_once() -> None:
    waits = Waits()
    with pytest.raises(KeyError):
        await call(RetryPolicy(), waits, KeyError("no"))
    assert waits == []


async def test_no_wait_goes_beyond_the_time_for_all_attempts() -> None:
    waits = Waits()
    with pytest.raises(Busy):
        await call(RetryPolicy(seconds=5.0), waits, Busy("1"), Busy("5"))
    assert waits == [1.0]


def test_blocking_calls_are_repeated_the_same_way() -> None:
    policy = RetryPolicy(first_wait=0.0)
    assert policy.call_blocking(failing(Busy(), Busy()), lambda _: True) == "done"
    with pytest.raises(Busy):
        policy.call_blocking(failing(Busy(), Busy(), Busy()), lambda _: True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("-1", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header) == seconds


def test_a_reason_is_short_and_holds_no_secret() -> None:
    packed = base64.b64encode(b"s3cret").decode()
    assert redact(f"key s3cret\n or {packed} " + "x" * 300, "s3cret", None) == ("key *** or *** " + "x" * 300)[:200]


def test_addresses_of_services() -> None:
    assert host_of("https://user:pass@Host.example:8080/v1?key=x") == "host.example:8080"
    assert host_of("https://host.example/v1") == "host.example"
    addresses = ("http://h", "https://h:1", "ftp://h", "http://", "http://h:99999", "http://h:0")
    assert [is_service_url(address) for address in addresses] == [True, True, False, False, False, False]

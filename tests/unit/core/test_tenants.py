"""Quotas and retention that can be meant."""

from __future__ import annotations

import pytest

from ragstone.core.errors import InputError
from ragstone.core.tenants import LONGEST_DAYS, UNLIMITED, Quotas, Stock, checked_quotas, checked_retention


@pytest.mark.parametrize(
    "quotas", [UNLIMITED, Quotas(documents=0), Quotas(bytes=2**53 - 1), Quotas(cost_per_month=0.5)]
)
def test_quotas_that_can_be_meant(quotas: Quotas) -> None:
    assert checked_quotas(quotas) is quotas


@pytest.mark.parametrize(
    ("quotas", "named"),
    [
        (Quotas(documents=-1), "quotas.documents cannot be -1"),
        (Quotas(chunks=2**53), f"quotas.chunks cannot be {2**53}"),
        (Quotas(bytes=1.5), "quotas.bytes cannot be 1.5"),  # type: ignore[arg-type]
        (Quotas(cost_per_month=float("nan")), "quotas.cost_per_month cannot be nan"),
        (Quotas(cost_per_month=float("inf")), "quotas.cost_per_month cannot be inf"),
    ],
)
def test_quotas_that_cannot_be_meant_are_refused_by_name(quotas: Quotas, named: str) -> None:
    with pytest.raises(InputError) as refused:
        checked_quotas(quotas)
    assert str(refused.value) == named
    assert "'none' for no limit" in refused.value.hint


@pytest.mark.parametrize(
    ("quotas", "limits"),
    [(UNLIMITED, False), (Quotas(queries_per_minute=1), False), (Quotas(chunks=0), True), (Quotas(bytes=9), True)],
)
def test_only_limits_on_amounts_have_to_be_counted(quotas: Quotas, limits: bool) -> None:
    assert quotas.limits_stock is limits


@pytest.mark.parametrize("days", [None, 1, LONGEST_DAYS])
def test_retention_that_can_be_meant(days: int | None) -> None:
    assert checked_retention(days) == days


@pytest.mark.parametrize("days", [0, -3, LONGEST_DAYS + 1])
def test_retention_that_cannot_be_meant(days: int) -> None:
    with pytest.raises(InputError, match=f"retention_days cannot be {days}"):
        checked_retention(days)


def test_what_is_limited_by_time_is_no_stock() -> None:
    stock = Stock(documents=2, chunks=7, bytes=900)
    assert [stock.of(name) for name in ("documents", "chunks", "bytes", "queries_per_minute")] == [2, 7, 900, 0]

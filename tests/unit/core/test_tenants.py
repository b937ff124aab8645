"""Quotas and retention that can be meant, and tenants as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ragstone.core.errors import InputError
from ragstone.core.tenants import (
    LONGEST_DAYS,
    UNLIMITED,
    Quotas,
    Stock,
    Tenant,
    Usage,
    checked_quotas,
    checked_retention,
)
from ragstone.core.wire_tenants import tenant_json, tenants_json, usage_json

ACME = Tenant(
    "t1", "acme", "active", datetime(2026, 1, 31, tzinfo=UTC), Quotas(documents=5), 30, {"profile": "rpg"}
)


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
    [
        (UNLIMITED, False),
        (Quotas(queries_per_minute=1), False),
        (Quotas(chunks=0), True),
        (Quotas(bytes=9), True),
    ],
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
    assert [stock.of(name) for name in ("documents", "chunks", "bytes", "queries_per_minute")] == [
        2,
        7,
        900,
        0,
    ]


def test_a_tenant_as_json() -> None:
    shape = tenant_json(ACME)
    assert shape == {
        "id": "t1",
        "name": "acme",
        "state": "active",
        "created_at": "2026-01-31T00:00:00+00:00",
        "quotas": {
            "documents": 5,
            "chunks": None,
            "bytes": None,
            "queries_per_minute": None,
            "cost_per_month": None,
        },
        "retention_days": 30,
        "settings": {"profile": "rpg"},
    }
    assert tenants_json([ACME, replace(ACME, id="t2")]) == {"tenants": [shape, {**shape, "id": "t2"}]}


def test_usage_has_the_names_of_the_quotas() -> None:
    usage = Usage(Stock(2, 7, 900, 400), Stock(documents=1, bytes=50), 3, 0.5, {"llm": 0.5}, {"documents": 1})
    shape = usage_json(usage)
    assert shape == {
        "documents": 2,
        "chunks": 7,
        "bytes": 900,
        "originals": 400,
        "queries_per_minute": 3,
        "cost_per_month": 0.5,
        "cost_by_kind": {"llm": 0.5},
        "queued": {"documents": 1, "bytes": 50},
        "reserved": {"documents": 1},
    }
    assert json.loads(json.dumps(shape)) == shape

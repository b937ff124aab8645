"""Receipts as JSON: like `ragstone.core.wire`."""

from __future__ import annotations

from dataclasses import asdict

from ragstone.core.clock import canonical
from ragstone.core.erasure import Counts, Receipt
from ragstone.core.types import Json

JsonObject = dict[str, Json]


def receipt_json(receipt: Receipt) -> JsonObject:
    """A receipt; what it says holds for `moment`."""
    return {
        "tenant": receipt.tenant,
        "target": {key: value for key, value in asdict(receipt.target).items() if value},
        "removed": _counts(receipt.removed),
        "remaining": _counts(receipt.remaining),
        "requery": receipt.requery,
        "scrubbed": receipt.scrubbed,
        "complete": receipt.complete,
        "unfinished": list(receipt.unfinished),
        "moment": canonical(receipt.moment),
    }


def _counts(counts: Counts) -> JsonObject:
    return {store: dict(of_store) for store, of_store in counts.items()}

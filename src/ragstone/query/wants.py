"""Words that ask for something to buy, and words that ask for something to be done. English ones."""

from __future__ import annotations

import re
from typing import NamedTuple

_PRODUCT = re.compile(
    r"\b(?:prices?|priced|costs?|how much|in stock|out of stock|stock|sell|selling|sold|buy|purchase|order"
    r"|products?|brands?|sizes?|colou?rs?|ingredients|specifications?|specs|discounts?|catalogue|catalog)\b"
)
_SERVICE = re.compile(
    r"\b(?:book (?:a|an|the|my|me|in|for|another|online)|how do i book|bookings?|booked|appointments?"
    r"|reserv(?:e|ation|ations)|slots?|reschedule|cancel (?:a|an|the|my)|services?|sessions?|consultations?"
    r"|treatments?|lessons?|available (?:on|at|today|tomorrow|this|next)|free (?:on|at))\b"
)


class Wants(NamedTuple):
    """How many words of each kind a query has."""

    product: int
    service: int


def wants(query: str) -> Wants:
    """Count the words that ask for products and for services."""
    words = " ".join(query.casefold().split())
    return Wants(len(set(_PRODUCT.findall(words))), len(set(_SERVICE.findall(words))))

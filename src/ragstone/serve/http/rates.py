"""Limits on callers: the requests of a key, and the wrong keys of an address."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from starlette.requests import HTTPConnection

from ragstone.core.errors import QuotaExceeded, StoreFull, StoreReadOnly
from ragstone.core.keys import ApiKey, RequestAllowance
from ragstone.stores.control.keys import SqlKeyBook

logger = logging.getLogger(__name__)
WRONG_KEYS = 20
"""Different wrong keys that an address may send in a minute. One that is sent again and again is no guess."""
WINDOW_SECONDS = 60.0
REMEMBERED = 4096


class KeyLimiter:
    """Counts the requests of keys that have a limit, across processes; a key without one costs nothing."""

    def __init__(self, book: SqlKeyBook, clock: Callable[[], float] = time.monotonic) -> None:
        self._book = book
        self._clock = clock
        self._refused: OrderedDict[str, tuple[QuotaExceeded, float]] = OrderedDict()

    async def spend(self, key: ApiKey) -> RequestAllowance | None:
        """Count a request, or raise `QuotaExceeded`."""
        if key.per_minute is None:
            return None
        self._refuse_again(key)
        try:
            return await self._book.spend(key)
        except QuotaExceeded as error:
            # The rest of the minute needs no further look: a flood must not become a flood of writes.
            self._refused[key.id] = error, self._clock() + (error.retry_after or 0)
            while len(self._refused) > REMEMBERED:
                self._refused.popitem(last=False)
            raise
        except (StoreFull, StoreReadOnly) as error:
            # Reading goes on where nothing can be written.
            logger.warning("cannot count a request of key %s: %s", key.id, error)
            return None

    def _refuse_again(self, key: ApiKey) -> None:
        error, until = self._refused.get(key.id, (None, 0.0))
        left = until - self._clock()
        if error is None or left <= 0:
            self._refused.pop(key.id, None)
            return
        raise QuotaExceeded(str(error), hint=f"try again in {left:.0f} s", retry_after=left, limit=error.limit)


@dataclass(slots=True)
class _Guesses:
    ends: float
    tokens: set[int] = field(default_factory=set)


class GuessLimiter:
    """Counts the wrong keys of each address for a minute; the oldest addresses are forgotten when there are many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guesses: OrderedDict[str, _Guesses] = OrderedDict()

    def seconds_to_wait(self, address: str) -> float:
        """Return the seconds for which no unknown key of an address is looked up; 0 if it may send one."""
        known = self._guesses.get(address)
        if known is None or len(known.tokens) < WRONG_KEYS:
            return 0.0
        return max(known.ends - self._clock(), 0.0)

    def note(self, address: str, token: str) -> None:
        """Note that a key of an address was wrong."""
        known = self._guesses.get(address)
        if known is None or known.ends <= self._clock():
            known = self._guesses[address] = _Guesses(self._clock() + WINDOW_SECONDS)
            self._guesses.move_to_end(address)
        if len(known.tokens) < WRONG_KEYS:
            known.tokens.add(hash(token))
        while len(self._guesses) > REMEMBERED:
            self._guesses.popitem(last=False)


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request comes from; of IPv6 the network, of which one caller has all addresses."""
    host = connection.client.host if connection.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or int(address) >> 64)


def rate_headers(limit: float, left: float, seconds: float) -> Mapping[str, str]:
    """Return the headers that tell a caller of a limit, what is left of it and when it begins again."""
    return {
        "RateLimit-Limit": f"{limit:.0f}",
        "RateLimit-Remaining": f"{left:.0f}",
        "RateLimit-Reset": f"{seconds:.0f}",
    }

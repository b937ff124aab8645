"""A cache in Redis that the processes of one installation share.

Nothing depends on it: without an answer within a moment a search goes on as if it held nothing, and asks again later.
Values are sealed like original files where `security.key` is set, and Redis removes them when their time is over.
"""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from ragstone.core.batches import batched
from ragstone.core.errors import SettingsError, StoreBusy, StoreCorrupt
from ragstone.core.ids import content_hash
from ragstone.settings.tree import Settings
from ragstone.stores.vault import Owner, Vault

if TYPE_CHECKING:
    from redis.asyncio import Redis

logger = logging.getLogger(__name__)
PREFIX = "ragstone"
SECONDS = 0.2
"""The longest that a call may take."""
PAUSE_SECONDS = 5.0
"""The time for which a Redis that did not answer is not asked again."""
KEYS = 1000
"""The number of keys that are looked at or removed in one call."""


class RedisCache:
    """Implements `core.protocols.SharedCache`."""

    def __init__(self, url: SecretStr, namespace: Callable[[], str], vault: Vault) -> None:
        """`namespace` names what else a value depends on; it is asked for when the first one is kept or looked for."""
        self._url = url
        self._find_namespace = namespace
        self._vault = vault
        self._rests_until = float("-inf")

    async def get(self, tenant_id: str, key: str) -> bytes | None:
        """Return what is kept under a key, or None."""
        stored = await self._try("read", lambda: self._client.get(self._name(tenant_id, key)))
        if stored is None:
            return None
        try:
            return self._vault.open(stored, _owner(tenant_id, key))
        except StoreCorrupt as error:
            logger.warning("cannot open a cached result in Redis: %s", error)
            return None

    async def put(self, tenant_id: str, key: str, value: bytes, seconds: float) -> None:
        """Keep a value for some seconds."""
        stored = bytes(self._vault.seal(value, _owner(tenant_id, key)))
        milliseconds = max(1, int(seconds * 1000))
        await self._try("write", lambda: self._client.set(self._name(tenant_id, key), stored, px=milliseconds))

    async def forget(self, tenant_id: str) -> int:
        """Remove all that is kept for a tenant and return how many values these were; `StoreBusy` if Redis is away."""
        from redis.exceptions import RedisError

        try:
            pattern = f"{PREFIX}:{tenant_id}:*"
            found = [key async for key in self._client.scan_iter(match=pattern, count=KEYS)]
            for batch in batched(found, KEYS):
                await self._client.unlink(*batch)
        except (RedisError, OSError) as error:
            raise _away(error) from error
        return len(found)

    async def check(self) -> str:
        """Return the version of the server; `StoreBusy` if it does not answer."""
        from redis.exceptions import RedisError

        try:
            return str((await self._client.info("server"))["redis_version"])
        except (RedisError, OSError) as error:
            raise _away(error) from error

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.aclose()

    @cached_property
    def _client(self) -> Redis:
        return connect(self._url)

    @cached_property
    def _namespace(self) -> str:
        return self._find_namespace()

    def _name(self, tenant_id: str, key: str) -> str:
        return f"{PREFIX}:{tenant_id}:{self._namespace}:{key}"

    async def _try(self, what: str, call: Callable[[], Any]) -> Any:
        """Return the answer of Redis; None when there is none in time, and until the pause after that is over."""
        from redis.exceptions import RedisError

        if time.monotonic() < self._rests_until:
            return None
        try:
            return await call()
        except (RedisError, OSError) as error:
            self._rests_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("cannot %s the cache in Redis, next try in %.0f s: %s", what, PAUSE_SECONDS, error)
            return None


def open_redis_cache(settings: Settings, vault: Vault) -> RedisCache | None:
    """Return the cache that `cache.redis` names, or None."""
    url = settings.cache.redis
    if url is None:
        return None
    connect(url)  # refuses what is no address, before anything is searched
    return RedisCache(url, lambda: _namespace(settings), vault)


def connect(url: SecretStr) -> Redis:
    """Return a client of a Redis server; nothing is sent yet."""
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise SettingsError(
            "cache.redis is set and the package redis is not installed", hint='pip install "ragstone[redis]"'
        ) from error
    try:
        return Redis.from_url(
            url.get_secret_value(),
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
            retry=Retry(NoBackoff(), 1),  # once, for a connection that the server has closed
        )
    except ValueError as error:
        raise SettingsError(
            "cache.redis is not the address of a Redis server",
            hint="set it to redis://HOST:6379/0, rediss://USER:PASSWORD@HOST:6379/0 or unix:///PATH/TO/SOCKET",
        ) from error


def _owner(tenant_id: str, key: str) -> Owner:
    return Owner(tenant_id, "cached result", key)


def _away(error: Exception) -> StoreBusy:
    return StoreBusy(f"Redis does not answer: {error}", hint="check cache.redis and that the server runs")


def _namespace(settings: Settings) -> str:
    """Return a name that processes share only if they would find the same: version, settings and database are equal.

    A copy of a data folder has the same tenants, so the folder is told from its copies by the file on its disk.
    """
    dsn = settings.store.ledger.dsn
    if dsn is None:
        file = (settings.data_dir / "control.db").stat()
        place = f"{platform.node()} {file.st_dev} {file.st_ino}"
    else:
        place = dsn.get_secret_value()
    asked = settings.model_dump_json(exclude={"data_dir"})
    return content_hash(f"{version('ragstone')} {asked} {place}")[:32]
